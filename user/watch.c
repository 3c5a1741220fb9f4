// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "architecture.h"
#include "command.h"
#include "cpus.h"
#include "log.h"
#include "targets.h"
#include "thread_states.h"
#include "watch.h"
#include "xalloc.h"

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

/* How often a started program is asked whether it is a Python by now: seldomer and seldomer while
 * it stays the same. */
#define LOOK_NS	    NS_PER_MS
#define LOOK_NS_MAX (50 * NS_PER_MS)
#define PATIENCE_NS (10 * NS_PER_S)

/* How often it is asked whether a process is still the program it was; that costs, and is asked
 * only upon errors. */
#define RENEW_NS     (100 * NS_PER_MS)
#define RENEW_NS_MAX (10 * NS_PER_S)

/* How many ends are taken note of at once. */
#define ENDS_MAX 64

struct watch {
	struct sampler *sampler;
	struct symbolizer *symbolizer;
	struct thread_states *thread_states;
	struct target_process *targets;
	size_t count, living;
	int ends; /* epoll of the living ones */
	double cpu_before_s;
	/* When each is next due. */
	int64_t renew_ns, renew_wait_ns;
	uint64_t lost_targets; /* samples whose process's Python, or thread, was not where it was */
	/* The program that was started: */
	char **command; /* NULL: none */
	pid_t started, child;
	int64_t start_ns, look_ns, look_wait_ns;
	uint64_t signature;
	bool unsupported; /* it runs a Python that is not */
	bool warned;
};

struct watch *watch__new(void)
{
	struct watch *watch = xcalloc(1, sizeof(*watch));

	watch->ends = -1;
	return watch;
}

void watch__free(struct watch *watch)
{
	if (!watch)
		return;
	for (size_t i = 0; i < watch->count; i++)
		target__close(&watch->targets[i]);
	thread_states__free(watch->thread_states);
	free(watch->targets);
	if (watch->ends >= 0)
		close(watch->ends);
	free(watch);
}

enum exit_status watch__open(struct watch *watch, const pid_t *pids, size_t count)
{
	enum exit_status status = STATUS_WRITTEN;
	size_t silent = 0;

	/* One more, for a program that is started. */
	watch->targets = xcalloc(count + 1, sizeof(*watch->targets));
	for (size_t i = 0; i < count && !status; i++) {
		struct target_process *target = &watch->targets[watch->count];

		status = target__open(pids[i], target);
		if (!status)
			watch->count++;
		if (!target->silent)
			continue;
		target__close(target);
		status = STATUS_WRITTEN;
		silent++;
	}
	if (!silent || watch->count || status)
		return status;
	log__error("no process answers that could be profiled: name others, or look what these "
		   "wait for: cat /proc/PID/stack");
	return STATUS_FAILED;
}

/* Tells the kernel of TARGET. */
static int add_to_kernel(struct watch *watch, struct target_process *target)
{
	pid_t pid = target->process.pid, namesake;
	int error = sampler__find_kernel_pid(watch->sampler, pid, &target->kernel_pid, &namesake);

	/* Its end is noticed like any later one. */
	if (error)
		return error == -ESRCH ? 0 : error;
	if (namesake && namesake != pid)
		log__info("process %d is the one of this PID namespace; the one that is %d on the "
			  "host is process %d here",
			  pid, pid, namesake);
	return sampler__add_target(watch->sampler, target->kernel_pid, &target->runtime);
}

/* Has the kernel take note of the thread pointers of threads that it did not have to switch out
 * yet. */
static void note_threads(void)
{
	if (ARCHITECTURE.is_noted_late)
		cpus__visit();
}

/* Has target I sampled. */
static int sample_target(struct watch *watch, size_t i)
{
	struct target_process *target = &watch->targets[i];
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = i };
	double used_s = target__cpu_seconds(target);

	if (epoll_ctl(watch->ends, EPOLL_CTL_ADD, target->pidfd, &event))
		return -errno;
	watch->cpu_before_s += used_s > 0 ? used_s : 0;
	symbolizer__add_target(watch->symbolizer, target);
	watch->living++;
	return add_to_kernel(watch, target);
}

int watch__begin(struct watch *watch, struct sampler *sampler, struct symbolizer *symbolizer,
		 int64_t now)
{
	int error = 0;

	watch->sampler = sampler;
	watch->symbolizer = symbolizer;
	watch->thread_states = thread_states__new(sampler);
	watch->look_ns = INT64_MAX;
	watch->renew_wait_ns = RENEW_NS;
	watch->renew_ns = now + RENEW_NS;
	watch->ends = epoll_create1(EPOLL_CLOEXEC);
	if (watch->ends < 0)
		return -errno;
	note_threads();
	for (size_t i = 0; i < watch->count && !error; i++)
		error = sample_target(watch, i);
	thread_states__look(watch->thread_states, watch->targets, watch->count, now);
	return error;
}

enum exit_status watch__start_command(struct watch *watch, char **command, int64_t now)
{
	pid_t child = command__start(command);

	if (child < 0) {
		log__error("cannot start %s: %s: what follows -- is to be a program's path, or a "
			   "name in PATH",
			   command[0], strerror(-child));
		return STATUS_FAILED;
	}
	watch->command = command;
	watch->started = watch->child = child;
	watch->start_ns = watch->look_ns = now;
	watch->look_wait_ns = LOOK_NS;
	return STATUS_WRITTEN;
}

int watch__fd(const struct watch *watch)
{
	return watch->ends;
}

void watch__note_ends(struct watch *watch)
{
	struct epoll_event events[ENDS_MAX];
	int count = epoll_wait(watch->ends, events, ENDS_MAX, 0);

	if (count > 0)
		sampler__drain(watch->sampler);
	for (int i = 0; i < count; i++) {
		struct target_process *target = &watch->targets[events[i].data.u64];

		sampler__remove_target(watch->sampler, target->kernel_pid);
		symbolizer__end_target(watch->symbolizer, target);
		close(target->pidfd);
		target->pidfd = -1;
		watch->living--;
	}
}

/* Looks whether the started program is a Python by now. */
static void look_for_python(struct watch *watch, int64_t now)
{
	struct target_process *target = &watch->targets[watch->count];
	uint64_t before = watch->signature;
	int error = target__find_started(watch->child, target, &watch->signature);

	watch->look_wait_ns = watch->signature != before ? LOOK_NS : 2 * watch->look_wait_ns;
	if (watch->look_wait_ns > LOOK_NS_MAX)
		watch->look_wait_ns = LOOK_NS_MAX;
	watch->look_ns = now + watch->look_wait_ns;
	if (!error) {
		watch->look_ns = INT64_MAX;
		note_threads();
		if (sample_target(watch, watch->count++))
			log__warning("process %d cannot be sampled", watch->child);
	} else if (error == -ENOTSUP) {
		watch->unsupported = true;
	} else if (!watch->warned && now - watch->start_ns > PATIENCE_NS) {
		watch->warned = true;
		log__warning("process %d has not begun to run a Python", watch->child);
	}
}

static uint64_t count_lost_targets(const struct sampler *sampler)
{
	uint64_t lost = sampler__outcomes(sampler, OUTCOME_NO_INTERPRETER) +
			sampler__outcomes(sampler, OUTCOME_INTERPRETER_FAULT) +
			sampler__outcomes(sampler, OUTCOME_THREAD_FAULT);

	/* A thread that was not noted yet is like one that runs no Python. */
	return ARCHITECTURE.is_noted_late ? lost + sampler__outcomes(sampler, OUTCOME_NO_PYTHON)
					  : lost;
}

/* Takes note of another Python in any process; returns whether there was one. */
static bool renew_targets(struct watch *watch)
{
	bool renewed = false;

	for (size_t i = 0; i < watch->count; i++) {
		struct target_process *target = &watch->targets[i];

		if (target->pidfd < 0 || !target__renew(target))
			continue;
		renewed = true;
		note_threads();
		symbolizer__renew_target(watch->symbolizer, target);
		sampler__add_target(watch->sampler, target->kernel_pid, &target->runtime);
	}
	if (renewed)
		sampler__begin_epoch(watch->sampler);
	return renewed;
}

/* Looks whether a process whose Python is not where it was has called exec. */
static void follow_exec(struct watch *watch, int64_t now)
{
	uint64_t lost = count_lost_targets(watch->sampler);

	if (lost != watch->lost_targets) {
		watch->lost_targets = lost;
		note_threads();
		watch->renew_wait_ns = renew_targets(watch) ? RENEW_NS : 2 * watch->renew_wait_ns;
		if (watch->renew_wait_ns > RENEW_NS_MAX)
			watch->renew_wait_ns = RENEW_NS_MAX;
	}
	watch->renew_ns = now + watch->renew_wait_ns;
}

/* Takes note of the child's end. */
static void reap(struct watch *watch)
{
	int status;

	if (!watch->child || waitpid(watch->child, &status, WNOHANG) != watch->child)
		return;
	if (WIFSIGNALED(status))
		log__info("process %d was ended by signal %d (%s)", watch->child, WTERMSIG(status),
			  strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		log__info("process %d ended with status %d", watch->child, WEXITSTATUS(status));
	watch->child = 0;
}

int64_t watch__due(const struct watch *watch)
{
	return watch->look_ns;
}

void watch__look(struct watch *watch, int64_t now)
{
	if (watch->child && now >= watch->look_ns)
		look_for_python(watch, now);
	if (now >= watch->renew_ns)
		follow_exec(watch, now);
	thread_states__look(watch->thread_states, watch->targets, watch->count, now);
	reap(watch);
}

bool watch__is_over(const struct watch *watch)
{
	bool waiting = watch->child && !watch->count;

	return watch->unsupported || (!watch->living && !waiting);
}

pid_t watch__first_pid(const struct watch *watch)
{
	return watch->count ? watch->targets[0].process.pid : watch->started;
}

pid_t watch__child(const struct watch *watch)
{
	return watch->child;
}

double watch__cpu_seconds(const struct watch *watch)
{
	double used_s = -watch->cpu_before_s;

	for (size_t i = 0; i < watch->count; i++) {
		double now_s = target__cpu_seconds(&watch->targets[i]);

		if (now_s < 0)
			return -1;
		used_s += now_s;
	}
	return used_s;
}

enum exit_status watch__explain_empty(const struct watch *watch)
{
	if (watch->unsupported)
		return target__explain(watch->started, &watch->targets[0].runtime, -ENOTSUP);
	if (watch->command && !watch->count) {
		log__error("%s is not a Python, or ended before it ran any: name an interpreter, "
			   "as in -- python3 app.py",
			   watch->command[0]);
		return STATUS_NOT_PYTHON;
	}
	if (!watch->living) {
		log__error("process %d ended before a sample came: it used no CPU since %s, or "
			   "too little for the rate, which -r raises",
			   watch__first_pid(watch),
			   watch->command ? "its start" : "sampling began");
		return STATUS_NO_SAMPLE;
	}
	log__warning("no samples: %s", watch__cpu_seconds(watch) > 0
					       ? "the time was too short for the rate"
					       : "the process used no CPU in that time");
	return STATUS_WRITTEN;
}
