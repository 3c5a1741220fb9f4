// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "process.h"
#include "pybpfprof.h"
#include "target_memory.h"

/* As process_vm_readv(2), COUNT pieces each: the number of bytes, or -errno. */
static ssize_t read_pieces(pid_t pid, const struct iovec *local, const struct iovec *remote,
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
	ssize_t got = read_pieces(pid, &local, &remote, 1);

	if (got < 0)
		return got;
	return (size_t)got == length ? 0 : -EFAULT;
}

int target_memory__read_pointer(pid_t pid, uint64_t address, uint64_t *pointer)
{
	return target_memory__read(pid, address, pointer, sizeof(*pointer));
}

void target_memory__page_in(pid_t pid, uint64_t address)
{
	char words[THREAD_STATE_BYTES]; /* the longest that the walker reads in one piece */

	target_memory__read(pid, address, words, sizeof(words));
}

/* What one process_vm_readv takes: the kernel's IOV_MAX. */
#define READS_A_CALL 1024

/* As target_memory__read_each, for at most READS_A_CALL. */
static void read_some(pid_t pid, const uint64_t *addresses, size_t count, uint8_t *buffer,
		      size_t size, bool *readable)
{
	struct iovec local[READS_A_CALL], remote[READS_A_CALL];
	size_t first = 0;

	for (size_t i = 0; i < count; i++) {
		local[i] = (struct iovec){ buffer + i * size, size };
		remote[i] = (struct iovec){ (void *)(uintptr_t)addresses[i], size };
		readable[i] = false;
	}
	/* A call ends before the first that is not readable: that one is left out, and on. */
	while (first < count) {
		ssize_t got = read_pieces(pid, local + first, remote + first, count - first);
		size_t whole = got < 0 ? 0 : (size_t)got / size;

		if (got < 0 && got != -EFAULT)
			return;
		memset(readable + first, true, whole);
		first += whole + 1;
	}
}

void target_memory__read_each(pid_t pid, const uint64_t *addresses, size_t count, void *buffer,
			      size_t size, bool *readable)
{
	for (size_t i = 0; i < count; i += READS_A_CALL)
		read_some(pid, addresses + i, count - i < READS_A_CALL ? count - i : READS_A_CALL,
			  (uint8_t *)buffer + i * size, size, readable + i);
}
