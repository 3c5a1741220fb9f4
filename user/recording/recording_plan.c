// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "recording/recording_plan.h"

void recording_plan__add_pid(struct recording_plan *plan, pid_t pid)
{
	for (size_t i = 0; i < plan->pid_count; i++)
		if (plan->pids[i] == pid)
			return;
	plan->pids = xreallocarray(plan->pids, plan->pid_count + 1, sizeof(*plan->pids));
	plan->pids[plan->pid_count++] = pid;
}

void recording_plan__free(struct recording_plan *plan)
{
	process_filter__free(&plan->filter);
	free(plan->pids);
}

int recording_plan__add_event(struct recording_plan *plan, const struct event *event)
{
	for (uint32_t i = 0; i < plan->event_count; i++)
		if (plan->events[i].name == event->name)
			return -EEXIST;
	if (plan->event_count == EVENTS_MAX)
		return -ENOSPC;
	plan->events[plan->event_count++] = *event;
	return 0;
}

bool recording_plan__has_waits(const struct recording_plan *plan)
{
	for (uint32_t i = 0; i < plan->event_count; i++)
		if (plan->events[i].source->program == PROGRAM_SWITCHES)
			return true;
	return false;
}

char *recording_plan__check(struct recording_plan *plan, bool rate_chosen)
{
	pid_t self = getpid();
	/* A program that is started sees the same files as the profiler. */
	const struct event_users users = {
		.pids = plan->command ? &self : plan->pids,
		.count = plan->command ? 1 : plan->pid_count,
		.everyone = !plan->command && !plan->pid_count,
		.any_context = plan->any_context,
	};
	char *wrong;

	if (!recording_plan__has_waits(plan) && (plan->split_run_queue || plan->off_cpu_min_s > 0))
		return xasprintf("%s needs --off-cpu",
				 plan->split_run_queue ? "--split-runqueue" : "--off-cpu-min");
	wrong = events__settle(plan->events, plan->event_count, plan->sample_count, &plan->rate_hz,
			       rate_chosen);
	return wrong ?: events__resolve(plan->events, plan->event_count, &users);
}

bool recording_plan__needs_gil(const struct recording_plan *plan)
{
	bool needs = plan->gil;

	for (uint32_t i = 0; i < plan->event_count; i++)
		needs |= plan->events[i].blames;
	return needs;
}

struct sampler_scope recording_plan__scope(const struct recording_plan *plan)
{
	struct sampler_scope scope = {
		.processes = plan->processes_max,
		.following = plan->following,
		.merging_threads = plan->threads == THREADS_MERGED,
		.kernel = plan->kernel || plan->all_kinds,
		.native = plan->native || plan->all_kinds,
		.native_all = plan->native_all,
		.split_run_queue = plan->split_run_queue,
		.off_cpu_min_ns = plan->off_cpu_min_s * 1e9,
		.gil = plan->gil,
		.event_count = plan->event_count,
	};

	memcpy(scope.events, plan->events, sizeof(scope.events));
	if (!scope.event_count)
		scope.events[scope.event_count++] = event__default();
	return scope;
}
