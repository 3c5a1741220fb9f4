// SPDX-License-Identifier: BSD-2-Clause
/*
 * The child is no Python.  To the kernel side it is one that has no interpreter
 * yet: its pointer to the newest one is there to be read, and is NULL.  A sample
 * that says so went all the way: event, program, the target's memory, counter,
 * ring buffer, and back.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check/trial.h"
#include "options/options.h"
#include "python/runtime.h"
#include "recording/privileges.h"
#include "sampling/clock.h"
#include "sampling/periods.h"
#include "sampling/sampler.h"
#include "sampling/targets.h"
#include "system/open_files.h"
#include "target/target_memory.h"

/* What a sample takes is some ten milliseconds of CPU time; a busy machine may give it late. */
#define CPU_S_ENOUGH 0.3
#define LOOKS	     1000
#define LOOK_NS	     10000000

/* What the child has in the place of a Python's interpreters; at the same address, as it is forked.
 */
static volatile uint64_t newest_interpreter;

static void spin(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		newest_interpreter = 0;
}

/* The child's process ID, or -errno. */
static pid_t start_child(void)
{
	pid_t child = fork();

	if (child == 0)
		spin();
	return child < 0 ? -errno : child;
}

static void note(void *context, const struct process_record *record)
{
	(void)context;
	(void)record;
}

static void learn(void *context, const struct code_record *record, size_t size)
{
	(void)context;
	(void)record;
	(void)size;
}

static uint64_t define(void *context, const struct definition *definition)
{
	(void)context;
	(void)definition;
	return 0;
}

static void count(void *context, uint64_t name, uint64_t samples, enum outcome outcome)
{
	struct trial *trial = context;

	(void)name;
	trial->samples += samples;
	trial->outcome = outcome;
}

static bool has_arrived(const struct trial *trial)
{
	return trial->samples && trial->outcome == OUTCOME_NO_INTERPRETER;
}

/* 0 where it cannot be told. */
static double cpu_seconds(pid_t child)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(child, &clock) || clock_gettime(clock, &used))
		return 0;
	return used.tv_sec + used.tv_nsec / 1e9;
}

static void await_sample(struct trial *trial, struct sampler *sampler, pid_t child)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	double end_s = cpu_seconds(child) + CPU_S_ENOUGH, now_s = 0;

	for (int i = 0; i < LOOKS && now_s < end_s && !has_arrived(trial); i++) {
		nanosleep(&pause, NULL);
		now_s = cpu_seconds(child);
		sampler__drain(sampler);
		sampler__harvest(sampler);
	}
}

static double choose_rate(double *limit)
{
	*limit = privileges__rate_limit();
	if (*limit <= 0)
		*limit = HUGE_VAL;
	return fmin(RATE_HZ_DEFAULT, periods__highest_rate(*limit));
}

/* The events alone: they tell something even where the program cannot be loaded. */
static int open_events(void)
{
	struct clock *clock;
	double limit, rate = choose_rate(&limit);
	int error = clock__open(rate, limit, &clock);

	if (!error)
		clock__free(clock);
	return error;
}

static int start_sampling(struct sampler *sampler, pid_t child)
{
	struct target_map *map = sampler__targets(sampler);
	struct target_key key = { .serial = target_map__new_serial(map) };
	struct runtime runtime = { .interpreters = (uintptr_t)&newest_interpreter };
	double limit, rate = choose_rate(&limit);
	pid_t namesake;
	int error = sampler__find_kernel_pid(sampler, child, &key.kernel_pid, &namesake);

	if (!error)
		error = target_map__put(map, key, &runtime, &(uint64_t){ 0 });
	return error ? error : sampler__start(sampler, rate, limit);
}

static void sample_child(struct trial *trial, pid_t child)
{
	const struct sampler_sink sink = {
		.note = note,
		.learn = learn,
		.define = define,
		.count = count,
		.context = trial,
	};
	const struct sampler_scope scope = { .processes = TARGETS_MAX };
	struct sampler *sampler;

	trial->opening = open_events();
	trial->loading = sampler__open(&sink, &scope, &sampler);
	trial->mappings = sampler__try_mappings();
	if (trial->loading)
		return;
	trial->compiled = sampler__is_compiled(sampler);
	trial->following = sampler__follow(sampler);
	if (!trial->following)
		trial->starting = start_sampling(sampler, child);
	if (!trial->following && !trial->starting)
		await_sample(trial, sampler, child);
	sampler__free(sampler);
}

static void look_at_child(struct trial *trial, pid_t child)
{
	struct runtime runtime;
	uint64_t word;

	trial->finding = runtime__find(child, &runtime);
	/* That it is no Python is what is to be found. */
	if (trial->finding == -ENOEXEC)
		trial->finding = 0;
	trial->reading =
		target_memory__read(child, (uintptr_t)&newest_interpreter, &word, sizeof(word));
}

void trial__run(struct trial *trial)
{
	pid_t child;

	memset(trial, 0, sizeof(*trial));
	child = start_child();
	if (child < 0) {
		trial->child = child;
		return;
	}
	trial->files = open_files__allow(1);
	look_at_child(trial, child);
	sample_child(trial, child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}
