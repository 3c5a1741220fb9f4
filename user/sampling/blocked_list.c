// SPDX-License-Identifier: BSD-2-Clause
/*
 * The slots of one CPU that is not there belong to user space.  BPF never chooses one of them for a
 * stack; it only adds the time of a wait that is over, as to any slot.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "sampling/blocked_list.h"
#include "pybpfprof.skel.h" /* needs the types of the headers above */

#define SLOT_BYTES (STACK_SLOTS * sizeof(struct slot))

/* How many threads are read at once. */
#define READ_AT_ONCE 64

struct blocked_list {
	struct pybpfprof_bpf *bpf;
	struct bpf_link *link;
	uint32_t cpus;
	volatile struct slot *slots; /* [STACK_SLOTS], the kernel's */
	uint32_t used, proved;	     /* how many; of them, those that were listed once more */
};

int blocked_list__open(struct pybpfprof_bpf *bpf, uint32_t cpus, struct blocked_list **result)
{
	struct blocked_list *list = xcalloc(1, sizeof(*list));
	int error;

	list->bpf = bpf;
	list->cpus = cpus;
	list->slots = mmap(NULL, SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			   bpf_map__fd(bpf->maps.stacks), (off_t)cpus * SLOT_BYTES);
	if (list->slots == MAP_FAILED)
		list->slots = NULL;
	if (list->slots)
		list->link = bpf_program__attach_iter(bpf->progs.list_blocked, NULL);
	error = list->link ? 0 : -errno;
	if (error)
		blocked_list__close(list);
	else
		*result = list;
	return error;
}

void blocked_list__close(struct blocked_list *list)
{
	if (!list)
		return;
	bpf_link__destroy(list->link);
	if (list->slots)
		munmap((void *)list->slots, SLOT_BYTES);
	free(list);
}

/* The number of the first of the slots among those of all CPUs. */
static uint32_t first_slot(const struct blocked_list *list)
{
	return list->cpus * STACK_SLOTS;
}

ssize_t blocked_list__read(struct blocked_list *list, bool entered, struct blocked_thread **threads,
			   size_t *capacity)
{
	ssize_t got, error = 0;
	size_t bytes = 0;
	int fd;

	list->bpf->bss->listing_from = entered ? first_slot(list) + list->proved : 0;
	fd = bpf_iter_create(bpf_link__fd(list->link));
	if (fd < 0)
		return -errno;
	do {
		size_t count = bytes / sizeof(**threads) + READ_AT_ONCE;

		*threads = xgrow(*threads, capacity, count, sizeof(**threads));
		got = read(fd, (uint8_t *)*threads + bytes, READ_AT_ONCE * sizeof(**threads));
		/* The kernel pauses after a million threads. */
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			error = -errno;
		bytes += got > 0 ? got : 0;
	} while (got && !error);
	close(fd);
	if (entered)
		list->proved = list->used;
	return error ? error : (ssize_t)(bytes / sizeof(**threads));
}

bool blocked_list__describe(const struct blocked_list *list, const struct blocked_thread *thread,
			    struct target *target, struct layout *layout,
			    struct outside_settings *settings)
{
	const struct pybpfprof_bpf *bpf = list->bpf;

	settings->config = bpf->rodata->config;
	settings->epoch = bpf->bss->epoch;
	settings->unseen_thread_bits = bpf->bss->unseen_thread_bits;
	return !bpf_map__lookup_elem(bpf->maps.targets, &thread->kernel_tgid, sizeof(__u32), target,
				     sizeof(*target), 0) &&
	       target->serial == thread->serial &&
	       !bpf_map__lookup_elem(bpf->maps.layouts, &target->layout, sizeof(__u32), layout,
				     sizeof(*layout), 0);
}

bool blocked_list__enter(struct blocked_list *list, const struct blocked_thread *thread,
			 int64_t since, uint64_t hash, uint32_t *slot)
{
	const struct wait wait = { .since = since,
				   .start_time = thread->start_time,
				   .stacks[0] = { .hash = hash,
						  .slot = first_slot(list) + list->used,
						  .queue_slot = NO_SLOT } };

	if (blocked_list__is_full(list))
		return false;
	/* First: the thread may wake as soon as it has a wait. */
	__atomic_store_n(&list->slots[list->used].hash, hash, __ATOMIC_RELEASE);
	if (bpf_map__update_elem(list->bpf->maps.waits, &thread->kernel_tid, sizeof(__u32), &wait,
				 sizeof(wait), BPF_NOEXIST))
		return false;
	*slot = list->used++;
	if (blocked_list__is_full(list))
		log__warning("there is no room for more threads that wait already: they are shown "
			     "once they have run");
	return true;
}

bool blocked_list__is_full(const struct blocked_list *list)
{
	return list->used == STACK_SLOTS;
}

void blocked_list__count(struct blocked_list *list, uint32_t slot, struct definition *definition)
{
	definition->cpu = list->cpus;
	definition->slot = slot;
	list->slots[slot].amount.count = 1;
	/* It has no owner before this one, and begins with nothing. */
	__atomic_store_n(&list->slots[slot].defined, 1, __ATOMIC_RELEASE);
}

void blocked_list__withdraw(struct blocked_list *list, const struct blocked_thread *thread,
			    uint32_t slot)
{
	const struct bpf_map *waits = list->bpf->maps.waits;
	struct wait wait;

	if (!bpf_map__lookup_elem(waits, &thread->kernel_tid, sizeof(__u32), &wait, sizeof(wait),
				  0) &&
	    wait.stacks[wait.at].slot == first_slot(list) + slot)
		bpf_map__delete_elem(waits, &thread->kernel_tid, sizeof(__u32), 0);
}
