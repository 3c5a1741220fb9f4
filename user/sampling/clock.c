// SPDX-License-Identifier: BSD-2-Clause
/*
 * One event a CPU, not one a thread: an event on a task is started and stopped
 * at each context switch, which a program with many short-lived or I/O-bound
 * threads feels; it needs a descriptor a thread, and threads that start while
 * the events are opened slip through.
 *
 * To change the period of another CPU's event interrupts that CPU.  It is done
 * only where a target was sampled since the last change, so that the cost goes
 * with the CPUs that the targets use and not with those that the machine has.
 * A CPU that fell idle gets one last period, without the correction for a
 * restart.
 *
 * An event ends with its CPU, for good, even where that comes again; for one that is
 * offline none can be opened in advance, be it of all its tasks or of a cgroup's; and
 * opening one takes a capability that is given up when sampling has begun.  So a CPU
 * that goes online later, also again, is not sampled; that is told.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "sampling/clock.h"
#include "sampling/periods.h"
#include "system/cpus.h"

struct cpu_clock {
	uint32_t cpu;
	int fd;
	struct bpf_link *link;
	uint64_t events; /* when the period was last changed */
	bool restarted;	 /* the period is one for an interval that begins with a restart */
	bool ended;	 /* with the CPU, which went offline */
	struct periods_deck deck;
};

struct clock {
	struct periods periods;
	uint32_t *missed; /* CPUs that went online later */
	size_t missed_count, missed_capacity;
	size_t count;
	struct cpu_clock cpus[];
};

static int open_event(uint32_t cpu, uint64_t period)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period,
		.disabled = 1,
		.exclude_idle = 1,
		.exclude_hv = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int open_events(struct clock *clock, const uint32_t *online, ssize_t count)
{
	for (ssize_t i = 0; i < count; i++) {
		struct cpu_clock *cpu = &clock->cpus[clock->count];
		int fd;

		cpu->cpu = online[i];
		cpu->restarted = true;
		fd = open_event(online[i], periods__draw(&clock->periods, &cpu->deck, true));
		/* A CPU may go offline in between. */
		if (fd == -ENODEV)
			continue;
		if (fd < 0)
			return fd;
		cpu->fd = fd;
		clock->count++;
	}
	return 0;
}

int clock__open(double rate_hz, double limit_hz, struct clock **result)
{
	uint32_t *online;
	ssize_t count = cpus__online(&online);
	struct clock *clock;
	uint64_t seed;
	int error;

	if (count < 0)
		return count;
	clock = xcalloc(1, sizeof(*clock) + count * sizeof(clock->cpus[0]));
	if (getrandom(&seed, sizeof(seed), 0) < 0)
		seed = (uintptr_t)clock;
	periods__init(&clock->periods, rate_hz, limit_hz, seed);
	error = open_events(clock, online, count);
	free(online);
	if (!error && !clock->count)
		error = -ENODEV;
	if (error)
		clock__free(clock);
	else
		*result = clock;
	return error;
}

void clock__free(struct clock *clock)
{
	if (!clock)
		return;
	for (size_t i = 0; i < clock->count; i++) {
		bpf_link__destroy(clock->cpus[i].link);
		close(clock->cpus[i].fd);
	}
	free(clock->missed);
	free(clock);
}

int clock__start(struct clock *clock, const struct bpf_program *program)
{
	for (size_t i = 0; i < clock->count; i++) {
		struct cpu_clock *cpu = &clock->cpus[i];
		/* The link closes the descriptor that it is given. */
		int fd = dup(cpu->fd);

		if (fd < 0)
			return -errno;
		cpu->link = bpf_program__attach_perf_event(program, fd);
		if (!cpu->link) {
			int error = errno;

			close(fd);
			return -error;
		}
	}
	return 0;
}

void clock__stop(struct clock *clock)
{
	for (size_t i = 0; i < clock->count; i++)
		ioctl(clock->cpus[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

int64_t clock__change_periods(struct clock *clock, uint64_t (*events)(void *context, uint32_t cpu),
			      void *context)
{
	int64_t interval = periods__draw_interval(&clock->periods);

	for (size_t i = 0; i < clock->count; i++) {
		struct cpu_clock *cpu = &clock->cpus[i];
		uint64_t now = events(context, cpu->cpu), period;
		bool busy = now != cpu->events;

		if (!busy && !cpu->restarted)
			continue;
		cpu->events = now;
		cpu->restarted = busy;
		period = periods__draw(&clock->periods, &cpu->deck, busy);
		if (ioctl(cpu->fd, PERF_EVENT_IOC_PERIOD, &period) == 0)
			clock->periods.drawn.changes++;
	}
	return interval;
}

void clock__set_rate(struct clock *clock, double rate_hz, double limit_hz)
{
	periods__set_rate(&clock->periods, rate_hz, limit_hz);
	for (size_t i = 0; i < clock->count; i++)
		clock->cpus[i].restarted = true;
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
	for (size_t i = 0; i < clock->count; i++)
		if (clock->cpus[i].cpu == number && !clock->cpus[i].ended)
			return true;
	return false;
}

size_t clock__look_at_cpus(struct clock *clock)
{
	uint32_t *online;
	ssize_t count = cpus__online(&online);

	/* Where that cannot be read, nothing is known to have changed. */
	for (size_t i = 0; i < clock->count && count > 0; i++)
		clock->cpus[i].ended |= !contains(online, count, clock->cpus[i].cpu);
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
	return clock->missed_count;
}

const struct ledger_periods *clock__periods(const struct clock *clock)
{
	return &clock->periods.drawn;
}
