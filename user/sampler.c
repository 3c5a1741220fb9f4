// SPDX-License-Identifier: BSD-2-Clause
/*
 * User space sees the kernel's counters in place and follows each slot's owners
 * through the definitions: those come in order, and each says at which count its
 * stack took the slot.  What the slot counted from there to the next owner's
 * beginning, or to now, is that stack's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "clock.h"
#include "cpus.h"
#include "log.h"
#include "pybpfprof.skel.h"
#include "sampler.h"
#include "xalloc.h"

/* Who a slot belongs to, as far as the definitions were drained. */
struct owner {
	uint64_t hash; /* 0: nobody yet */
	uint64_t name;
	uint64_t counted; /* the slot's count up to which it was given away */
	enum outcome outcome;
};

struct sampler {
	struct pybpfprof_bpf *bpf;
	struct ring_buffer *ring;
	struct clock *clock;
	struct sampler_sink sink;
	uint32_t cpus;
	uint32_t layouts;
	struct layout known_layouts[LAYOUTS_MAX];
	struct owner *owners;			      /* [cpus * STACK_SLOTS] */
	const volatile struct bucket *buckets;	      /* [cpus * STACK_BUCKETS], the kernel's */
	const volatile struct cpu_counters *counters; /* [cpus], the kernel's */
	size_t buckets_size, counters_size;
	uint64_t undefined; /* samples of stacks that never got a definition */
};

static uint64_t slot_count(const volatile struct slot *slot)
{
	return __atomic_load_n(&slot->count, __ATOMIC_ACQUIRE);
}

/* Gives the owner what the slot counted up to COUNT. */
static void give(struct sampler *sampler, struct owner *owner, uint64_t count)
{
	uint64_t samples = count - owner->counted;

	owner->counted = count;
	if (!samples)
		return;
	if (owner->hash)
		sampler->sink.count(sampler->sink.context, owner->name, samples, owner->outcome);
	else
		sampler->undefined += samples;
}

static int take_definition(void *context, void *data, size_t size)
{
	struct sampler *sampler = context;
	const struct definition *definition = data;
	struct owner *owner;

	if (size < DEFINITION_HEADER_BYTES || definition->cpu >= sampler->cpus ||
	    definition->slot >= STACK_SLOTS || definition->outcome >= OUTCOME_COUNT ||
	    size < DEFINITION_HEADER_BYTES + definition->depth * sizeof(struct frame))
		return 0;
	owner = &sampler->owners[(size_t)definition->cpu * STACK_SLOTS + definition->slot];
	give(sampler, owner, definition->base);
	owner->hash = definition->hash;
	owner->outcome = definition->outcome;
	owner->name = sampler->sink.define(sampler->sink.context, definition);
	return 0;
}

void sampler__drain(struct sampler *sampler)
{
	ring_buffer__consume(sampler->ring);
}

static void harvest_slot(struct sampler *sampler, struct owner *owner,
			 const volatile struct slot *slot)
{
	uint64_t hash = __atomic_load_n(&slot->hash, __ATOMIC_ACQUIRE);
	uint64_t count = slot_count(slot);

	/* Taken over just now: the definition on its way says what was whose. */
	if (hash != owner->hash || __atomic_load_n(&slot->hash, __ATOMIC_ACQUIRE) != hash)
		return;
	give(sampler, owner, count);
}

void sampler__harvest(struct sampler *sampler)
{
	size_t slots = (size_t)sampler->cpus * STACK_SLOTS;

	for (size_t i = 0; i < slots; i++)
		if (sampler->owners[i].hash)
			harvest_slot(sampler, &sampler->owners[i],
				     &sampler->buckets[i / SLOTS_PER_BUCKET]
					      .slots[i % SLOTS_PER_BUCKET]);
}

/* Samples whose stack was counted but never defined, because the ring buffer was full each time. */
static uint64_t undefined_samples(const struct sampler *sampler)
{
	size_t slots = (size_t)sampler->cpus * STACK_SLOTS;
	uint64_t samples = sampler->undefined;

	for (size_t i = 0; i < slots; i++)
		if (!sampler->owners[i].hash)
			samples += slot_count(&sampler->buckets[i / SLOTS_PER_BUCKET]
						       .slots[i % SLOTS_PER_BUCKET]);
	return samples;
}

static uint64_t events_of_cpu(void *context, uint32_t cpu)
{
	const struct sampler *sampler = context;

	return cpu < sampler->cpus ? sampler->counters[cpu].events : 0;
}

int64_t sampler__change_periods(struct sampler *sampler)
{
	return clock__change_periods(sampler->clock, events_of_cpu, sampler);
}

uint64_t sampler__events(const struct sampler *sampler)
{
	uint64_t events = 0;

	for (uint32_t cpu = 0; cpu < sampler->cpus; cpu++)
		events += sampler->counters[cpu].events;
	return events;
}

uint64_t sampler__lost(const struct sampler *sampler)
{
	uint64_t lost = 0;

	for (uint32_t cpu = 0; cpu < sampler->cpus; cpu++)
		lost += sampler->counters[cpu].lost;
	return lost;
}

uint64_t sampler__outcomes(const struct sampler *sampler, enum outcome outcome)
{
	uint64_t samples = 0;

	for (uint32_t cpu = 0; cpu < sampler->cpus; cpu++)
		samples += sampler->counters[cpu].outcomes[outcome];
	return samples;
}

void sampler__account(const struct sampler *sampler, struct ledger *ledger)
{
	ledger->events = sampler__events(sampler);
	ledger->lost = sampler__lost(sampler) + undefined_samples(sampler);
	ledger->ring_full = 0;
	for (uint32_t cpu = 0; cpu < sampler->cpus; cpu++)
		ledger->ring_full += sampler->counters[cpu].ring_full;
	ledger->periods = *clock__periods(sampler->clock);
}

void sampler__begin_epoch(struct sampler *sampler)
{
	sampler->bpf->bss->epoch++;
}

static int forward_libbpf(enum libbpf_print_level level, const char *format, va_list arguments)
{
	char *text;

	if (level == LIBBPF_DEBUG || log__level() < LOG_DEBUG ||
	    vasprintf(&text, format, arguments) < 0)
		return 0;
	/* The verifier's word comes in many lines. */
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		if (*line)
			log__debug("%s", line);
	free(text);
	return 0;
}

static int size_maps(struct sampler *sampler)
{
	struct pybpfprof_bpf *bpf = sampler->bpf;
	int error = bpf_map__set_max_entries(bpf->maps.walks, sampler->cpus);

	if (!error)
		error = bpf_map__set_max_entries(bpf->maps.counters, sampler->cpus);
	if (!error)
		error = bpf_map__set_max_entries(bpf->maps.stacks, sampler->cpus * STACK_BUCKETS);
	return error;
}

static const volatile void *map_read_only(struct bpf_map *map, size_t size, size_t *mapped)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *memory;

	*mapped = (size + page - 1) & ~(page - 1);
	memory = mmap(NULL, *mapped, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);
	return memory == MAP_FAILED ? NULL : memory;
}

static int load(struct sampler *sampler)
{
	struct pybpfprof_bpf *bpf;
	int error;

	libbpf_set_print(forward_libbpf);
	bpf = sampler->bpf = pybpfprof_bpf__open();
	if (!bpf)
		return -errno;
	if (getrandom((void *)&bpf->rodata->config.hash_seed, sizeof(__u64), 0) < 0)
		return -errno;
	error = size_maps(sampler);
	return error ? error : pybpfprof_bpf__load(bpf);
}

static int map_counters(struct sampler *sampler)
{
	sampler->buckets =
		map_read_only(sampler->bpf->maps.stacks,
			      (size_t)sampler->cpus * STACK_BUCKETS * sizeof(struct bucket),
			      &sampler->buckets_size);
	sampler->counters =
		map_read_only(sampler->bpf->maps.counters,
			      sampler->cpus * sizeof(struct cpu_counters), &sampler->counters_size);
	return sampler->buckets && sampler->counters ? 0 : -errno;
}

int sampler__open(const struct sampler_sink *sink, struct sampler **result)
{
	struct sampler *sampler = xcalloc(1, sizeof(*sampler));
	int error;

	sampler->sink = *sink;
	sampler->cpus = cpus__array_size();
	sampler->owners = xcalloc((size_t)sampler->cpus * STACK_SLOTS, sizeof(struct owner));
	error = load(sampler);
	if (!error)
		error = map_counters(sampler);
	if (!error) {
		sampler->ring = ring_buffer__new(bpf_map__fd(sampler->bpf->maps.definitions),
						 take_definition, sampler, NULL);
		error = sampler->ring ? 0 : -errno;
	}
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
	clock__free(sampler->clock);
	ring_buffer__free(sampler->ring);
	if (sampler->buckets)
		munmap((void *)sampler->buckets, sampler->buckets_size);
	if (sampler->counters)
		munmap((void *)sampler->counters, sampler->counters_size);
	pybpfprof_bpf__destroy(sampler->bpf);
	free(sampler->owners);
	free(sampler);
}

/* The index of LAYOUT in the kernel's table, adding it where it is new. */
static int layout_index(struct sampler *sampler, const struct layout *layout, uint32_t *index)
{
	for (*index = 0; *index < sampler->layouts; (*index)++)
		if (memcmp(&sampler->known_layouts[*index], layout, sizeof(*layout)) == 0)
			return 0;
	if (*index == LAYOUTS_MAX)
		return -E2BIG;
	sampler->known_layouts[sampler->layouts++] = *layout;
	return bpf_map__update_elem(sampler->bpf->maps.layouts, index, sizeof(*index), layout,
				    sizeof(*layout), BPF_ANY);
}

int sampler__add_target(struct sampler *sampler, pid_t tgid, const struct runtime *runtime)
{
	struct target target = { .interpreters = runtime->interpreters,
				 .code_type = runtime->code_type };
	uint32_t key = tgid;
	int error = layout_index(sampler, &runtime->layout, &target.layout);

	return error ? error
		     : bpf_map__update_elem(sampler->bpf->maps.targets, &key, sizeof(key), &target,
					    sizeof(target), BPF_ANY);
}

void sampler__identify_codes(struct sampler *sampler, pid_t tgid, bool identify)
{
	struct bpf_map *map = sampler->bpf->maps.targets;
	uint32_t key = tgid;
	struct target target;

	if (bpf_map__lookup_elem(map, &key, sizeof(key), &target, sizeof(target), 0))
		return;
	target.identify = identify;
	bpf_map__update_elem(map, &key, sizeof(key), &target, sizeof(target), BPF_EXIST);
}

void sampler__remove_target(struct sampler *sampler, pid_t tgid)
{
	uint32_t key = tgid;

	bpf_map__delete_elem(sampler->bpf->maps.targets, &key, sizeof(key), 0);
}

int sampler__start(struct sampler *sampler, double rate_hz, double limit_hz)
{
	int error = clock__open(rate_hz, limit_hz, &sampler->clock);

	return error ? error : clock__start(sampler->clock, sampler->bpf->progs.sample);
}

void sampler__stop(struct sampler *sampler)
{
	clock__stop(sampler->clock);
}

int sampler__fd(const struct sampler *sampler)
{
	return ring_buffer__epoll_fd(sampler->ring);
}
