// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "sampling/iteration.h"

int iteration__run(int link)
{
	int run = bpf_iter_create(link), error = run < 0 ? -errno : 0;
	char nothing;

	/* The kernel pauses after a million entries. */
	while (!error && read(run, &nothing, sizeof(nothing)) < 0)
		error = errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (run >= 0)
		close(run);
	return error;
}
