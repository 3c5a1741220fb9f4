// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/now.h"
#include "reading/process.h"
#include "system/open_files.h"
#include "watch/finding.h"
#include "watch/scan.h"

#define NS_PER_MS 1000000LL

/* What runs already is to be sampled from the first sample on, but not at any price. */
#define PATIENCE_NS (1000 * NS_PER_MS)

/* However often something is not told, scanning takes no more than one part in so many of a CPU. */
#define REST_FACTOR 10

/* What came before everything was told was missed by at most so much of it. */
#define PASSES_MAX 64

/* How soon it is tried again, where it could not be seen what there is. */
#define AGAIN_NS (100 * NS_PER_MS)

/* Whether the kernel side follows process PID, and could not tell that. */
static bool is_untold(const struct watch *watch, pid_t pid)
{
	pid_t kernel_pid, namesake;

	return !sampler__find_kernel_pid(watch->sampler, pid, &kernel_pid, &namesake) &&
	       target_map__has_untold(watch->map, kernel_pid);
}

/* Whether process PID is to be looked at. */
static bool is_wanted(const struct watch *watch, pid_t pid, const struct process *process)
{
	if (process->kernel_thread || process->zombie)
		return false;
	return watch->following == FOLLOW_ALL ||
	       watched__of_pid(&watch->watched, process->parent) || is_untold(watch, pid);
}

/* Begins to watch process PID where it is one to be found.  0 with *WATCHED, or -errno. */
static int watch_wanted(struct watch *watch, pid_t pid, int64_t now, struct watched **watched)
{
	struct process process;
	int error;

	if (pid == getpid() || watched__of_pid(&watch->watched, pid))
		return -EEXIST;
	error = process__inspect(pid, &process);
	if (!error && !is_wanted(watch, pid, &process))
		error = -ESRCH;
	return error ? error : finding__watch(watch, pid, now, watched);
}

/* Has it done again, in a while, what ERROR kept from seeing all there is. */
static void scan_later(struct watch *watch, int error, int64_t now)
{
	finding__warn_of_few_files(watch, error);
	scan__want(&watch->scan, now + AGAIN_NS);
}

/* Looks at process PID, where it is not known yet; returns whether it is watched from now on. */
static bool look_at(struct watch *watch, pid_t pid, int64_t now)
{
	struct watched *watched;
	int error = watch_wanted(watch, pid, now, &watched);

	if (open_files__ran_out(error))
		scan_later(watch, error, now);
	if (error || !finding__claim(watch, watched))
		return false;
	watched->is_found = true;
	finding__look_at(watch, watched, now);
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
	if (!scan->pids && open_files__ran_out(-errno))
		scan_later(watch, -errno, now);
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

/* A process that starts meanwhile is told of, unless its parent was not found yet; so it goes on
 * until there is nothing new. */
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

/* Something was not told: looks what has ended, and again at what is not known yet. */
static void take_stock(struct watch *watch, int64_t now)
{
	uint64_t untold = sampler__untold(watch->sampler);
	struct watched *watched, *next;

	HASH_ITER (hh, watch->watched.all, watched, next)
		if (!target_map__has_told(watch->map, watched->key))
			finding__drop(watch, watched);
		else if (untold != watch->untold && !watched->target && !watched->unwanted)
			watched__look_at(&watch->watched, watched, now);
	/* What is not told from here on is a reason for another one. */
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

void scan__note_no_room(struct watch *watch)
{
	struct scan *scan = &watch->scan;
	uint64_t counted = sampler__crowded(watch->sampler);

	scan->crowded++;
	if (scan->crowded > counted + scan->missed)
		scan->missed = scan->crowded - counted;
}

int64_t scan__due(const struct scan *scan)
{
	if (scan->under_way)
		return 1;
	if (!scan->begin_ns)
		return INT64_MAX;
	return scan->begin_ns > scan->rest_ns ? scan->begin_ns : scan->rest_ns;
}

void scan__look(struct watch *watch, int64_t now)
{
	struct scan *scan = &watch->scan;

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
