// SPDX-License-Identifier: BSD-2-Clause
/*
 * The child is no Python.  To the kernel side it is one that has no interpreter
 * yet: its pointer to the newest one is there to be read, and is NULL.  A sample
 * that says so went all the way: event, program, the target's memory, counter,
 * ring buffer, and back.
 *
 * It ends when its parent closes a pipe, which the kernel does for one that crashes, be
 * it before the child has begun: that takes no signal, which a security module or a
 * container's seccomp profile may refuse, here or there.
 *
 * All that takes memory is tried by a process of its own, which the kernel ends first where a
 * control group has too little: who asks is to be told, not killed.  Where there may be no more
 * processes, it is tried without.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check/trial.h"
#include "options/options.h"
#include "python/runtime.h"
#include "recording/privileges.h"
#include "events/events.h"
#include "events/periods.h"
#include "sampling/sampler.h"
#include "sampling/targets.h"
#include "system/open_files.h"
#include "target/deputy.h"
#include "target/target_memory.h"
#include "unwind/chunks.h"

/* What a sample takes is some ten milliseconds of CPU time; a busy machine may give it late. */
#define CPU_S_ENOUGH 0.3
#define LOOKS	     1000
#define LOOK_NS	     10000000

/* How often it goes round before it looks whether it is to end: some milliseconds. */
#define ROUNDS 1000000

/* What the child has in the place of a Python's interpreters; at the same address, as it is forked.
 */
static volatile uint64_t newest_interpreter;

/* Until nobody has the other end of the pipe END; or it cannot be told. */
static void spin(int end)
{
	struct pollfd closed = { .fd = end };

	do {
		for (int i = 0; i < ROUNDS; i++)
			newest_interpreter = 0;
	} while (!poll(&closed, 1, 0));
	/* Without what its parent has registered for its own end. */
	_exit(0);
}

/* The child's process ID, or -errno.  It ends when *END is closed. */
static pid_t start_child(int *end)
{
	int ends[2], error;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	child = fork();
	error = -errno;
	if (child == 0) {
		close(ends[1]);
		spin(ends[0]);
	}
	close(ends[0]);
	*end = ends[1];
	if (child > 0)
		return child;
	close(*end);
	return error;
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

static void count(void *context, uint64_t name, uint32_t event, struct amount amount,
		  enum outcome outcome, bool old)
{
	struct trial *trial = context;

	(void)name;
	(void)event;
	(void)old;
	trial->samples += amount.count;
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
	const struct event event = event__default();
	struct event_rate rate;
	void *run;
	int error;

	rate.hz = choose_rate(&rate.limit_hz);
	error = event.source->open(&event, rate, &run);
	if (!error)
		event.source->close(run);
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
	return error ? error : sampler__start(sampler, (struct event_rate){ rate, limit });
}

/* Whether user space can add to the tables by which BPF walks. */
static int try_chunk(const struct sampler *sampler)
{
	struct chunks *chunks = chunks__new(sampler__unwinder_maps(sampler).chunks, CHUNK_SIZE);
	uint32_t number;
	int error = chunks__take(chunks, CHUNK_SIZE, 1, true, &number);

	chunks__free(chunks);
	return error;
}

/* With native frames, or without where only these do not work. */
static int load(struct trial *trial, const struct sampler_sink *sink, struct sampler **sampler)
{
	struct sampler_scope scope = { .processes = TARGETS_MAX,
				       .native = true,
				       .events = { event__default() },
				       .event_count = 1 };

	trial->native = sampler__open(sink, &scope, sampler);
	if (!trial->native) {
		trial->native = try_chunk(*sampler);
		return 0;
	}
	scope.native = false;
	return sampler__open(sink, &scope, sampler);
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
	struct sampler *sampler;

	trial->opening = open_events();
	trial->loading = load(trial, &sink, &sampler);
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

struct look {
	struct trial *trial;
	pid_t child;
};

static void look_at_child(void *context)
{
	struct look *look = context;
	struct trial *trial = look->trial;
	struct runtime runtime;
	uint64_t word;

	trial->finding = runtime__find(look->child, &runtime);
	/* That it is no Python is what is to be found. */
	if (trial->finding == -ENOEXEC)
		trial->finding = 0;
	trial->reading = target_memory__read(look->child, (uintptr_t)&newest_interpreter, &word,
					     sizeof(word));
}

/* It waits until nobody has the other end of the pipe END. */
static void idle(int end)
{
	struct pollfd closed = { .fd = end };

	while (poll(&closed, 1, -1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static void await_ends(unsigned int count)
{
	while (count)
		if (waitpid(-1, NULL, 0) >= 0 || errno != EINTR)
			count--;
}

/* Whether COUNT processes can be there at once: 0 or -errno. */
static int start_company(unsigned int count)
{
	unsigned int started = 0;
	int ends[2], error = 0;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	while (started < count && !error) {
		pid_t child = fork();

		error = child < 0 ? -errno : 0;
		if (child == 0) {
			close(ends[1]);
			idle(ends[0]);
		}
		started += child > 0;
	}
	close(ends[0]);
	close(ends[1]);
	await_ends(started);
	return error;
}

static void try_all(struct trial *trial)
{
	struct look look = { .trial = trial };
	int end = -1;

	look.child = start_child(&end);
	trial->child = look.child < 0 ? look.child : 0;
	if (trial->child)
		return;
	/* Where one more is all that is allowed, it is there when the child is no more. */
	if (!deputy__begin())
		look_at_child(&look);
	else
		deputy__do_alone(look_at_child, &look);
	sample_child(trial, look.child);
	close(end);
	await_ends(1);
}

/* Has the kernel end this process before others of its control group; anybody may ask for that. */
static void come_first(void)
{
	FILE *file = fopen("/proc/self/oom_score_adj", "we");

	if (!file)
		return;
	fputs("1000", file);
	fclose(file);
}

/* Tries all in a process that ends with PARENT, the one that asks. */
static void try_for(pid_t parent, struct trial *trial)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	come_first();
	try_all(trial);
	/* Without what its parent has registered for its own end. */
	_exit(trial->child ? 1 : 0);
}

/* Whether that could be tried apart, in SHARED memory; else it is to be tried here. */
static bool try_apart(struct trial *shared)
{
	pid_t parent = getpid(), child = fork();
	int status = 0;

	if (child < 0)
		return false;
	if (child == 0)
		try_for(parent, shared);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	shared->killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	return shared->killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void try_guarded(struct trial *trial)
{
	struct trial *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool told = false;

	if (shared != MAP_FAILED) {
		/* What it does not come to, where it is killed. */
		*shared = (struct trial){ .finding = -ENOMEM,
					  .reading = -ENOMEM,
					  .opening = -ENOMEM,
					  .loading = -ENOMEM,
					  .native = -ENOMEM,
					  .mappings = -ENOMEM };
		told = try_apart(shared);
		if (told)
			*trial = *shared;
		munmap(shared, sizeof(*shared));
	}
	if (!told)
		try_all(trial);
}

void trial__run(struct trial *trial, const struct trial_needs *needs)
{
	enum exit_status files = open_files__allow(1);

	*trial = (struct trial){ 0 };
	try_guarded(trial);
	trial->files = files;
	trial->needs = *needs;
	if (trial->child)
		return;
	trial->thread = deputy__begin();
	if (!trial->thread)
		trial->company = start_company(needs->company);
}
