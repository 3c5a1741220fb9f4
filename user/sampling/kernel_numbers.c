// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "processes/pid_namespace.h"
#include "sampling/kernel_numbers.h"
#include "pybpfprof.skel.h" /* needs the types of the headers above */

/* Runs the program find_process for each thread of this PID namespace. */
static int go_through_threads(const struct pybpfprof_bpf *bpf)
{
	struct bpf_link *link = bpf_program__attach_iter(bpf->progs.find_process, NULL);
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
	int error = fd < 0 ? -errno : 0;
	char nothing;

	/* The kernel pauses after a million threads. */
	while (!error && read(fd, &nothing, sizeof(nothing)) < 0)
		error = errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return error;
}

int kernel_numbers__find(struct pybpfprof_bpf *bpf, pid_t pid, pid_t *kernel_pid, pid_t *namesake)
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
