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

#include "clock.h"
#include "cpus.h"
#include "log.h"
#include "now.h"
#include "pid_namespace.h"
#include "pybpfprof.skel.h"
#include "sampler.h"
#include "xalloc.h"

/* One draining takes little longer, unless it is the last one. */
#define DRAIN_NS (100 * 1000 * 1000LL)

struct sampler {
	struct pybpfprof_bpf *bpf;
	struct ring_buffer *ring;
	struct clock *clock;
	struct slots *slots;
	uint32_t cpus;
	uint32_t layouts;
	struct layout known_layouts[LAYOUTS_MAX];
	const volatile struct bucket *buckets;	      /* [cpus * STACK_BUCKETS], the kernel's */
	const volatile struct cpu_counters *counters; /* [cpus], the kernel's */
	size_t buckets_size, counters_size;
	bool running;
	int64_t drain_end_ns;
};

/* Does not let itself be kept from what else is due by a target whose stacks come faster than they
 * are taken. */
static int take_record(void *context, void *data, size_t size)
{
	struct sampler *sampler = context;

	slots__take(sampler->slots, data, size);
	return sampler->running && now_ns() > sampler->drain_end_ns ? -EAGAIN : 0;
}

void sampler__drain(struct sampler *sampler)
{
	sampler->drain_end_ns = now_ns() + DRAIN_NS;
	ring_buffer__consume(sampler->ring);
}

void sampler__harvest(struct sampler *sampler)
{
	slots__harvest(sampler->slots);
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

void sampler__look_at_cpus(struct sampler *sampler)
{
	clock__look_at_cpus(sampler->clock);
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
	ledger->lost = sampler__lost(sampler) + slots__undefined(sampler->slots);
	ledger->ring_full = 0;
	for (uint32_t cpu = 0; cpu < sampler->cpus; cpu++)
		ledger->ring_full += sampler->counters[cpu].ring_full;
	ledger->cpus_not_sampled = clock__look_at_cpus(sampler->clock);
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

static int size_maps(struct pybpfprof_bpf *bpf, uint32_t cpus)
{
	int error = bpf_map__set_max_entries(bpf->maps.walks, cpus);

	if (!error)
		error = bpf_map__set_max_entries(bpf->maps.counters, cpus);
	if (!error)
		error = bpf_map__set_max_entries(bpf->maps.stacks, cpus * STACK_BUCKETS);
	return error;
}

uint64_t sampler__map_bytes(void)
{
	struct pybpfprof_bpf *bpf = pybpfprof_bpf__open();
	const struct bpf_map *map;
	uint64_t bytes = 0;

	if (bpf && size_maps(bpf, cpus__array_size()) == 0) {
		/* A ring buffer has neither keys nor values, but so many bytes. */
		bpf_object__for_each_map (map, bpf->obj)
			bytes += (uint64_t)bpf_map__max_entries(map) *
				 (bpf_map__value_size(map) ?: 1);
	}
	pybpfprof_bpf__destroy(bpf);
	return bytes;
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
	error = size_maps(bpf, sampler->cpus);
	if (!error)
		error = bpf_program__set_autoload(bpf->progs.find_process,
						  !pid_namespace__is_first());
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

	sampler->cpus = cpus__array_size();
	error = load(sampler);
	if (!error)
		error = map_counters(sampler);
	if (!error) {
		sampler->slots = slots__new(sink, sampler->buckets, sampler->cpus);
		sampler->ring = ring_buffer__new(bpf_map__fd(sampler->bpf->maps.definitions),
						 take_record, sampler, NULL);
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
	slots__free(sampler->slots);
	free(sampler);
}

bool sampler__is_compiled(const struct sampler *sampler)
{
	struct bpf_prog_info info = { 0 };
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(bpf_program__fd(sampler->bpf->progs.sample), &info, &size) ==
		       0 &&
	       info.jited_prog_len;
}

bool sampler__may_use_maps(const struct sampler *sampler)
{
	struct layout layout;
	uint32_t first = 0;

	return bpf_map__lookup_elem(sampler->bpf->maps.layouts, &first, sizeof(first), &layout,
				    sizeof(layout), 0) != -EPERM;
}

/* Has the kernel call find_process for each thread of this PID namespace. */
static int go_through_threads(const struct sampler *sampler)
{
	struct bpf_link *link = bpf_program__attach_iter(sampler->bpf->progs.find_process, NULL);
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
	int error = fd < 0 ? -errno : 0;
	char nothing;

	/* It pauses after very many. */
	while (!error && read(fd, &nothing, sizeof(nothing)) < 0)
		error = errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return error;
}

int sampler__find_kernel_pid(struct sampler *sampler, pid_t pid, pid_t *kernel_pid, pid_t *namesake)
{
	volatile struct pid_search *search = &sampler->bpf->bss->pid_search;
	int error;

	*kernel_pid = pid;
	*namesake = 0;
	if (pid_namespace__is_first())
		return 0;
	search->pid = pid;
	search->kernel_pid = search->namesake = 0;
	error = go_through_threads(sampler);
	if (error)
		return error;
	*kernel_pid = search->kernel_pid;
	*namesake = search->namesake;
	return *kernel_pid ? 0 : -ESRCH;
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
				 .code_type = runtime->code_type,
				 .thread_area = runtime->thread_area,
				 .entry_gap = runtime->entry_gap };
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

int sampler__tell_state(struct sampler *sampler, pid_t tgid, uint64_t thread_id, uint64_t address)
{
	struct thread_key key = { .thread_id = thread_id, .tgid = tgid };

	return bpf_map__update_elem(sampler->bpf->maps.told_states, &key, sizeof(key), &address,
				    sizeof(address), BPF_ANY);
}

void sampler__forget_states(struct sampler *sampler)
{
	struct bpf_map *map = sampler->bpf->maps.told_states;
	struct thread_key key;

	while (!bpf_map__get_next_key(map, NULL, &key, sizeof(key)))
		bpf_map__delete_elem(map, &key, sizeof(key), 0);
}

int sampler__start(struct sampler *sampler, double rate_hz, double limit_hz)
{
	int error = clock__open(rate_hz, limit_hz, &sampler->clock);

	sampler->running = true;
	return error ? error : clock__start(sampler->clock, sampler->bpf->progs.sample);
}

void sampler__stop(struct sampler *sampler)
{
	clock__stop(sampler->clock);
	sampler->running = false;
}

int sampler__fd(const struct sampler *sampler)
{
	return ring_buffer__epoll_fd(sampler->ring);
}
