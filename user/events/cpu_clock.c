// SPDX-License-Identifier: BSD-2-Clause
/*
 * The CPU clock; and the same clock for --gil-blame, for which BPF counts a sample of the GIL's
 * holder once for each thread that waits for it.
 *
 * There is one event per CPU, not per thread.  The kernel starts and stops an event of a thread at
 * each context switch, which slows programs with many short-lived or I/O-bound threads.  Such
 * events also need a descriptor per thread, and miss threads that start while they are opened.
 *
 * Changing the period of another CPU's event interrupts that CPU.  It is done only if a target was
 * sampled there since the last change.  So the cost depends on the CPUs that targets use, not on
 * the number of CPUs.  A CPU that became idle gets one last period, without the correction for a
 * restart.
 *
 * An event ends with its CPU, even if that comes online again.  The kernel opens none for an
 * offline CPU, neither for all tasks nor for a cgroup.  Opening one needs a capability that is
 * dropped once sampling has begun.  So a CPU that comes online later is not sampled.  A warning
 * names it, and the ledger counts it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "events/cpu_events.h"
#include "events/events.h"
#include "events/periods.h"
#include "system/cpus.h"

/* How often to look for CPUs that came online. */
#define LOOK_NS 200000000LL

struct cpu_state {
	uint64_t interruptions; /* at the last change of the period */
	bool restarted;		/* the period is for an interval that begins with a restart */
	bool ended;		/* the CPU went offline */
	struct periods_deck deck;
};

struct clock {
	struct cpu_events cpus; /* first, for cpu_events__attach */
	struct periods periods;
	struct cpu_state *states; /* of the same CPUs */
	uint32_t *missed;	  /* CPUs that came online later */
	size_t missed_count, missed_capacity;
	int64_t looked_ns; /* time since the last look for them */
};

static const struct event *list(size_t index)
{
	static const struct event events[] = {
		{ .name = "cpu-clock", .unit = "nanoseconds" },
		{ .name = "gil-blame",
		  .unit = "nanoseconds",
		  .meaning = "time that other threads waited for the GIL",
		  .blames = true },
	};

	return index < sizeof(events) / sizeof(events[0]) ? &events[index] : NULL;
}

static void close_all(void *run)
{
	struct clock *clock = run;

	cpu_events__close(&clock->cpus);
	free(clock->states);
	free(clock->missed);
	free(clock);
}

static void set_period(void *context, size_t index, struct perf_event_attr *attributes)
{
	struct clock *clock = context;

	clock->states[index].restarted = true;
	attributes->sample_period =
		periods__draw(&clock->periods, &clock->states[index].deck, true);
}

static int open_all(const struct event *event, struct event_rate rate, void **run)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
		.exclude_idle = 1,
		.exclude_hv = 1,
	};
	struct clock *clock = xcalloc(1, sizeof(*clock));
	ssize_t count = cpus__array_size();
	uint64_t seed;
	int error;

	(void)event;
	clock->states = xcalloc(count > 0 ? count : 1, sizeof(*clock->states));
	if (getrandom(&seed, sizeof(seed), 0) < 0)
		seed = (uintptr_t)clock;
	periods__init(&clock->periods, rate.hz, rate.limit_hz, seed);
	error = count < 0 ? (int)count
			  : cpu_events__open(&clock->cpus, &attributes, set_period, clock);
	if (error)
		close_all(clock);
	else
		*run = clock;
	return error;
}

static bool contains(const uint32_t *numbers, size_t count, uint32_t number)
{
	for (size_t i = 0; i < count; i++)
		if (numbers[i] == number)
			return true;
	return false;
}

static bool has_event(const struct clock *clock, uint32_t number)
{
	for (size_t i = 0; i < clock->cpus.count; i++)
		if (clock->cpus.events[i].cpu == number && !clock->states[i].ended)
			return true;
	return false;
}

/* Looks for CPUs that came online or went offline since the last time. */
static void look_at_cpus(struct clock *clock)
{
	uint32_t *online;
	ssize_t count = cpus__online(&online);

	/* If the list cannot be read, no change is known. */
	for (size_t i = 0; i < clock->cpus.count && count > 0; i++)
		clock->states[i].ended |= !contains(online, count, clock->cpus.events[i].cpu);
	for (ssize_t i = 0; i < count; i++) {
		if (has_event(clock, online[i]) ||
		    contains(clock->missed, clock->missed_count, online[i]))
			continue;
		clock->missed = xgrow(clock->missed, &clock->missed_capacity,
				      clock->missed_count + 1, sizeof(*clock->missed));
		clock->missed[clock->missed_count++] = online[i];
		log__warning("CPU %u came online during sampling and is not sampled; start a new "
			     "recording to include it",
			     online[i]);
	}
	free(online);
}

/* Sets new periods for the CPUs that were interrupted since the last time, and sometimes looks for
 * new CPUs. */
static int64_t tick(void *run, struct interruptions interruptions)
{
	struct clock *clock = run;
	int64_t interval = periods__draw_interval(&clock->periods);

	for (size_t i = 0; i < clock->cpus.count; i++) {
		const struct cpu_event *event = &clock->cpus.events[i];
		struct cpu_state *cpu = &clock->states[i];
		uint64_t now = interruptions.of_cpu(interruptions.context, event->cpu), period;
		bool busy = now != cpu->interruptions;

		if (!busy && !cpu->restarted)
			continue;
		cpu->interruptions = now;
		cpu->restarted = busy;
		period = periods__draw(&clock->periods, &cpu->deck, busy);
		if (ioctl(event->fd, PERF_EVENT_IOC_PERIOD, &period) == 0)
			clock->periods.drawn.changes++;
	}
	clock->looked_ns += interval;
	if (clock->looked_ns >= LOOK_NS) {
		look_at_cpus(clock);
		clock->looked_ns = 0;
	}
	return interval;
}

static void set_rate(void *run, struct event_rate rate)
{
	struct clock *clock = run;

	periods__set_rate(&clock->periods, rate.hz, rate.limit_hz);
	for (size_t i = 0; i < clock->cpus.count; i++)
		clock->states[i].restarted = true;
}

static void account(void *run, struct ledger *ledger)
{
	struct clock *clock = run;

	look_at_cpus(clock);
	ledger->cpus_not_sampled = clock->missed_count;
	ledger->periods = clock->periods.drawn;
}

const struct event_source event_cpu_clock = {
	.list = list,
	.open = open_all,
	.attach = cpu_events__attach,
	.detach = cpu_events__detach,
	.close = close_all,
	.tick = tick,
	.set_rate = set_rate,
	.account = account,
};
