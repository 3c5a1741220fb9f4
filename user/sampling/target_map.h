/* SPDX-License-Identifier: BSD-2-Clause */
/* What BPF knows of processes and files: which are sampled, and how they are walked. */
#ifndef PYBPFPROF_TARGET_MAP_H
#define PYBPFPROF_TARGET_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "pybpfprof.h"
#include "python/runtime.h"

struct pybpfprof_bpf;
struct target_map;

/* A process in BPF's map: the kernel's number, which is used again, and one that is not. */
struct target_key {
	pid_t kernel_pid;
	uint64_t serial;
};

/* The maps of the loaded program BPF, which must outlive the result.  Free with target_map__free,
 * NULL too. */
struct target_map *target_map__new(struct pybpfprof_bpf *bpf);
void target_map__free(struct target_map *map);

/* A serial number that no other process has. */
uint64_t target_map__new_serial(struct target_map *map);

/* How many processes target_map__put has put. */
uint64_t target_map__puts(const struct target_map *map);

/* Samples the process from now on, as RUNTIME says.  *WAITED: how many samples it had before, since
 * BPF saw it.  0; -ESTALE where BPF has another process or program by that number, and has reported
 * it; -E2BIG where there is no room for the process; -ENOSPC where LAYOUTS_MAX other layouts are in
 * use; or -errno. */
int target_map__put(struct target_map *map, struct target_key key, const struct runtime *runtime,
		    uint64_t *waited);

/* Counts its samples under the reason OUTCOME from now on.  *WAITED and result as above. */
int target_map__refuse(struct target_map *map, struct target_key key, enum outcome outcome,
		       uint64_t *waited);

/* It is not a Python: only follows it.  The result as above. */
int target_map__follow(struct target_map *map, struct target_key key);

/* It is not wanted: follows it, and counts the samples of what it forks until user space has
 * decided.  The result as above. */
int target_map__set_aside(struct target_map *map, struct target_key key);

/* It may become a Python: counts its samples meanwhile.  No effect where it is known already. */
void target_map__await(struct target_map *map, struct target_key key);

/* How many samples were counted since target_map__await; 0 where it does not wait any more. */
uint64_t target_map__awaited(const struct target_map *map, struct target_key key);

/* Takes no more samples of it.  No effect where another process has its number. */
void target_map__remove(struct target_map *map, struct target_key key);

/* Whether BPF knows any process by that number. */
bool target_map__has(const struct target_map *map, pid_t kernel_pid);

/* Whether it knows one that it could not report, for lack of room. */
bool target_map__has_untold(const struct target_map *map, pid_t kernel_pid);

/* Makes such a process the one of KEY, which waits.  Returns whether there was one. */
bool target_map__claim(struct target_map *map, struct target_key key);

/* Whether it knows this very process, and has reported it. */
bool target_map__has_told(const struct target_map *map, struct target_key key);

/* Whether it knows this very process; then that has not ended. */
bool target_map__holds(const struct target_map *map, struct target_key key);

/* Whether it samples this very process. */
bool target_map__samples(const struct target_map *map, struct target_key key);

/* Sets how code objects are identified in each sample.  VERSIONS_REPEAT: their versions are not
 * enough to tell them apart. */
void target_map__identify_codes(struct target_map *map, struct target_key key,
				enum identification identify, bool versions_repeat);

/* How often the rate of the process is halved.  The second sets that; false: BPF no longer has the
 * process. */
unsigned int target_map__rate_shift(const struct target_map *map, struct target_key key);
bool target_map__shift_rate(struct target_map *map, struct target_key key, unsigned int shift);

/* Where a file's code begins: its place in the file, and its address by the file. */
struct text_place {
	uint64_t offset, address;
};

/* The file KEY, whose code is at TEXT, holds the Python RUNTIME, with the addresses of the file.
 * IMAGE is the caller's number of the file, not 0. */
void target_map__know_python(struct target_map *map, const struct file_key *key,
			     struct text_place text, uint32_t image, const struct runtime *runtime);

/* The file KEY holds no Python.  LEADS_TO_ONE: but a program that begins with it may load one. */
void target_map__know_other(struct target_map *map, const struct file_key *key, bool leads_to_one);

/* Tells BPF that the state of thread THREAD_ID is at ADDRESS; BPF checks that.  0, or -E2BIG after
 * TOLD_STATES_MAX threads. */
int target_map__tell_state(struct target_map *map, pid_t kernel_pid, uint64_t thread_id,
			   uint64_t address);

/* Undoes all calls of target_map__tell_state. */
void target_map__forget_states(struct target_map *map);

#endif
