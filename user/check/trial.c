// SPDX-License-Identifier: BSD-2-Clause
/*
 * The child is not a Python process.  To the BPF program it looks like a Python without an
 * interpreter: the pointer to the newest interpreter can be read, and is NULL.  A sample with that
 * outcome proves that all parts work: the event, the program, the target's memory, the counter and
 * the ring buffer.
 *
 * The child ends when its parent closes a pipe.  The kernel closes it if the parent crashes, even
 * before the child runs.  No signal is needed, because a security module or a container's seccomp
 * profile may refuse signals.
 *
 * A separate process tries all that takes memory.  If the cgroup has too little, the kernel kills
 * that process first, and the user still gets a message.  If no more processes are allowed, the
 * caller tries it itself.
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

#include "base/xalloc.h"
#include "check/trial.h"
#include "options/options.h"
#include "python/runtime.h"
#include "reading/reader.h"
#include "reading/target_memory.h"
#include "recording/privileges.h"
#include "events/events.h"
#include "events/periods.h"
#include "sampling/programs.h"
#include "sampling/sampler.h"
#include "sampling/targets.h"
#include "system/limits.h"
#include "unwind/chunks.h"

/* A sample takes some ten milliseconds of the child's CPU time, which may come late. */
#define CPU_S_ENOUGH 0.3
#define LOOKS	     1000
#define LOOK_NS	     10000000

/* The child's rounds between two looks at the pipe, which take some milliseconds. */
#define ROUNDS 1000000

/* Stands for the pointer to the newest interpreter.  A forked child has it at the same address. */
static volatile uint64_t newest_interpreter;

/* Child processes that end when END, one end of a pipe, is closed. */
struct children {
	unsigned int count;
	pid_t last;
	int end;
};

/* The child's life: spins if it is BUSY, until the other end of the pipe END is closed. */
static void live(int end, bool busy)
{
	struct pollfd closed = { .fd = end };

	do {
		for (int i = 0; i < ROUNDS && busy; i++)
			newest_interpreter = 0;
	} while (!poll(&closed, 1, busy ? 0 : -1));
	/* Skips the parent's atexit() functions. */
	_exit(0);
}

static void end_children(struct children *children)
{
	close(children->end);
	while (children->count)
		if (waitpid(-1, NULL, 0) >= 0 || errno != EINTR)
			children->count--;
}

/* Starts COUNT children.  If that fails, ends those that run, and returns -errno. */
static int start_children(struct children *children, unsigned int count, bool busy)
{
	int ends[2], error = 0;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	*children = (struct children){ .end = ends[1] };
	while (children->count < count && !error) {
		children->last = fork();
		error = children->last < 0 ? -errno : 0;
		if (children->last == 0) {
			close(ends[1]);
			live(ends[0], busy);
		}
		children->count += !error;
	}
	close(ends[0]);
	if (error)
		end_children(children);
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

/* 0 if it is unknown. */
static double cpu_seconds(pid_t child)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(child, &clock) || clock_gettime(clock, &used))
		return 0;
	return used.tv_sec + used.tv_nsec / 1e9;
}

static void await_sample(struct trial *trial, struct sampler *sampler)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	double end_s = cpu_seconds(trial->pid) + CPU_S_ENOUGH, now_s = 0;

	for (int i = 0; i < LOOKS && now_s < end_s; i++) {
		if (trial->samples && trial->outcome == OUTCOME_NO_INTERPRETER)
			break;
		nanosleep(&pause, NULL);
		now_s = cpu_seconds(trial->pid);
		sampler__drain(sampler);
		sampler__harvest(sampler);
	}
}

static int start_sampling(struct sampler *sampler, pid_t child, struct event_rate rate)
{
	struct target_map *map = sampler__targets(sampler);
	struct target_key key = { .serial = target_map__new_serial(map) };
	struct runtime runtime = { .interpreters = (uintptr_t)&newest_interpreter };
	pid_t namesake;
	int error = sampler__find_kernel_pid(sampler, child, &key.kernel_pid, &namesake);

	if (!error)
		error = target_map__put(map, key, &runtime, &(uint64_t){ 0 });
	return error ? error : sampler__start(sampler, rate);
}

/* Tries to add a chunk to the unwind tables: 0 or -errno. */
static int try_chunk(const struct sampler *sampler)
{
	struct chunks *chunks = chunks__new(sampler__unwinder_maps(sampler).chunks, CHUNK_SIZE);
	uint32_t number;
	int error = chunks__take(chunks, CHUNK_SIZE, 1, true, &number);

	chunks__free(chunks);
	return error;
}

/* Loads the program with native frames, or without them if that fails. */
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

static void sample_child(struct trial *trial)
{
	const struct sampler_sink sink = {
		.note = note,
		.learn = learn,
		.define = define,
		.count = count,
		.context = trial,
	};
	const struct event clock = event__default();
	struct event_rate rate = { .limit_hz = privileges__rate_limit() ?: HUGE_VAL };
	struct sampler *sampler;
	void *run;

	rate.hz = fmin(RATE_HZ_DEFAULT, periods__highest_rate(rate.limit_hz));
	/* The event alone gives a result even if the program cannot be loaded. */
	trial->opening = clock.source->open(&clock, rate, &run);
	if (!trial->opening)
		clock.source->close(run);
	trial->loading = load(trial, &sink, &sampler);
	trial->mappings = programs__try(MAPPING_FUNCTION, BPF_TRACE_FENTRY);
	trial->switches = programs__try("sched_switch", BPF_TRACE_RAW_TP)
				  ?: programs__try("task", BPF_TRACE_ITER);
	if (trial->loading)
		return;
	trial->compiled = sampler__is_compiled(sampler);
	trial->following = sampler__follow(sampler);
	if (!trial->following)
		trial->starting = start_sampling(sampler, trial->pid, rate);
	if (!trial->following && !trial->starting)
		await_sample(trial, sampler);
	sampler__free(sampler);
}

static void look_at_child(void *context)
{
	struct trial *trial = context;
	struct runtime runtime;
	uint64_t word;

	trial->finding = runtime__find(trial->pid, &runtime);
	/* The right answer is that it is not a Python. */
	if (trial->finding == -ENOEXEC)
		trial->finding = 0;
	trial->reading = target_memory__read(trial->pid, (uintptr_t)&newest_interpreter, &word,
					     sizeof(word));
}

static void try_all(struct trial *trial)
{
	struct children children;

	trial->child = start_children(&children, 1, true);
	if (trial->child)
		return;
	trial->pid = children.last;
	/* If only one more task is allowed, the child has it: the check goes on in this thread. */
	if (!reader__begin())
		look_at_child(trial);
	else
		reader__do_alone(look_at_child, trial);
	sample_child(trial);
	end_children(&children);
}

/* Tries all, in a process that ends when PARENT does. */
static void try_for(pid_t parent, struct trial *trial)
{
	FILE *file;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/* The kernel kills this process before others of the cgroup.  Raising the score needs no
	 * privilege. */
	file = fopen("/proc/self/oom_score_adj", "we");
	if (file) {
		fputs("1000", file);
		fclose(file);
	}
	try_all(trial);
	/* Skips the parent's atexit() functions. */
	_exit(trial->child ? 1 : 0);
}

/* Tries all in a process of its own, which writes to SHARED memory.  Returns false if that process
 * did not do it. */
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

const struct trial *trial__run(unsigned int company)
{
	struct trial *trial = mmap(NULL, sizeof(*trial), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct children children;

	if (trial == MAP_FAILED)
		out_of_memory();
	/* The results of the steps that a killed trial does not reach. */
	*trial = (struct trial){ .finding = -ENOMEM,
				 .reading = -ENOMEM,
				 .opening = -ENOMEM,
				 .loading = -ENOMEM,
				 .native = -ENOMEM,
				 .switches = -ENOMEM,
				 .mappings = -ENOMEM };
	trial->files = limits__raise_files(1);
	if (!try_apart(trial)) {
		*trial = (struct trial){ .files = trial->files };
		try_all(trial);
	}
	if (!trial->child)
		trial->thread = reader__begin();
	if (!trial->child && !trial->thread) {
		trial->company = start_children(&children, company, false);
		if (!trial->company)
			end_children(&children);
	}
	return trial;
}
