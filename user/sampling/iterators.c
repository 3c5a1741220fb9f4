// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "processes/pid_namespace.h"
#include "sampling/iterators.h"
#include "sampling/slots.h"
#include "pybpfprof.skel.h" /* needs the types of the headers above */

/* Runs the iterator of LINK to its end.  0 or -errno. */
static int run(const struct bpf_link *link)
{
	int fd = bpf_iter_create(bpf_link__fd(link)), error = fd < 0 ? -errno : 0;
	char nothing;

	/* The kernel pauses after a million entries. */
	while (!error && read(fd, &nothing, sizeof(nothing)) < 0)
		error = errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (fd >= 0)
		close(fd);
	return error;
}

/* Runs the program find_process for each thread of this PID namespace. */
static int go_through_threads(const struct pybpfprof_bpf *bpf)
{
	struct bpf_link *link = bpf_program__attach_iter(bpf->progs.find_process, NULL);
	int error = link ? run(link) : -errno;

	bpf_link__destroy(link);
	return error;
}

int iterators__find_kernel_pid(struct pybpfprof_bpf *bpf, pid_t pid, pid_t *kernel_pid,
			       pid_t *namesake)
{
	volatile struct pid_search *search = &bpf->bss->pid_search;
	int error;

	*kernel_pid = pid;
	*namesake = 0;
	if (pid_namespace__is_first())
		return 0;
	search->pid = pid;
	search->kernel_pid = search->namesake = 0;
	error = go_through_threads(bpf);
	if (error)
		return error;
	*kernel_pid = search->kernel_pid;
	*namesake = search->namesake;
	return *kernel_pid ? 0 : -ESRCH;
}

void iterators__count_waits(struct pybpfprof_bpf *bpf, uint64_t until_ns)
{
	if (!bpf->links.count_wait)
		return;
	bpf->bss->waits_until = until_ns;
	run(bpf->links.count_wait);
}

static void keep(struct slots *slots, const struct wait *wait)
{
	const struct wait_stack *stack = &wait->stacks[wait->at];

	slots__keep(slots, stack->slot, stack->hash);
	if (stack->queue_slot != NO_SLOT)
		slots__keep(slots, stack->queue_slot, stack->hash ^ QUEUE_HASH);
}

void iterators__keep_waits(const struct pybpfprof_bpf *bpf, struct slots *slots)
{
	int map = bpf_map__fd(bpf->maps.waits);
	struct wait wait;
	uint32_t thread;

	if (!bpf->links.count_wait)
		return;
	for (void *before = NULL; !bpf_map_get_next_key(map, before, &thread); before = &thread)
		if (!bpf_map_lookup_elem(map, &thread, &wait) && wait.since)
			keep(slots, &wait);
}
