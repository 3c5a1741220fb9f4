// SPDX-License-Identifier: BSD-2-Clause
/* The input: events of processes in any order, as BPF may report them if some are lost and PIDs
 * are reused; and what user space finds when it looks.  The tables are real; BPF's map follows
 * the input. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "fake_kernel.h"
#include "input.h"
#include "watch/discovery.h"

#define SERIALS	  32
#define STEPS_MAX 256
#define FILES_MAX 256
#define NS_PER_MS 1000000LL

enum step { LOOK, LOSE_SOME, MAP_FILE, RECORD };

static struct input input;

WRAP(int, sampler__find_kernel_pid, struct sampler *sampler, pid_t pid, pid_t *kernel_pid,
     pid_t *namesake)
{
	(void)sampler;
	*kernel_pid = pid;
	*namesake = 0;
	return input__number(&input, 1) % 8 ? 0 : -ESRCH;
}

WRAP(pid_t *, process__list, size_t *count)
{
	pid_t *pids = xcalloc(PIDS, sizeof(*pids));

	*count = input__number(&input, 1) % (PIDS + 1);
	for (size_t i = 0; i < *count; i++)
		pids[i] = FIRST_PID + i;
	return pids;
}

WRAP(int, process__inspect, pid_t pid, struct process *process)
{
	uint64_t choice = input__number(&input, 1);

	*process = (struct process){ .pid = pid,
				     .parent = FIRST_PID + choice % PIDS,
				     .zombie = choice % 16 == 1,
				     .start_time = 1 + choice % 2 };
	return choice % 16 == 2 ? -ESRCH : choice % 16 == 3 ? -EMFILE : 0;
}

WRAP(ssize_t, process__program_mappings, pid_t pid, pid_t reader, struct mapping **mappings,
     bool *cut)
{
	(void)pid, (void)reader;
	*cut = false;
	*mappings = xcalloc(1, sizeof(**mappings));
	(*mappings)->end = input__number(&input, 1) % 4;
	return (*mappings)->end ? 1 : 0;
}

WRAP(int, identity__read, pid_t pid, struct identity *identity)
{
	(void)pid;
	*identity = (struct identity){ 0 };
	if (input__number(&input, 1) % 2)
		return -ESRCH;
	identity->short_name = xstrdup("fuzzed");
	identity->user = xstrdup("somebody");
	identity->uid = input__number(&input, 1) % 2;
	return 0;
}

WRAP(int, identity__read_again, pid_t pid, uint64_t start_time, enum identify what,
     struct identity *identity)
{
	(void)pid, (void)start_time, (void)what;
	identity->start_time = 1 + input__number(&input, 1) % 2;
	identity->uid = input__number(&input, 1) % 2;
	return 0;
}

WRAP(int, target__look, pid_t pid, uint64_t *signature, struct target_process **target)
{
	static const int answers[] = { 0,      -EAGAIN, -ENOEXEC, -ENOTSUP,
				       -ESRCH, -EPERM,	-EMFILE,  -EAGAIN };
	int answer = answers[input__number(&input, 1) % 8];

	*signature = 1 + input__number(&input, 1) % 2;
	if (answer && answer != -ENOTSUP)
		return answer;
	*target = target__unknown(pid);
	(*target)->runtime.text.start = input__number(&input, 1);
	return answer;
}

static void check_tables(const struct watch *watch)
{
	const struct watched *watched;
	size_t to_look_at = 0, set_aside = 0;

	CHECK(HASH_COUNT(watch->all) <= PIDS);
	CHECK(HASH_CNT(by_pid, watch->by_pid) == HASH_COUNT(watch->all));
	for (watched = watch->all; watched; watched = watched->hh.next) {
		CHECK(registry__of_pid(watch, watched->pid) == watched);
		CHECK(registry__find(watch, watched->key.serial) == watched);
		CHECK(watched->file_count <= FILES_MAX && watched->mapped_count <= FILES_MAX);
		CHECK(!watched->target || watched->target->key.serial == watched->key.serial);
		CHECK(!watched->target || !watched->target->ended);
		CHECK(!watched->target || !watched->unwanted);
		/* With a filter, each target is checked again. */
		CHECK((!watched->target && !watched->unwanted) || watched->look_ns != INT64_MAX ||
		      process_filter__is_empty(watch->filter));
		set_aside += watched->unwanted != NULL;
		to_look_at += watched->look_ns != INT64_MAX;
	}
	for (size_t i = 0; i < watch->look_count; i++) {
		CHECK(watch->looks[i]->place == i);
		CHECK(watch->looks[(i - (i > 0)) / 2]->look_ns <= watch->looks[i]->look_ns);
	}
	CHECK(watch->look_count == to_look_at);
	CHECK(set_aside == watch->set_aside);
}

/* BPF's entry of a process mostly agrees with its record. */
static void take_record(struct watch *watch)
{
	pid_t pid = FIRST_PID + input__number(&input, 1) % PIDS;
	struct target *target = entry_of(pid);
	struct process_record record = {
		.kind = RECORD_PROCESS,
		.event = input__number(&input, 1) % 6,
		.pid = pid,
		.kernel_pid = pid,
		.serial = 1000 + input__number(&input, 1) % SERIALS,
		.before = 1000 + input__number(&input, 1) % SERIALS,
		.state = input__number(&input, 1) % 6,
		.image = input__number(&input, 1) % 4,
		.waiting = input__number(&input, 1) % 4,
		.start = input__number(&input, 1),
		.file.inode = input__number(&input, 1),
		.bias = input__number(&input, 8),
		.argument_bytes = input__number(&input, 1),
	};

	input__take(&input, record.arguments, record.argument_bytes);
	if (input__number(&input, 1) % 4)
		*target = (struct target){ .serial = record.serial,
					   .state = record.state,
					   .waiting = record.waiting };
	if (record.event == PROCESS_ENDED && input__number(&input, 1) % 4)
		memset(target, 0, sizeof(*target));
	watch__note(watch, &record);
}

/* A mapped file, reported by the other source of mappings. */
static void take_file(struct watch *watch)
{
	const struct mapped_file file = { .part.inode = input__number(&input, 1) % 4,
					  .start = input__number(&input, 1) % 4 };

	pid_t pid = FIRST_PID + input__number(&input, 1) % PIDS;

	watch__urges_file(watch, pid, &file);
	watch__note_file(watch, pid, &file);
}

static void end_all(struct watch *watch)
{
	while (watch->all) {
		const struct watched *watched = watch->all;
		const struct process_record record = { .kind = RECORD_PROCESS,
						       .event = PROCESS_ENDED,
						       .pid = watched->pid,
						       .kernel_pid = watched->key.kernel_pid,
						       .serial = watched->key.serial };

		watch__note(watch, &record);
	}
}

/* On the clock of input.c. */
static void pause_ms(uint64_t milliseconds)
{
	const struct timespec pause = { 0, milliseconds * NS_PER_MS };

	nanosleep(&pause, NULL);
}

static void go_through(struct watch *watch, struct symbolizer *symbolizer)
{
	for (int i = 0; i < STEPS_MAX && input.left; i++) {
		enum step step = input__number(&input, 1) % 8;

		if (step == LOSE_SOME)
			kernel.untold++;
		if (step == MAP_FILE) {
			take_file(watch);
		} else if (step < RECORD) {
			pause_ms(input__number(&input, 1));
			watch__look(watch, now_ns());
			symbolizer__settle(symbolizer);
		} else {
			take_record(watch);
		}
		check_tables(watch);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct profile *profile = profile__new();
	const struct symbolizer_options naming = { 0 };
	struct symbolizer *symbolizer = symbolizer__new(profile, &naming);
	struct counts *counts = counts__new(profile, symbolizer);
	struct process_filter filter = { 0 };
	struct ledger ledger = { 0 };
	struct watch *watch;

	log__set_level(LOG_ERROR);
	memset(&kernel, 0, sizeof(kernel));
	input = (struct input){ bytes, size };
	memory__set(bytes, size, 0);
	kernel.sees_mappings = input__number(&input, 1) % 2;
	if (input__number(&input, 1) % 2)
		CHECK(!process_filter__add(&filter, "uid", "1"));
	watch = watch__new(input__number(&input, 1) % 3, &filter, PIDS, false);
	CHECK(!watch__open(watch, NULL, 0));
	CHECK(!watch__begin(watch, NULL, symbolizer, counts, now_ns()));
	go_through(watch, symbolizer);
	end_all(watch);
	watch__end(watch);
	watch__account(watch, &ledger);
	CHECK(ledger.outcomes[OUTCOME_NOT_KNOWN_YET] == 0);
	CHECK(ledger.events == profile->ledgers[0].outcomes[OUTCOME_NOT_KNOWN_YET] +
				       profile->ledgers[0].outcomes[OUTCOME_NO_INTERPRETER] +
				       profile->ledgers[0].outcomes[OUTCOME_NOT_SUPPORTED]);
	counts__free(counts);
	symbolizer__free(symbolizer);
	profile__free(profile);
	watch__free(watch);
	process_filter__free(&filter);
	return 0;
}
