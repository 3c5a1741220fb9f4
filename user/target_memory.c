// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <sys/uio.h>

#include "target_memory.h"

int target_memory__read(pid_t pid, uint64_t address, void *buffer, size_t length)
{
	struct iovec local = { .iov_base = buffer, .iov_len = length };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)address, .iov_len = length };
	ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	if (got < 0)
		return -errno;
	return (size_t)got == length ? 0 : -EFAULT;
}

int target_memory__read_pointer(pid_t pid, uint64_t address, uint64_t *pointer)
{
	return target_memory__read(pid, address, pointer, sizeof(*pointer));
}
