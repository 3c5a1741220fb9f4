// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>

#include <bpf/libbpf.h>

#include "processes/pid_namespace.h"
#include "sampling/iteration.h"
#include "sampling/kernel_numbers.h"
#include "pybpfprof.skel.h" /* needs the types of the headers above */

/* Runs the program find_process for each thread of this PID namespace. */
static int go_through_threads(const struct pybpfprof_bpf *bpf)
{
	struct bpf_link *link = bpf_program__attach_iter(bpf->progs.find_process, NULL);
	int error = link ? iteration__run(bpf_link__fd(link)) : -errno;

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
