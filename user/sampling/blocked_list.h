/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel knows of blocked threads (bpf/blocked.bpf.h), and their places among the waits
 * and the slots. */
#ifndef PYBPFPROF_BLOCKED_LIST_H
#define PYBPFPROF_BLOCKED_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pybpfprof.h"
#include "sampling/outside_walker.h"

struct pybpfprof_bpf;
struct blocked_list;

/* The program BPF is loaded, and has the slots of one CPU more than CPUS.  0 with *LIST for
 * blocked_list__close, or the -errno of the kernel's refusal. */
int blocked_list__open(struct pybpfprof_bpf *bpf, uint32_t cpus, struct blocked_list **list);
void blocked_list__close(struct blocked_list *list);

/* Lists the blocked threads of targets that have no wait; or, ENTERED, those whose wait was entered
 * since the last such list, and that have not waited again.
 * *THREADS has room for CAPACITY of them, and grows.  Returns how many, or -errno. */
ssize_t blocked_list__read(struct blocked_list *list, bool entered, struct blocked_thread **threads,
			   size_t *capacity);

/* The target and the layout of THREAD, and what all walks have in common.  False: it is no target's
 * any more. */
bool blocked_list__describe(const struct blocked_list *list, const struct blocked_thread *thread,
			    struct target *target, struct layout *layout,
			    struct outside_settings *settings);

/* Whether it has no slot for another thread: it gives each out once. */
bool blocked_list__is_full(const struct blocked_list *list);

/* Enters a wait of THREAD, which has had none, since SINCE with the stack HASH.  *SLOT: where its
 * time goes to.  False: it has run meanwhile, or there is no room. */
bool blocked_list__enter(struct blocked_list *list, const struct blocked_thread *thread,
			 int64_t since, uint64_t hash, uint32_t *slot);

/* The stack in SLOT counts.  DEFINITION, as the walker made it, is to define it. */
void blocked_list__count(struct blocked_list *list, uint32_t slot, struct definition *definition);

/* Undoes blocked_list__enter, unless THREAD has waited again. */
void blocked_list__withdraw(struct blocked_list *list, const struct blocked_thread *thread,
			    uint32_t slot);

#endif
