/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for BPF in tests of the watch: what BPF knows of some processes that do not exist, by
 * the interface of target_map.h.  The linker redirects calls to these functions (WATCH_WRAPPED in
 * the Makefile). */
#ifndef PYBPFPROF_TEST_FAKE_KERNEL_H
#define PYBPFPROF_TEST_FAKE_KERNEL_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/sampler.h"
#include "wrap.h"

/* No process has these PIDs. */
#define FIRST_PID 0x7ffffff0
#define PIDS	  8

/* The state of BPF's maps and counters. */
static struct {
	struct target targets[PIDS]; /* serial 0: none */
	size_t places;		     /* room for this many targets; 0: for all */
	uint64_t serial, untold, crowded;
	uint32_t image; /* of the last target_map__know_python */
	bool sees_mappings;
	bool is_written_over; /* events do not change the entries of processes */
	bool has_no_layout;   /* and no room for another one */
} kernel;

static struct target *entry_of(pid_t kernel_pid)
{
	if (kernel_pid < FIRST_PID || kernel_pid - FIRST_PID >= PIDS)
		abort();
	return &kernel.targets[kernel_pid - FIRST_PID];
}

static bool is_full(void)
{
	size_t count = 0;

	for (size_t i = 0; i < PIDS; i++)
		count += kernel.targets[i].serial != 0;
	return kernel.places && count >= kernel.places;
}

static int put(struct target_key key, enum target_state state, uint64_t *waited)
{
	struct target *target = entry_of(key.kernel_pid);

	if (!key.serial)
		abort();
	if (target->serial && target->serial != key.serial)
		return -ESTALE;
	if (!target->serial && is_full())
		return -E2BIG;
	*waited = target->state == TARGET_WAITING ? target->waiting : 0;
	*target = (struct target){ .serial = key.serial, .state = state };
	return 0;
}

#define MAP struct target_map *map

WRAP(void, sampler__walk_blocked, struct sampler *sampler, int64_t now)
{
	(void)sampler;
	(void)now;
}

WRAP(void, sampler__enter, struct sampler *sampler, uint64_t serial, pid_t pid)
{
	(void)sampler;
	(void)serial;
	(void)pid;
}

WRAP(void, sampler__leave, struct sampler *sampler, uint64_t serial)
{
	(void)sampler;
	(void)serial;
}

WRAP(int64_t, sampler__blocked_due, const struct sampler *sampler)
{
	(void)sampler;
	return INT64_MAX;
}

WRAP(uint64_t, target_map__new_serial, MAP)
{
	(void)map;
	return ++kernel.serial;
}

WRAP(int, target_map__put, MAP, struct target_key key, const struct runtime *runtime,
     uint64_t *waited)
{
	(void)map;
	(void)runtime;
	*waited = 0;
	return kernel.has_no_layout ? -ENOSPC : put(key, TARGET_PYTHON, waited);
}

WRAP(int, target_map__refuse, MAP, struct target_key key, enum outcome outcome, uint64_t *waited)
{
	int error = put(key, TARGET_REFUSED, waited);

	(void)map;
	if (!error)
		entry_of(key.kernel_pid)->refusal = outcome;
	return error;
}

WRAP(int, target_map__follow, MAP, struct target_key key)
{
	uint64_t waited;

	(void)map;
	return put(key, TARGET_OTHER, &waited);
}

WRAP(int, target_map__set_aside, MAP, struct target_key key)
{
	uint64_t waited;

	(void)map;
	return put(key, TARGET_UNWANTED, &waited);
}

WRAP(void, target_map__await, MAP, struct target_key key)
{
	uint64_t waited;

	(void)map;
	if (!entry_of(key.kernel_pid)->serial)
		put(key, TARGET_WAITING, &waited);
}

WRAP(uint64_t, target_map__awaited, const MAP, struct target_key key)
{
	const struct target *target = entry_of(key.kernel_pid);

	(void)map;
	return target->serial == key.serial && target->state == TARGET_WAITING ? target->waiting
									       : 0;
}

WRAP(void, target_map__remove, MAP, struct target_key key)
{
	struct target *target = entry_of(key.kernel_pid);

	(void)map;
	if (target->serial == key.serial)
		memset(target, 0, sizeof(*target));
}

WRAP(bool, target_map__has, const MAP, pid_t kernel_pid)
{
	(void)map;
	return entry_of(kernel_pid)->serial;
}

WRAP(bool, target_map__has_untold, const MAP, pid_t kernel_pid)
{
	(void)map;
	return entry_of(kernel_pid)->serial && entry_of(kernel_pid)->state == TARGET_UNTOLD;
}

WRAP(bool, target_map__has_told, const MAP, struct target_key key)
{
	const struct target *target = entry_of(key.kernel_pid);

	(void)map;
	return target->serial == key.serial && target->state != TARGET_UNTOLD;
}

WRAP(bool, target_map__claim, MAP, struct target_key key)
{
	struct target *target = entry_of(key.kernel_pid);

	if (!target_map__has_untold(map, key.kernel_pid))
		return false;
	target->state = TARGET_WAITING;
	target->serial = key.serial;
	return true;
}

WRAP(bool, target_map__holds, const MAP, struct target_key key)
{
	(void)map;
	return entry_of(key.kernel_pid)->serial == key.serial;
}

WRAP(bool, target_map__samples, const MAP, struct target_key key)
{
	const struct target *target = entry_of(key.kernel_pid);

	(void)map;
	return target->serial == key.serial &&
	       (target->state == TARGET_PYTHON || target->state == TARGET_LOADING ||
		target->state == TARGET_REFUSED);
}

WRAP(unsigned int, target_map__rate_shift, const MAP, struct target_key key)
{
	(void)map;
	return entry_of(key.kernel_pid)->rate_shift;
}

WRAP(bool, target_map__shift_rate, MAP, struct target_key key, unsigned int shift)
{
	(void)map;
	if (entry_of(key.kernel_pid)->serial != key.serial)
		return false;
	entry_of(key.kernel_pid)->rate_shift = shift;
	return true;
}

WRAP(void, target_map__know_python, MAP, const struct file_key *key, struct text_place text,
     uint32_t image, const struct runtime *runtime)
{
	(void)map;
	(void)key;
	(void)text;
	(void)runtime;
	if (!image)
		abort();
	kernel.image = image;
}

WRAP(void, target_map__know_other, MAP, const struct file_key *key, bool leads_to_one)
{
	(void)map;
	(void)key;
	(void)leads_to_one;
}

WRAP(struct target_map *, sampler__targets, struct sampler *sampler)
{
	(void)sampler;
	return NULL;
}

WRAP(int, sampler__follow, struct sampler *sampler)
{
	(void)sampler;
	return 0;
}

WRAP(void, sampler__begin_epoch, struct sampler *sampler)
{
	(void)sampler;
}

WRAP(bool, sampler__sees_mappings, const struct sampler *sampler)
{
	(void)sampler;
	return kernel.sees_mappings;
}

WRAP(uint64_t, sampler__untold, const struct sampler *sampler)
{
	(void)sampler;
	return kernel.untold;
}

WRAP(uint64_t, sampler__crowded, const struct sampler *sampler)
{
	(void)sampler;
	return kernel.crowded;
}

WRAP(uint64_t, sampler__outcomes, const struct sampler *sampler, enum outcome outcome)
{
	(void)sampler;
	(void)outcome;
	return 0;
}

#endif
