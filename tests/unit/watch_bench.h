/* SPDX-License-Identifier: BSD-2-Clause */
/* A watch with fake processes and a fake BPF (fake_kernel.h). */
#ifndef PYBPFPROF_TESTS_WATCH_BENCH_H
#define PYBPFPROF_TESTS_WATCH_BENCH_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "fake_kernel.h"
#include "watch/discovery.h"

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

#define PARENT	   FIRST_PID
#define CHILD	   (FIRST_PID + 1)
#define GRANDCHILD (FIRST_PID + 2)
#define WANTED_UID 1
#define TEXT_START 0x1000
#define START_TIME 7

/* What user space finds when it looks at a process. */
static struct {
	bool is_gone;
	uid_t uid;
	int answer;  /* the result of target__look */
	bool begins; /* its Python has not begun yet */
	int64_t took_ns;
	int looks;
	size_t listed; /* how many processes there are */
	int lists;     /* how often they were listed */
	const char *command;
	bool executes, has_executed; /* since it was forked */
	uint64_t start_time;
} process;

/* All clocks.  Each reading takes a moment, and a look at a process took_ns. */
static int64_t clock_at_ns = 1000 * NS_PER_S;

WRAP(int, clock_gettime, clockid_t clock, struct timespec *time)
{
	(void)clock;
	clock_at_ns += 1000;
	time->tv_sec = clock_at_ns / NS_PER_S;
	time->tv_nsec = clock_at_ns % NS_PER_S;
	return 0;
}

WRAP(int, sampler__find_kernel_pid, struct sampler *sampler, pid_t pid, pid_t *kernel_pid,
     pid_t *namesake)
{
	(void)sampler;
	*kernel_pid = pid;
	*namesake = 0;
	return 0;
}

WRAP(size_t, sampler__drain, struct sampler *sampler)
{
	(void)sampler;
	return 0;
}

WRAP(void, sampler__harvest, struct sampler *sampler)
{
	(void)sampler;
}

WRAP(pid_t *, process__list, size_t *count)
{
	pid_t *pids = xcalloc(PIDS, sizeof(*pids));

	for (size_t i = 0; i < process.listed; i++)
		pids[i] = FIRST_PID + i;
	*count = process.listed;
	process.lists++;
	return pids;
}

WRAP(int, process__inspect, pid_t pid, struct process *inspected)
{
	*inspected = (struct process){ .pid = pid,
				       .reader = pid,
				       .forked = !process.has_executed,
				       .executes = process.executes,
				       .start_time = process.start_time };
	return process.is_gone ? -ESRCH : 0;
}

WRAP(ssize_t, process__program_mappings, pid_t pid, pid_t reader, struct mapping **mappings,
     bool *cut)
{
	(void)pid;
	(void)reader;
	*cut = false;
	*mappings = NULL;
	return 0;
}

static inline int read_identity(struct identity *identity)
{
	*identity = (struct identity){ 0 };
	if (process.is_gone)
		return -ESRCH;
	identity->command = process.command ? xstrdup(process.command) : NULL;
	identity->user = xstrdup("somebody");
	identity->uid = process.uid;
	identity->start_time = process.start_time;
	return 0;
}

WRAP(int, identity__read, pid_t pid, struct identity *identity)
{
	(void)pid;
	return read_identity(identity);
}

WRAP(int, identity__read_again, pid_t pid, uint64_t start_time, enum identify what,
     struct identity *identity)
{
	char *command = what == IDENTIFY_OWNER ? identity->command : NULL;
	int error;

	(void)pid;
	(void)start_time;
	if (command)
		identity->command = NULL;
	identity__free(identity);
	error = read_identity(identity);
	if (command) {
		free(identity->command);
		identity->command = command;
	}
	return error;
}

WRAP(int, target__look, pid_t pid, uint64_t *signature, struct target_process **target)
{
	clock_at_ns += process.took_ns;
	process.looks++;
	*signature = 1;
	if (process.answer && process.answer != -ENOTSUP)
		return process.answer;
	*target = target__unknown(pid);
	(*target)->runtime.text.start = TEXT_START;
	(*target)->runtime.begins = process.begins;
	return process.answer;
}

WRAP(enum exit_status, target__open, pid_t pid, bool needed, bool needs_gil, bool *silent,
     uint64_t *start_time)
{
	(void)needs_gil;
	(void)pid;
	(void)needed;
	*silent = false;
	*start_time = process.start_time;
	return STATUS_WRITTEN;
}

struct bench {
	struct profile *profile;
	struct symbolizer *symbolizer;
	struct counts *counts;
	struct process_filter filter;
	struct symbolizer_options naming;
	struct watch *watch;
	int64_t now; /* ahead of the clock, so that no work has to wait */
};

static inline struct bench *prepare(enum following following, bool filtered)
{
	struct bench *bench = xcalloc(1, sizeof(*bench));

	memset(&kernel, 0, sizeof(kernel));
	memset(&process, 0, sizeof(process));
	process.start_time = START_TIME;
	kernel.sees_mappings = true;
	log__set_level(LOG_ERROR);
	if (filtered)
		assert_null(process_filter__add(&bench->filter, "uid", "1"));
	bench->profile = profile__new();
	bench->symbolizer = symbolizer__new(bench->profile, &bench->naming);
	bench->counts = counts__new(bench->profile, bench->symbolizer);
	bench->watch = watch__new(following, &bench->filter, PIDS, false);
	return bench;
}

static inline void begin_sampling(struct bench *bench)
{
	bench->now = now_ns();
	assert_int_equal(
		watch__begin(bench->watch, NULL, bench->symbolizer, bench->counts, bench->now), 0);
}

/* LISTED processes already run, and a look at one takes TOOK_NS. */
static inline struct bench *begin_among(size_t listed, int64_t took_ns, bool filtered)
{
	struct bench *bench = prepare(FOLLOW_ALL, filtered);

	process.listed = listed;
	process.took_ns = took_ns;
	assert_int_equal(watch__open(bench->watch, NULL, 0), 0);
	begin_sampling(bench);
	return bench;
}

static inline struct bench *begin(bool filtered)
{
	return begin_among(0, 0, filtered);
}

static inline void end(struct bench *bench)
{
	counts__free(bench->counts);
	symbolizer__free(bench->symbolizer);
	profile__free(bench->profile);
	watch__free(bench->watch);
	process_filter__free(&bench->filter);
	free(bench);
}

/* BPF reports EVENT, after it has updated its map; the end of a process clears its entry. */
static inline void tell(struct bench *bench, enum process_event event, pid_t pid, uint64_t serial,
			enum target_state state, uint64_t before)
{
	struct process_record record = {
		.kind = RECORD_PROCESS,
		.event = event,
		.pid = pid,
		.kernel_pid = pid,
		.serial = serial,
		.before = before,
		.state = state,
		.waiting = event == PROCESS_ENDED ? entry_of(pid)->waiting : 0,
		.abandoned = event == PROCESS_EXECUTED ? entry_of(pid)->waiting : 0,
		.image = state == TARGET_PYTHON ? kernel.image : 0,
		.start = TEXT_START,
		.file = { .inode = 5 },
		.argument_bytes =
			event == PROCESS_EXECUTED || event == PROCESS_MAPPED ? sizeof("gone") : 0,
		.arguments = "gone",
	};

	if (event == PROCESS_ENDED)
		memset(entry_of(pid), 0, sizeof(struct target));
	else if (!kernel.is_written_over)
		*entry_of(pid) = (struct target){
			.serial = serial,
			.state = state,
			.rate_shift = event == PROCESS_FORKED ? entry_of(pid)->rate_shift : 0,
		};
	watch__note(bench->watch, &record);
}

static inline void look_after(struct bench *bench, int64_t seconds)
{
	bench->now += seconds * NS_PER_S;
	watch__look(bench->watch, bench->now);
}

/* Counts SAMPLES of process SERIAL. */
static inline void sample(struct bench *bench, uint64_t serial, uint64_t samples)
{
	const struct definition definition = { .serial = serial };
	struct sampler_sink sink = counts__sink(bench->counts);

	sink.count(sink.context, sink.define(sink.context, &definition), 0,
		   (struct amount){ .count = samples }, OUTCOME_PYTHON, false);
}

#endif
