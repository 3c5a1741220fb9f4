// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/now.h"
#include "reading/process.h"
#include "watch/discovery.h"
#include "watch/scan.h"

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

/* The first scan is waited for up to this time, so that sampling begins with what runs already. */
#define PATIENCE_NS NS_PER_S

/* After a scan, none begins for this many times its duration. */
#define REST_FACTOR 10

/* Bounds the passes of a scan if processes keep starting others. */
#define PASSES_MAX 64

/* A scan that could not see all processes is repeated after this time. */
#define AGAIN_NS (100 * NS_PER_MS)

/* How often all processes are scanned if the kernel does not report mappings. */
#define ASK_NS (10 * NS_PER_S)

/* Whether BPF follows process PID, but could not report it. */
static bool is_untold(const struct watch *watch, pid_t pid)
{
	pid_t kernel_pid, namesake;

	return !sampler__find_kernel_pid(watch->sampler, pid, &kernel_pid, &namesake) &&
	       target_map__has_untold(watch->map, kernel_pid);
}

/* Whether the recording is to follow process PID. */
static bool is_wanted(const struct watch *watch, pid_t pid, const struct process *process)
{
	if (process->kernel_thread || process->zombie)
		return false;
	return watch->following == FOLLOW_ALL ||
	       watched__of_pid(&watch->watched, process->parent) || is_untold(watch, pid);
}

/* Begins to watch process PID, if the recording is to follow it and does not yet.  0 with *WATCHED,
 * or -errno. */
static int watch_wanted(struct watch *watch, pid_t pid, int64_t now, struct watched **watched)
{
	struct process process;
	int error;

	if (pid == getpid() || watched__of_pid(&watch->watched, pid))
		return -EEXIST;
	error = process__inspect(pid, &process);
	if (!error && !is_wanted(watch, pid, &process))
		error = -ESRCH;
	return error ? error : registry__add(watch, pid, now, watched);
}

/* Plans another scan if ERROR, a lack of open files, hid processes from this one. */
static void scan_again(struct watch *watch, int error, int64_t now)
{
	if (registry__lacks_files(watch, error))
		scan__want(&watch->scan, now + AGAIN_NS);
}

/* Looks at process PID, if it is not watched yet.  Returns whether it is watched from now on. */
static bool look_at(struct watch *watch, pid_t pid, int64_t now)
{
	struct watched *watched;
	int error = watch_wanted(watch, pid, now, &watched);

	scan_again(watch, error, now);
	if (error || !registry__claim(watch, watched))
		return false;
	watched->is_found = true;
	discovery__look_at(watch, watched, now);
	watched = watched__of_pid(&watch->watched, pid);
	return watched && !watched->is_done;
}

static void begin_pass(struct watch *watch, int64_t now)
{
	struct scan *scan = &watch->scan;

	scan__free(scan);
	scan->next = scan->found = 0;
	scan->crowded = 0;
	scan->pids = process__list(&scan->count);
	if (!scan->pids)
		scan_again(watch, -errno, now);
}

static void begin(struct watch *watch, int64_t now)
{
	struct scan *scan = &watch->scan;

	scan->begin_ns = 0;
	if (watch->following == FOLLOW_NONE)
		return;
	scan->under_way = true;
	scan->passes = 0;
	scan->took_ns = 0;
	begin_pass(watch, now);
}

static void end(struct watch *watch)
{
	struct scan *scan = &watch->scan;

	scan__free(scan);
	scan->under_way = false;
	scan->rest_ns = now_ns() + REST_FACTOR * scan->took_ns;
	log__debug("scanned all processes in %lld ms: %zu watched",
		   (long long)(scan->took_ns / NS_PER_MS), watched__count(&watch->watched));
}

/* BPF does not report a process that starts during the scan if its parent was not found yet.  So
 * there is another pass until one finds nothing new. */
static void go_on(struct watch *watch, int64_t now)
{
	struct scan *scan = &watch->scan;
	int64_t begin_ns = now_ns(), passed_ns = 0;
	bool ended = false;

	while (!ended && passed_ns < LOOKS_SLICE_NS) {
		if (scan->next < scan->count)
			scan->found += look_at(watch, scan->pids[scan->next++], now);
		else if (scan->found && ++scan->passes < PASSES_MAX)
			begin_pass(watch, now);
		else
			ended = true;
		passed_ns = now_ns() - begin_ns;
	}
	scan->took_ns += passed_ns;
	if (ended)
		end(watch);
}

/* BPF may have missed reports: removes processes that have ended, and looks again at those that are
 * not known. */
static void take_stock(struct watch *watch, int64_t now)
{
	uint64_t untold = sampler__untold(watch->sampler);
	struct watched *watched, *next;

	HASH_ITER (hh, watch->watched.all, watched, next)
		if (!target_map__has_told(watch->map, watched->key))
			registry__drop(watch, watched);
		else if (untold != watch->untold && !watched->target && !watched->unwanted)
			watched__look_at(&watch->watched, watched, now);
	/* A report that is lost from here on causes another scan. */
	watch->untold = untold;
}

void scan__begin(struct watch *watch, int64_t now)
{
	int64_t until_ns = now_ns() + PATIENCE_NS;

	begin(watch, now);
	while (watch->scan.under_way && now_ns() < until_ns)
		go_on(watch, now);
}

void scan__want(struct scan *scan, int64_t begin_ns)
{
	if (!scan->begin_ns || begin_ns < scan->begin_ns)
		scan->begin_ns = begin_ns;
}

int64_t scan__due(const struct scan *scan)
{
	if (scan->under_way)
		return 1;
	if (!scan->begin_ns)
		return INT64_MAX;
	return scan->begin_ns > scan->rest_ns ? scan->begin_ns : scan->rest_ns;
}

/* A process that maps a Python late is not reported if the kernel does not report mappings. */
static void ask_all(struct watch *watch, int64_t now)
{
	struct scan *scan = &watch->scan;

	if (watch->following == FOLLOW_NONE || sampler__sees_mappings(watch->sampler) ||
	    now < scan->ask_ns)
		return;
	if (scan->ask_ns)
		scan__want(scan, now);
	scan->ask_ns = now + ASK_NS;
}

void scan__look(struct watch *watch, int64_t now)
{
	struct scan *scan = &watch->scan;

	ask_all(watch, now);
	if (sampler__untold(watch->sampler) != watch->untold)
		scan__want(scan, now);
	if (!scan->under_way && now >= scan__due(scan)) {
		take_stock(watch, now);
		begin(watch, now);
	}
	if (scan->under_way)
		go_on(watch, now);
}

void scan__free(struct scan *scan)
{
	free(scan->pids);
	scan->pids = NULL;
	scan->count = 0;
}
