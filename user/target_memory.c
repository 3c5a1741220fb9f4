// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>

#include "process.h"
#include "target_memory.h"

ssize_t target_memory__read_pieces(pid_t pid, const struct iovec *local, const struct iovec *remote,
				   size_t count)
{
	ssize_t got = process_vm_readv(pid, local, count, remote, count, 0);
	pid_t reader;

	/* The memory outlives the first thread, by which the kernel finds it. */
	if (got < 0 && errno == ESRCH && (reader = process__reader(pid)) != pid)
		got = process_vm_readv(reader, local, count, remote, count, 0);
	return got < 0 ? -errno : got;
}

int target_memory__read(pid_t pid, uint64_t address, void *buffer, size_t length)
{
	struct iovec local = { .iov_base = buffer, .iov_len = length };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)address, .iov_len = length };
	ssize_t got = target_memory__read_pieces(pid, &local, &remote, 1);

	if (got < 0)
		return got;
	return (size_t)got == length ? 0 : -EFAULT;
}

int target_memory__read_pointer(pid_t pid, uint64_t address, uint64_t *pointer)
{
	return target_memory__read(pid, address, pointer, sizeof(*pointer));
}
