/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel side knows of processes: which are sampled, and how they are walked. */
#ifndef PYBPFPROF_TARGET_MAP_H
#define PYBPFPROF_TARGET_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "pybpfprof.h"
#include "python/runtime.h"

struct pybpfprof_bpf;
struct target_map;

/* A process, as the kernel side knows it. */
struct target_key {
	pid_t kernel_pid;
	uint64_t serial;
};

/* Of the loaded program BPF, which must outlive it.  Free with target_map__free, NULL too. */
struct target_map *target_map__new(struct pybpfprof_bpf *bpf);
void target_map__free(struct target_map *map);

/* A number that no other process has. */
uint64_t target_map__new_serial(struct target_map *map);

/* Samples of the process are taken from now on, with what RUNTIME says.  *WAITED: how many came
 * before, since it was seen.  0; -ESTALE where the kernel side knows another process, or program,
 * by that number, and has told so; -E2BIG where there is no room for it; -ENOSPC where LAYOUTS_MAX
 * others have a layout each that is not its own; or -errno. */
int target_map__put(struct target_map *map, struct target_key key, const struct runtime *runtime,
		    uint64_t *waited);

/* Its samples come to the reason OUTCOME from now on. */
int target_map__refuse(struct target_map *map, struct target_key key, enum outcome outcome,
		       uint64_t *waited);

/* It is no Python, and only followed. */
int target_map__follow(struct target_map *map, struct target_key key);

/* It is not wanted, and followed; what it forks is awaited from then on. */
int target_map__set_aside(struct target_map *map, struct target_key key);

/* It may become a Python: its samples are counted meanwhile, as far as they are not already. */
void target_map__await(struct target_map *map, struct target_key key);

/* How many samples were counted of one that is awaited. */
uint64_t target_map__awaited(const struct target_map *map, struct target_key key);

/* No more samples of it are taken, unless its number is another's by now. */
void target_map__remove(struct target_map *map, struct target_key key);

/* Whether the kernel side knows any process by that number. */
bool target_map__has(const struct target_map *map, pid_t kernel_pid);

/* Whether it knows one that it could not tell of. */
bool target_map__has_untold(const struct target_map *map, pid_t kernel_pid);

/* Has one that it could not tell of be the process KEY, which waits; returns whether it is such a
 * one, with how often its rate is halved. */
bool target_map__claim(struct target_map *map, struct target_key key, unsigned int *halvings);

/* Whether it knows that very process, and could tell all that became of it. */
bool target_map__has_told(const struct target_map *map, struct target_key key);

/* Whether it knows that very process, which so has not ended yet. */
bool target_map__holds(const struct target_map *map, struct target_key key);

/* Whether it takes samples of that very process. */
bool target_map__samples(const struct target_map *map, struct target_key key);

/* Has its code objects identified so in each of its samples; where their VERSIONS_REPEAT, these do
 * not count. */
void target_map__identify_codes(struct target_map *map, struct target_key key,
				enum identification identify, bool versions_repeat);

/* Has it sampled at the rate of all halved so often; returns whether it is. */
bool target_map__halve_rate(struct target_map *map, struct target_key key, unsigned int halvings);

/* Where in a file its code begins, and the address that the file gives it. */
struct text_place {
	uint64_t offset, address;
};

/* The file KEY, whose code is at TEXT, holds the Python RUNTIME, with the addresses of the file;
 * IMAGE is the caller's number of it, not 0. */
void target_map__know_python(struct target_map *map, const struct file_key *key,
			     struct text_place text, uint32_t image, const struct runtime *runtime);

/* The file KEY holds no Python; LEADS_TO_ONE: but a program that begins with it may be one. */
void target_map__know_other(struct target_map *map, const struct file_key *key, bool leads_to_one);

/* The state of the thread of that process with THREAD_ID is at ADDRESS, if it is there still.
 * 0, or -E2BIG after TOLD_STATES_MAX of them. */
int target_map__tell_state(struct target_map *map, pid_t kernel_pid, uint64_t thread_id,
			   uint64_t address);

/* Forgets all that target_map__tell_state told. */
void target_map__forget_states(struct target_map *map);

#endif
