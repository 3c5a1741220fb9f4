// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "deputy.h"
#include "process.h"
#include "pybpfprof.h"
#include "target_memory.h"

/* What one process_vm_readv takes: the kernel's IOV_MAX. */
#define READS_A_CALL 1024

#define BYTES_A_CALL (64 * 1024)

/* Reads COUNT pieces, one behind the other. */
struct request {
	pid_t pid;
	size_t count;
	struct iovec pieces[READS_A_CALL];
	uint8_t bytes[BYTES_A_CALL];
};

_Static_assert(sizeof(struct request) <= DEPUTY_DESK_BYTES, "the deputy's desk has room for it");

static int64_t read_pieces(void *desk)
{
	struct request *request = desk;
	struct iovec local = { .iov_base = request->bytes, .iov_len = sizeof(request->bytes) };
	ssize_t got = process_vm_readv(request->pid, &local, 1, request->pieces, request->count, 0);

	return got < 0 ? -errno : got;
}

/* Reads what REQUEST says, on the deputy's desk, of process PID: the number of bytes, or -errno. */
static int64_t run(pid_t pid, struct request *request)
{
	int64_t got;

	request->pid = pid;
	got = deputy__run(pid, read_pieces);
	if (got != -ESRCH)
		return got;
	/* The memory outlives the first thread, by which the kernel finds it. */
	request->pid = process__reader(pid);
	return request->pid == pid ? got : deputy__run(pid, read_pieces);
}

static int read_part(pid_t pid, uint64_t address, void *buffer, size_t length)
{
	struct request *request = deputy__desk();
	int64_t got;

	request->count = 1;
	request->pieces[0] = (struct iovec){ (void *)(uintptr_t)address, length };
	got = run(pid, request);
	if (got < 0)
		return got;
	memcpy(buffer, request->bytes, got);
	return (size_t)got == length ? 0 : -EFAULT;
}

int target_memory__read(pid_t pid, uint64_t address, void *buffer, size_t length)
{
	int error = 0;

	for (size_t done = 0, part; done < length && !error; done += part) {
		part = length - done < BYTES_A_CALL ? length - done : BYTES_A_CALL;
		error = read_part(pid, address + done, (uint8_t *)buffer + done, part);
	}
	return error;
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

/* As target_memory__read_each, for what one call takes; how many, up to the first that is not
 * readable, it read; negative where the others are not, either. */
static int64_t read_some(pid_t pid, const uint64_t *addresses, size_t count, void *buffer,
			 size_t size)
{
	struct request *request = deputy__desk();
	int64_t got;

	request->count = count;
	for (size_t i = 0; i < count; i++)
		request->pieces[i] = (struct iovec){ (void *)(uintptr_t)addresses[i], size };
	got = run(pid, request);
	if (got < 0)
		return got == -EFAULT ? 0 : got;
	memcpy(buffer, request->bytes, got / size * size);
	return got / size;
}

void target_memory__read_each(pid_t pid, const uint64_t *addresses, size_t count, void *buffer,
			      size_t size, bool *readable)
{
	const size_t fit = BYTES_A_CALL / size, most = fit < READS_A_CALL ? fit : READS_A_CALL;

	memset(readable, false, count);
	for (size_t first = 0; first < count;) {
		size_t some = count - first < most ? count - first : most;
		int64_t whole = read_some(pid, addresses + first, some,
					  (uint8_t *)buffer + first * size, size);

		if (whole < 0)
			return;
		memset(readable + first, true, whole);
		/* A call ends before the first that is not readable: that one is left out. */
		first += (size_t)whole < some ? (size_t)whole + 1 : some;
	}
}
