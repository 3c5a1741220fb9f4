// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "events/events.h"
#include "processes/pid_namespace.h"
#include "sampling/blocked_threads.h"
#include "sampling/iterators.h"
#include "sampling/mappings.h"
#include "sampling/programs.h"
#include "sampling/sampler.h"
#include "sampling/target_map.h"
#include "system/cpus.h"
#include "pybpfprof.skel.h" /* needs the types of the headers above */

/* A draining takes little longer than this, unless it is the last one. */
#define DRAIN_NS (100 * 1000 * 1000LL)

/* How long the end waits for threads that waited at the start to be walked. */
#define WALKING_NS (1000 * 1000 * 1000LL)

struct sampler {
	struct pybpfprof_bpf *bpf;
	struct ring_buffer *ring, *heralds; /* heralds: NULL where MAPPINGS is */
	struct event events[EVENTS_MAX];
	void *runs[EVENTS_MAX]; /* of the same events; NULL: not opened */
	uint32_t event_count;
	struct slots *slots;
	struct target_map *targets;
	struct blocked_threads *blocked; /* NULL: none are looked for */
	struct cpu_counters outside;	 /* what is counted of these */
	struct sampler_sink sink;
	struct mappings *mappings; /* NULL: BPF sees mappings, or nothing does */
	uint32_t cpus;
	const volatile struct bucket *buckets;	      /* [cpus * STACK_BUCKETS], the kernel's */
	const volatile struct cpu_counters *counters; /* [cpus], the kernel's */
	bool running;
	int64_t drain_end_ns;
	size_t taken; /* records, by the last draining */
};

/* Stops after a while, although there are more records: a target can make stacks faster than they
 * are taken, and other work is due. */
static int take_record(void *context, void *data, size_t size)
{
	struct sampler *sampler = context;

	sampler->taken++;
	slots__take(sampler->slots, data, size);
	return sampler->running && now_ns() > sampler->drain_end_ns ? -EAGAIN : 0;
}

size_t sampler__drain(struct sampler *sampler)
{
	sampler->taken = 0;
	sampler->drain_end_ns = now_ns() + DRAIN_NS;
	mappings__mark(sampler->mappings);
	/* Mappings come after the processes that they belong to (mappings.c). */
	if (ring_buffer__consume(sampler->ring) >= 0)
		sampler->taken += mappings__take(sampler->mappings);
	return sampler->taken;
}

bool sampler__urges(const struct sampler *sampler)
{
	return mappings__urge(sampler->mappings);
}

int sampler__mappings_fd(const struct sampler *sampler)
{
	return mappings__fd(sampler->mappings);
}

int sampler__heralds_fd(const struct sampler *sampler)
{
	return sampler->heralds ? ring_buffer__epoll_fd(sampler->heralds) : -1;
}

bool sampler__take_heralds(struct sampler *sampler)
{
	return sampler->heralds && ring_buffer__consume(sampler->heralds) > 0;
}

void sampler__harvest(struct sampler *sampler)
{
	slots__harvest(sampler->slots);
}

void sampler__count_waits(struct sampler *sampler)
{
	iterators__count_waits(sampler->bpf, now_ns());
}

static uint64_t interruptions_of_cpu(void *context, uint32_t cpu)
{
	const struct sampler *sampler = context;
	const volatile struct event_counters *counters;
	uint64_t interruptions = 0;

	for (uint32_t i = 0; i < sampler->event_count && cpu < sampler->cpus; i++) {
		counters = &sampler->counters[cpu].of[i];
		/* Events that a lowered rate passes over show that the CPU is busy, too. */
		interruptions += counters->events + counters->passed;
	}
	return interruptions;
}

int64_t sampler__tick(struct sampler *sampler)
{
	const struct interruptions interruptions = { interruptions_of_cpu, sampler };
	int64_t first_ns = INT64_MAX;

	for (uint32_t i = 0; i < sampler->event_count; i++) {
		const struct event_source *source = sampler->events[i].source;
		int64_t wait_ns =
			source->tick ? source->tick(sampler->runs[i], interruptions) : INT64_MAX;

		first_ns = wait_ns < first_ns ? wait_ns : first_ns;
	}
	return first_ns;
}

/* Tells BPF what a sample of each event stands for. */
static void set_values(struct sampler *sampler, double rate_hz)
{
	for (uint32_t i = 0; i < sampler->event_count; i++) {
		const struct event *event = &sampler->events[i];
		uint64_t period = event->period ?: ledger__period_ns(rate_hz);

		sampler->bpf->bss->sample_values[i] = event->hz ? 0 : period;
	}
}

int64_t sampler__set_rate(struct sampler *sampler, struct event_rate rate)
{
	set_values(sampler, rate.hz);
	for (uint32_t i = 0; i < sampler->event_count; i++)
		if (sampler->events[i].source->set_rate)
			sampler->events[i].source->set_rate(sampler->runs[i], rate);
	return sampler__tick(sampler);
}

/* Sums the counter at OFFSET of struct cpu_counters over all CPUs, and what is counted outside. */
static uint64_t sum(const struct sampler *sampler, size_t offset)
{
	uint64_t count = ((const uint64_t *)&sampler->outside)[offset / sizeof(uint64_t)];

	for (uint32_t cpu = 0; cpu < sampler->cpus; cpu++) {
		const volatile uint64_t *words = (const volatile uint64_t *)&sampler->counters[cpu];

		count += words[offset / sizeof(*words)];
	}
	return count;
}

/* The same for the counter of EVENT at OFFSET of struct event_counters. */
static uint64_t sum_of(const struct sampler *sampler, uint32_t event, size_t offset)
{
	return sum(sampler, offsetof(struct cpu_counters, of[event]) + offset);
}

static uint64_t busy(const struct sampler *sampler, uint32_t event)
{
	return sum_of(sampler, event, offsetof(struct event_counters, busy));
}

/* Lost samples have no layout: BPF says so of all others. */
uint64_t sampler__outcomes(const struct sampler *sampler, uint32_t event, enum outcome outcome)
{
	return (outcome == OUTCOME_NO_LAYOUT ? busy(sampler, event) : 0) +
	       sum_of(sampler, event,
		      offsetof(struct event_counters, outcomes) + outcome * sizeof(uint64_t));
}

/* How often the kernel counted EVENT without running the program. */
static uint64_t left_out(const struct sampler *sampler, uint32_t event)
{
	const struct event_source *source = sampler->events[event].source;
	uint64_t arrived = sum_of(sampler, event, offsetof(struct event_counters, arrived));
	uint64_t expected = source->expected ? source->expected(sampler->runs[event]) : 0;

	return expected > arrived ? expected - arrived : 0;
}

void sampler__account(const struct sampler *sampler, uint32_t event, struct ledger *ledger)
{
	const struct event_source *source = sampler->events[event].source;

	ledger->busy = busy(sampler, event);
	ledger->events =
		ledger->busy + sum_of(sampler, event, offsetof(struct event_counters, events));
	/* While sampling goes on, a stack that is not defined yet may be in a later window. */
	ledger->lost = ledger->busy +
		       sum_of(sampler, event, offsetof(struct event_counters, lost)) +
		       (sampler->running ? slots__never_defined(sampler->slots, event)
					 : slots__undefined(sampler->slots, event));
	ledger->without_gil = sum_of(sampler, event, offsetof(struct event_counters, without_gil));
	ledger->left_out = left_out(sampler, event);
	ledger->ring_full = sum(sampler, offsetof(struct cpu_counters, ring_full));
	if (source->account)
		source->account(sampler->runs[event], ledger);
	for (size_t i = 0; i < NATIVE_OUTCOME_COUNT; i++)
		ledger->native[i] =
			sum_of(sampler, event,
			       offsetof(struct event_counters, native) + i * sizeof(uint64_t));
	ledger->resumptions = sum_of(sampler, event, offsetof(struct event_counters, resumptions));
	ledger->unmatched = sum_of(sampler, event, offsetof(struct event_counters, unmatched));
	ledger->brief = sum_of(sampler, event, offsetof(struct event_counters, brief));
}

uint64_t sampler__untold(const struct sampler *sampler)
{
	return sum(sampler, offsetof(struct cpu_counters, untold)) +
	       mappings__lost(sampler->mappings);
}

uint64_t sampler__crowded(const struct sampler *sampler)
{
	return sum(sampler, offsetof(struct cpu_counters, crowded));
}

struct unwinder_maps sampler__unwinder_maps(const struct sampler *sampler)
{
	return (struct unwinder_maps){
		.chunks = bpf_map__fd(sampler->bpf->maps.unwind_chunks),
		.files = bpf_map__fd(sampler->bpf->maps.unwind_files),
		.rules = bpf_map__fd(sampler->bpf->maps.unwind_rules),
		.tables = bpf_map__fd(sampler->bpf->maps.unwind_tables),
	};
}

void sampler__begin_epoch(struct sampler *sampler)
{
	sampler->bpf->bss->epoch++;
}

void sampler__age(struct sampler *sampler)
{
	/* First: a wait that begins from now on defines its stack anew. */
	sampler__begin_epoch(sampler);
	slots__age(sampler->slots);
	iterators__keep_waits(sampler->bpf, sampler->slots);
}

static int forward_libbpf(enum libbpf_print_level level, const char *format, va_list arguments)
{
	char *text;

	if (level == LIBBPF_DEBUG || log__level() < LOG_DEBUG ||
	    vasprintf(&text, format, arguments) < 0)
		return 0;
	/* The verifier's report has many lines. */
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		if (*line)
			log__debug("%s", line);
	free(text);
	return 0;
}

/* Maps that depend on the machine or the options.  Without NATIVE frames theirs have no room, nor
 * has that of waits without WAITS. */
static int size_maps(struct pybpfprof_bpf *bpf, uint32_t cpus, uint32_t processes, bool native,
		     bool waits)
{
	const struct {
		struct bpf_map *map;
		uint32_t entries; /* 0: as it is declared */
	} sizes[] = {
		{ bpf->maps.walks, cpus },
		{ bpf->maps.targets, processes },
		{ bpf->maps.counters, cpus },
		{ bpf->maps.stacks, (cpus + waits) * STACK_BUCKETS },
		{ bpf->maps.unwind_tables, native ? processes : 1 },
		{ bpf->maps.unwind_chunks, !native },
		{ bpf->maps.unwind_files, !native },
		{ bpf->maps.unwind_rules, !native },
		{ bpf->maps.waits, !waits },
		{ bpf->maps.gil_waits, !bpf->rodata->config.blamed },
	};
	int error = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && !error; i++)
		if (sizes[i].entries)
			error = bpf_map__set_max_entries(sizes[i].map, sizes[i].entries);
	return error;
}

/* A ring buffer has no values: its entries are bytes. */
static size_t map_bytes(const struct bpf_map *map)
{
	return (size_t)bpf_map__max_entries(map) * (bpf_map__value_size(map) ?: 1);
}

uint64_t sampler__map_bytes(bool native)
{
	struct pybpfprof_bpf *bpf = pybpfprof_bpf__open();
	ssize_t cpus = cpus__array_size();
	const struct bpf_map *map;
	uint64_t bytes = 0;

	if (bpf && cpus > 0 && size_maps(bpf, cpus, TARGETS_MAX, native, false) == 0)
		bpf_object__for_each_map (map, bpf->obj)
			bytes += map_bytes(map);
	pybpfprof_bpf__destroy(bpf);
	return bytes;
}

/* The values of MAP in the kernel's memory; NULL with errno. */
static const volatile void *map_read_only(const struct bpf_map *map)
{
	void *memory = mmap(NULL, map_bytes(map), PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static int load(struct sampler *sampler, const struct sampler_scope *scope, bool with_mappings)
{
	struct pybpfprof_bpf *bpf = sampler->bpf = pybpfprof_bpf__open();
	int error;

	if (!bpf)
		return -errno;
	if (getrandom((void *)&bpf->rodata->config.hash_seed, sizeof(__u64), 0) < 0)
		return -errno;
	bpf->rodata->config.kernel = scope->kernel;
	bpf->rodata->config.native = scope->native;
	bpf->rodata->config.native_all = scope->native_all;
	bpf->rodata->config.split_run_queue = scope->split_run_queue;
	bpf->rodata->config.off_cpu_min = scope->off_cpu_min_ns;
	for (uint32_t i = 0; i < scope->event_count; i++) {
		if (scope->events[i].source->expected && !scope->events[i].hz)
			bpf->rodata->config.compared |= 1 << i;
		if (scope->events[i].source->program == PROGRAM_SWITCHES)
			bpf->rodata->config.off_cpu = i;
		if (scope->events[i].blames)
			bpf->rodata->config.blamed |= 1 << i;
		memcpy((void *)&bpf->rodata->config.tracepoints[i], &scope->events[i].tracepoint,
		       sizeof(struct tracepoint));
	}
	memcpy((void *)bpf->rodata->config.interrupts, scope->interrupts,
	       sizeof(scope->interrupts));
	bpf->rodata->config.held = scope->gil ? UINT32_MAX : bpf->rodata->config.blamed;
	bpf->bss->page_shift = __builtin_ctzl(sysconf(_SC_PAGESIZE));
	bpf->bss->following = scope->following;
	bpf->bss->unseen_thread_bits = scope->merging_threads ? UINT32_MAX : 0;
	error = programs__choose(bpf, scope, with_mappings);
	if (!error)
		error = size_maps(bpf, sampler->cpus, scope->processes, scope->native,
				  programs__measure_waits(sampler->bpf));
	return error ? error : pybpfprof_bpf__load(bpf);
}

static int map_counters(struct sampler *sampler)
{
	sampler->buckets = map_read_only(sampler->bpf->maps.stacks);
	sampler->counters = map_read_only(sampler->bpf->maps.counters);
	return sampler->buckets && sampler->counters ? 0 : -errno;
}

/* Attaches PROGRAM if it was loaded. */
static int attach(struct bpf_program *program, struct bpf_link **link)
{
	if (!bpf_program__autoload(program))
		return 0;
	*link = bpf_program__attach(program);
	return *link ? 0 : -errno;
}

int sampler__open(const struct sampler_sink *sink, const struct sampler_scope *scope,
		  struct sampler **result)
{
	ssize_t cpus = cpus__array_size();
	struct sampler *sampler;
	int error;

	libbpf_set_print(forward_libbpf);
	if (cpus < 0)
		return cpus;
	sampler = xcalloc(1, sizeof(*sampler));
	sampler->cpus = cpus;
	sampler->event_count = scope->event_count;
	memcpy(sampler->events, scope->events, sizeof(sampler->events));
	error = load(sampler, scope,
		     scope->following != FOLLOW_NONE &&
			     !programs__try(MAPPING_FUNCTION, BPF_TRACE_FENTRY));
	if (!error)
		error = map_counters(sampler);
	if (!error)
		error = attach(sampler->bpf->progs.count_wait, &sampler->bpf->links.count_wait)
				?: attach(sampler->bpf->progs.end_sleep,
					  &sampler->bpf->links.end_sleep);
	if (!error) {
		sampler->sink = *sink;
		sampler->targets = target_map__new(sampler->bpf);
		sampler->slots = slots__new(sink, sampler->buckets,
					    sampler->cpus + programs__measure_waits(sampler->bpf));
		sampler->ring = ring_buffer__new(bpf_map__fd(sampler->bpf->maps.definitions),
						 take_record, sampler, NULL);
		error = sampler->ring ? 0 : -errno;
	}
	if (!error && programs__measure_waits(sampler->bpf))
		sampler->blocked = blocked_threads__new(
			sampler->bpf, sampler->cpus, sampler->slots,
			&sampler->outside.of[sampler->bpf->rodata->config.off_cpu]);
	if (error)
		sampler__free(sampler);
	else
		*result = sampler;
	return error;
}

void sampler__free(struct sampler *sampler)
{
	if (!sampler)
		return;
	for (uint32_t i = 0; i < sampler->event_count; i++)
		if (sampler->runs[i])
			sampler->events[i].source->close(sampler->runs[i]);
	blocked_threads__free(sampler->blocked);
	mappings__free(sampler->mappings);
	ring_buffer__free(sampler->ring);
	ring_buffer__free(sampler->heralds);
	if (sampler->buckets)
		munmap((void *)sampler->buckets, map_bytes(sampler->bpf->maps.stacks));
	if (sampler->counters)
		munmap((void *)sampler->counters, map_bytes(sampler->bpf->maps.counters));
	target_map__free(sampler->targets);
	pybpfprof_bpf__destroy(sampler->bpf);
	slots__free(sampler->slots);
	free(sampler);
}

bool sampler__is_compiled(const struct sampler *sampler)
{
	struct bpf_prog_info info = { 0 };
	__u32 size = sizeof(info);

	return !bpf_obj_get_info_by_fd(bpf_program__fd(sampler->bpf->progs.sample), &info, &size) &&
	       info.jited_prog_len;
}

bool sampler__may_use_maps(const struct sampler *sampler)
{
	struct layout layout;
	uint32_t first = 0;

	return bpf_map__lookup_elem(sampler->bpf->maps.layouts, &first, sizeof(first), &layout,
				    sizeof(layout), 0) != -EPERM;
}

int sampler__find_kernel_pid(struct sampler *sampler, pid_t pid, pid_t *kernel_pid, pid_t *namesake)
{
	return iterators__find_kernel_pid(sampler->bpf, pid, kernel_pid, namesake);
}

struct target_map *sampler__targets(struct sampler *sampler)
{
	return sampler->targets;
}

static int take_herald(void *context, void *data, size_t size)
{
	(void)context;
	(void)data;
	(void)size;
	return 0;
}

/* Receives mappings from perf instead of BPF. */
static void listen_to_mappings(struct sampler *sampler)
{
	const struct mappings_sink sink = { sampler->sink.map, sampler->sink.urges,
					    sampler->sink.watcher };
	int error = mappings__open(&sink, sampler__fd(sampler), &sampler->mappings);

	if (error) {
		log__warning("the kernel does not report file mappings (%s): Python that a process "
			     "loads late is found late",
			     strerror(-error));
		return;
	}
	/* Without heralds, Python that is loaded late is found when other news is taken. */
	sampler->heralds =
		ring_buffer__new(bpf_map__fd(sampler->bpf->maps.heralds), take_herald, NULL, NULL);
	sampler->bpf->bss->heeding = sampler->heralds;
}

int sampler__follow(struct sampler *sampler)
{
	struct pybpfprof_bpf *bpf = sampler->bpf;
	int error = attach(bpf->progs.follow_exec, &bpf->links.follow_exec)
			    ?: attach(bpf->progs.follow_exit, &bpf->links.follow_exit)
			    ?: attach(bpf->progs.follow_fork, &bpf->links.follow_fork);

	if (error || !bpf_program__autoload(bpf->progs.follow_fork))
		return error;
	if (attach(bpf->progs.follow_mapping, &bpf->links.follow_mapping) ||
	    !bpf->links.follow_mapping)
		listen_to_mappings(sampler);
	return 0;
}

bool sampler__sees_mappings(const struct sampler *sampler)
{
	return sampler->bpf->links.follow_mapping || sampler->mappings;
}

int sampler__start(struct sampler *sampler, struct event_rate rate)
{
	int error = 0;

	set_values(sampler, rate.hz);
	for (uint32_t i = 0; i < sampler->event_count && !error; i++)
		error = sampler->events[i].source->open(&sampler->events[i], rate,
							&sampler->runs[i]);
	sampler->running = true;
	if (!error)
		error = attach(sampler->bpf->progs.count_gil_queue,
			       &sampler->bpf->links.count_gil_queue);
	for (uint32_t i = 0; i < sampler->event_count && !error; i++)
		error = sampler->events[i].source->attach(
			sampler->runs[i], programs__of(sampler->bpf, &sampler->events[i], i));
	blocked_threads__begin(sampler->blocked, now_ns());
	return error;
}

void sampler__enter(struct sampler *sampler, uint64_t serial, pid_t pid)
{
	for (uint32_t i = 0; i < sampler->event_count && sampler->running; i++)
		if (sampler->events[i].source->enter)
			sampler->events[i].source->enter(sampler->runs[i], serial, pid);
}

void sampler__leave(struct sampler *sampler, uint64_t serial)
{
	for (uint32_t i = 0; i < sampler->event_count && sampler->running; i++)
		if (sampler->events[i].source->leave)
			sampler->events[i].source->leave(sampler->runs[i], serial);
}

void sampler__walk_blocked(struct sampler *sampler, int64_t now)
{
	blocked_threads__work(sampler->blocked, target_map__puts(sampler->targets), now);
}

int64_t sampler__blocked_due(const struct sampler *sampler)
{
	return blocked_threads__due(sampler->blocked);
}

void sampler__stop(struct sampler *sampler)
{
	int64_t until = now_ns() + WALKING_NS;

	/* However short the run was. */
	while (sampler__blocked_due(sampler) <= now_ns() && now_ns() < until)
		sampler__walk_blocked(sampler, now_ns());
	/* Before that: afterwards the end of a wait is not seen. */
	sampler__count_waits(sampler);
	for (uint32_t i = 0; i < sampler->event_count; i++)
		sampler->events[i].source->detach(sampler->runs[i]);
	programs__await(sampler->counters, sampler->cpus);
	sampler->running = false;
}

int sampler__fd(const struct sampler *sampler)
{
	return ring_buffer__epoll_fd(sampler->ring);
}
