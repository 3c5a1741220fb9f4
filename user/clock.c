// SPDX-License-Identifier: BSD-2-Clause
/*
 * A fixed sampling period locks in step with programs that are driven by a
 * timer, and then shows shares that have nothing to do with the truth.  So the
 * period changes all the time, and so does the time between changes.
 *
 * One event a CPU, not one a thread: an event on a task is started and stopped
 * at each context switch, which a program with many short-lived or I/O-bound
 * threads feels; it needs a descriptor a thread, and threads that start while
 * the events are opened slip through.
 *
 * Rates, not periods, are drawn evenly around the mean, and from a shuffled deck
 * (each eighth of the range once in eight draws), so that the mean rate is right
 * and every sample stands for the same time, 1 / rate.  To change the period
 * restarts the kernel's timer: on average half a period passes unsampled.  The
 * period for an interval T at rate r is therefore T / (r T + 1/2).
 *
 * The intervals themselves are drawn evenly from 0.5 to 1.5 of their mean, so
 * that where an interval begins is random with respect to anything periodic the
 * target does, whatever its period.
 *
 * To change the period of another CPU's event interrupts that CPU.  It is done
 * only where a target was sampled since the last change, so that the cost goes
 * with the CPUs that the targets use and not with those that the machine has.
 * A CPU that fell idle gets one last period, without the correction for a
 * restart.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "clock.h"
#include "cpus.h"
#include "xalloc.h"

#define DECK		     8
#define WIDEST_SPREAD	     0.5
#define INTERVAL_NS_MIN	     100e6
#define PERIODS_PER_INTERVAL 10

/* The kernel's own floor for its CPU clock. */
#define PERIOD_NS_MIN 10000

struct cpu_clock {
	uint32_t cpu;
	int fd;
	struct bpf_link *link;
	uint64_t events; /* when the period was last changed */
	bool restarted;	 /* the period is one for an interval that begins with a restart */
	uint8_t deck[DECK];
	unsigned int drawn;
};

struct clock {
	double rate;   /* a nanosecond */
	double spread; /* rates lie within 1 -+ spread of the mean */
	double interval_ns;
	uint64_t random;
	struct ledger_periods periods;
	size_t count;
	struct cpu_clock cpus[];
};

/* xorshift64*: quick, and good enough to be in step with nothing. */
static double draw(struct clock *clock)
{
	uint64_t x = clock->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	clock->random = x;
	return (double)(x * 0x2545f4914f6cdd1dULL >> 11) / (double)(1ULL << 53);
}

static void shuffle(struct clock *clock, struct cpu_clock *cpu)
{
	for (unsigned int i = 0; i < DECK; i++) {
		unsigned int j = draw(clock) * (i + 1);

		cpu->deck[i] = cpu->deck[j];
		cpu->deck[j] = i;
	}
}

/* A rate around 1. */
static double draw_rate(struct clock *clock, struct cpu_clock *cpu)
{
	unsigned int at = cpu->drawn++ % DECK;

	if (!at)
		shuffle(clock, cpu);
	return 1 + clock->spread * (2 * (cpu->deck[at] + draw(clock)) / DECK - 1);
}

/* The period for the interval to come, with a restart at its beginning or without one. */
static uint64_t draw_period(struct clock *clock, struct cpu_clock *cpu, bool restart)
{
	double samples = clock->rate * draw_rate(clock, cpu) * clock->interval_ns;
	uint64_t period = clock->interval_ns / (restart ? samples + 0.5 : samples);

	if (period < PERIOD_NS_MIN)
		period = PERIOD_NS_MIN;
	if (period > clock->periods.longest_ns)
		clock->periods.longest_ns = period;
	if (!clock->periods.shortest_ns || period < clock->periods.shortest_ns)
		clock->periods.shortest_ns = period;
	cpu->restarted = restart;
	return period;
}

static void draw_interval(struct clock *clock)
{
	double mean = fmax(INTERVAL_NS_MIN, PERIODS_PER_INTERVAL / clock->rate);

	clock->interval_ns = mean * (0.5 + draw(clock));
}

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

static int open_events(struct clock *clock, const uint32_t *online, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct cpu_clock *cpu = &clock->cpus[clock->count];
		int fd;

		cpu->cpu = online[i];
		fd = open_event(online[i], draw_period(clock, cpu, true));
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
	size_t count = cpus__online(&online);
	struct clock *clock = xcalloc(1, sizeof(*clock) + count * sizeof(clock->cpus[0]));
	int error;

	clock->rate = rate_hz / 1e9;
	clock->spread = fmax(0, fmin(WIDEST_SPREAD, limit_hz / rate_hz - 1));
	if (getrandom(&clock->random, sizeof(clock->random), 0) < 0 || !clock->random)
		clock->random = 1;
	draw_interval(clock);
	error = open_events(clock, online, count);
	free(online);
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
	draw_interval(clock);
	for (size_t i = 0; i < clock->count; i++) {
		struct cpu_clock *cpu = &clock->cpus[i];
		uint64_t now = events(context, cpu->cpu);
		bool busy = now != cpu->events;
		uint64_t period;

		if (!busy && !cpu->restarted)
			continue;
		cpu->events = now;
		period = draw_period(clock, cpu, busy);
		if (ioctl(cpu->fd, PERF_EVENT_IOC_PERIOD, &period) == 0)
			clock->periods.changes++;
	}
	return clock->interval_ns;
}

const struct ledger_periods *clock__periods(const struct clock *clock)
{
	return &clock->periods;
}
