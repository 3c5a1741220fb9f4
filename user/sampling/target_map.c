// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/xalloc.h"
#include "sampling/target_map.h"
#include "pybpfprof.skel.h" /* needs the types of the headers above */

struct target_map {
	struct pybpfprof_bpf *bpf;
	uint32_t layouts;
	struct layout known_layouts[LAYOUTS_MAX];
	uint64_t serial; /* the newest */
	uint64_t puts;
};

struct target_map *target_map__new(struct pybpfprof_bpf *bpf)
{
	struct target_map *map = xcalloc(1, sizeof(*map));

	map->bpf = bpf;
	return map;
}

void target_map__free(struct target_map *map)
{
	free(map);
}

uint64_t target_map__new_serial(struct target_map *map)
{
	return ++map->serial;
}

uint64_t target_map__puts(const struct target_map *map)
{
	return map->puts;
}

/* Finds LAYOUT in the kernel's table, or adds it; -ENOSPC where there is no room. */
static int layout_index(struct target_map *map, const struct layout *layout, uint32_t *index)
{
	for (*index = 0; *index < map->layouts; (*index)++)
		if (memcmp(&map->known_layouts[*index], layout, sizeof(*layout)) == 0)
			return 0;
	if (*index == LAYOUTS_MAX)
		return -ENOSPC;
	map->known_layouts[map->layouts++] = *layout;
	return bpf_map__update_elem(map->bpf->maps.layouts, index, sizeof(*index), layout,
				    sizeof(*layout), BPF_ANY);
}

static bool look_up(const struct target_map *map, pid_t kernel_pid, struct target *target)
{
	return !bpf_map__lookup_elem(map->bpf->maps.targets, &kernel_pid, sizeof(kernel_pid),
				     target, sizeof(*target), 0);
}

/* The same, but false if the entry is another process's. */
static bool look_up_own(const struct target_map *map, struct target_key key, struct target *target)
{
	return look_up(map, key.kernel_pid, target) && target->serial == key.serial;
}

static int update(struct target_map *map, pid_t kernel_pid, const struct target *target)
{
	return bpf_map__update_elem(map->bpf->maps.targets, &kernel_pid, sizeof(kernel_pid), target,
				    sizeof(*target), BPF_ANY);
}

/* Replaces the entry of the same process, if there is one, by TARGET; keeps what BPF has learned.
 */
static int put(struct target_map *map, struct target_key key, struct target *target,
	       uint64_t *waited)
{
	struct target before = { 0 };
	bool known = look_up(map, key.kernel_pid, &before);

	if (known && before.serial != key.serial)
		return -ESTALE;
	*waited = before.state == TARGET_WAITING ? before.waiting : 0;
	target->serial = key.serial;
	target->before = before.before;
	target->memory = before.memory;
	target->several = before.several;
	target->lent = before.lent;
	target->rate_shift = before.rate_shift;
	return update(map, key.kernel_pid, target);
}

static int fill(struct target_map *map, const struct runtime *runtime, struct target *target)
{
	*target = (struct target){ .interpreters = runtime->interpreters,
				   .code_type = runtime->code_type,
				   .thread_area = runtime->thread_area,
				   .entry_gap = runtime->entry_gap,
				   .identify = IDENTIFIED_WHOLLY,
				   .begins = runtime->begins,
				   .state = TARGET_PYTHON };
	return layout_index(map, &runtime->layout, &target->layout);
}

int target_map__put(struct target_map *map, struct target_key key, const struct runtime *runtime,
		    uint64_t *waited)
{
	struct target target;
	int error = fill(map, runtime, &target);

	*waited = 0;
	if (!error)
		error = put(map, key, &target, waited);
	map->puts += !error;
	return error;
}

int target_map__refuse(struct target_map *map, struct target_key key, enum outcome outcome,
		       uint64_t *waited)
{
	struct target target = { .state = TARGET_REFUSED, .refusal = outcome };

	return put(map, key, &target, waited);
}

/* The process is followed, in STATE, and not sampled. */
static int put_followed(struct target_map *map, struct target_key key, enum target_state state)
{
	struct target target = { .state = state };
	uint64_t waited;

	return put(map, key, &target, &waited);
}

int target_map__follow(struct target_map *map, struct target_key key)
{
	return put_followed(map, key, TARGET_OTHER);
}

int target_map__set_aside(struct target_map *map, struct target_key key)
{
	return put_followed(map, key, TARGET_UNWANTED);
}

void target_map__await(struct target_map *map, struct target_key key)
{
	struct target target = { .state = TARGET_WAITING, .serial = key.serial };

	if (!target_map__has(map, key.kernel_pid))
		update(map, key.kernel_pid, &target);
}

uint64_t target_map__awaited(const struct target_map *map, struct target_key key)
{
	struct target target;

	return look_up_own(map, key, &target) && target.state == TARGET_WAITING ? target.waiting
										: 0;
}

void target_map__remove(struct target_map *map, struct target_key key)
{
	struct target target;

	if (look_up_own(map, key, &target))
		bpf_map__delete_elem(map->bpf->maps.targets, &key.kernel_pid,
				     sizeof(key.kernel_pid), 0);
}

bool target_map__has(const struct target_map *map, pid_t kernel_pid)
{
	struct target target;

	return look_up(map, kernel_pid, &target);
}

bool target_map__has_untold(const struct target_map *map, pid_t kernel_pid)
{
	struct target target;

	return look_up(map, kernel_pid, &target) && target.state == TARGET_UNTOLD;
}

bool target_map__has_told(const struct target_map *map, struct target_key key)
{
	struct target target;

	return look_up_own(map, key, &target) && target.state != TARGET_UNTOLD;
}

bool target_map__claim(struct target_map *map, struct target_key key)
{
	struct target target;

	if (!look_up(map, key.kernel_pid, &target) || target.state != TARGET_UNTOLD)
		return false;
	target.state = TARGET_WAITING;
	target.serial = key.serial;
	return !update(map, key.kernel_pid, &target);
}

bool target_map__holds(const struct target_map *map, struct target_key key)
{
	struct target target;

	return look_up_own(map, key, &target);
}

bool target_map__samples(const struct target_map *map, struct target_key key)
{
	struct target target;

	return look_up_own(map, key, &target) &&
	       (target.state == TARGET_PYTHON || target.state == TARGET_LOADING ||
		target.state == TARGET_REFUSED);
}

void target_map__identify_codes(struct target_map *map, struct target_key key,
				enum identification identify, bool versions_repeat)
{
	struct target target;

	if (!look_up_own(map, key, &target))
		return;
	target.identify = identify;
	target.repeats = versions_repeat;
	update(map, key.kernel_pid, &target);
}

unsigned int target_map__rate_shift(const struct target_map *map, struct target_key key)
{
	struct target target;

	return look_up_own(map, key, &target) ? target.rate_shift : 0;
}

bool target_map__shift_rate(struct target_map *map, struct target_key key, unsigned int shift)
{
	struct target target;

	if (!look_up_own(map, key, &target))
		return false;
	target.rate_shift = shift;
	return !update(map, key.kernel_pid, &target);
}

static void know_file(struct target_map *map, const struct file_key *key,
		      const struct known_file *file)
{
	/* If that fails, or evicts another file, BPF reports the file again. */
	bpf_map__update_elem(map->bpf->maps.known_files, key, sizeof(*key), file, sizeof(*file),
			     BPF_ANY);
}

void target_map__know_python(struct target_map *map, const struct file_key *key,
			     struct text_place text, uint32_t image, const struct runtime *runtime)
{
	struct known_file file = { .text_offset = text.offset, .text_address = text.address };

	if (fill(map, runtime, &file.target))
		return;
	file.target.image = image;
	know_file(map, key, &file);
}

void target_map__know_other(struct target_map *map, const struct file_key *key, bool leads_to_one)
{
	const struct known_file file = {
		.target.state = leads_to_one ? TARGET_WAITING : TARGET_OTHER,
	};

	know_file(map, key, &file);
}

int target_map__tell_state(struct target_map *map, pid_t kernel_pid, uint64_t thread_id,
			   uint64_t address)
{
	struct thread_key key = { .thread_id = thread_id, .tgid = kernel_pid };

	return bpf_map__update_elem(map->bpf->maps.told_states, &key, sizeof(key), &address,
				    sizeof(address), BPF_ANY);
}

void target_map__forget_states(struct target_map *map)
{
	struct bpf_map *told = map->bpf->maps.told_states;
	struct thread_key key;

	while (!bpf_map__get_next_key(told, NULL, &key, sizeof(key)))
		bpf_map__delete_elem(told, &key, sizeof(key), 0);
}
