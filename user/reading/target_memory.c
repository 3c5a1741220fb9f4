// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/xalloc.h"
#include "pybpfprof.h"
#include "reading/reader.h"
#include "reading/process.h"
#include "reading/target_memory.h"

/* The limit of process_vm_readv(2): the kernel's IOV_MAX. */
#define READS_A_CALL 1024

#define BYTES_A_CALL (64 * 1024)

/* The pieces are read one after another into BYTES. */
struct request {
	pid_t pid;
	size_t count;
	struct iovec pieces[READS_A_CALL];
	uint8_t bytes[BYTES_A_CALL];
};

_Static_assert(sizeof(struct request) <= READER_DESK_BYTES, "the reader's desk has room for it");

static int64_t read_pieces(void *desk)
{
	struct request *request = desk;
	struct iovec local = { .iov_base = request->bytes, .iov_len = sizeof(request->bytes) };
	ssize_t got = process_vm_readv(request->pid, &local, 1, request->pieces, request->count, 0);

	return got < 0 ? -errno : got;
}

/* Runs REQUEST, which is on the reader's desk.  Returns the number of bytes, or -errno. */
static int64_t run(pid_t pid, struct request *request)
{
	int64_t got;

	request->pid = pid;
	got = reader__run(pid, read_pieces);
	if (got != -ESRCH)
		return got;
	/* The kernel finds the memory by a thread.  It outlives the first one. */
	request->pid = process__reader(pid);
	return request->pid == pid ? got : reader__run(pid, read_pieces);
}

static int read_part(pid_t pid, uint64_t address, void *buffer, size_t length)
{
	struct request *request = reader__desk();
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
	char words[THREAD_STATE_BYTES]; /* the longest part that BPF reads at once */

	target_memory__read(pid, address, words, sizeof(words));
}

#define PAGE_BYTES 4096
#define NONE	   SIZE_MAX

/* All that is wanted of one page, in one read: finding a page costs more than copying it. */
struct piece {
	uint64_t start, end;
	size_t first; /* a list of its parts, linked by NEXT; NONE is its end */
};

/* Finds the piece of PAGE in SLOTS, a hash table of 2^BITS slots, or the free slot for it. */
static size_t *find_slot(size_t *slots, unsigned int bits, const struct piece *pieces,
			 uint64_t page)
{
	size_t mask = ((size_t)1 << bits) - 1, at = page * 0x9e3779b97f4a7c15ULL >> (64 - bits);

	while (slots[at] != NONE && pieces[slots[at]].start / PAGE_BYTES != page)
		at = (at + 1) & mask;
	return &slots[at];
}

/* Joins PARTS to PIECES, and returns their number.  A part that crosses a page boundary is a piece
 * of its own, so that an unreadable page spoils no other part. */
static size_t make_pieces(const struct memory_part *parts, size_t count, struct piece *pieces,
			  size_t *next)
{
	unsigned int bits = 1;
	size_t made = 0, *slots;

	while ((size_t)1 << bits < 2 * count)
		bits++;
	slots = xreallocarray(NULL, (size_t)1 << bits, sizeof(*slots));
	memset(slots, 0xff, sizeof(*slots) << bits);
	for (size_t i = 0; i < count; i++) {
		uint64_t start = parts[i].address, end = start + parts[i].size;
		bool is_in_one = start / PAGE_BYTES == (end - 1) / PAGE_BYTES;
		size_t own = NONE, *slot = &own;
		struct piece *piece;

		if (is_in_one)
			slot = find_slot(slots, bits, pieces, start / PAGE_BYTES);
		if (*slot == NONE) {
			*slot = made++;
			pieces[*slot] = (struct piece){ start, end, NONE };
		}
		piece = &pieces[*slot];
		piece->start = start < piece->start ? start : piece->start;
		piece->end = end > piece->end ? end : piece->end;
		next[i] = piece->first;
		piece->first = i;
	}
	free(slots);
	return made;
}

/* BYTES is what was read of PIECE. */
static void hand_out(const struct piece *piece, const uint8_t *bytes, struct memory_part *parts,
		     const size_t *next)
{
	for (size_t part = piece->first; part != NONE; part = next[part]) {
		parts[part].readable = true;
		memcpy(parts[part].buffer, bytes + (parts[part].address - piece->start),
		       parts[part].size);
	}
}

/* Fills REQUEST with as many of COUNT pieces as fit.  Returns how many. */
static size_t ask_for_pieces(struct request *request, const struct piece *pieces, size_t count)
{
	size_t bytes = 0;

	for (request->count = 0; request->count < count && request->count < READS_A_CALL;) {
		const struct piece *piece = &pieces[request->count];
		size_t size = piece->end - piece->start;

		if (bytes + size > BYTES_A_CALL)
			break;
		bytes += size;
		request->pieces[request->count++] =
			(struct iovec){ (void *)(uintptr_t)piece->start, size };
	}
	return request->count;
}

static void read_all_pieces(pid_t pid, const struct piece *pieces, size_t count,
			    struct memory_part *parts, const size_t *next)
{
	for (size_t first = 0; first < count;) {
		struct request *request = reader__desk();
		size_t end = first + ask_for_pieces(request, pieces + first, count - first);
		int64_t got = run(pid, request);
		const uint8_t *bytes = request->bytes;

		if (got < 0 && got != -EFAULT)
			return;
		for (; first < end; first++) {
			int64_t size = pieces[first].end - pieces[first].start;

			if (got < size)
				break;
			hand_out(&pieces[first], bytes, parts, next);
			bytes += size;
			got -= size;
		}
		/* The call stops at the first unreadable piece.  Skip that one. */
		first += first < end;
	}
}

void target_memory__read_parts(pid_t pid, struct memory_part *parts, size_t count)
{
	struct piece *pieces = reader__lend(xreallocarray(NULL, count, sizeof(*pieces)));
	size_t *next = reader__lend(xreallocarray(NULL, count, sizeof(*next)));

	for (size_t i = 0; i < count; i++)
		parts[i].readable = false;
	read_all_pieces(pid, pieces, make_pieces(parts, count, pieces, next), parts, next);
	free(reader__take_back(next));
	free(reader__take_back(pieces));
}

void target_memory__read_each(pid_t pid, const uint64_t *addresses, size_t count, void *buffer,
			      size_t size, bool *readable)
{
	struct memory_part *parts = reader__lend(xreallocarray(NULL, count, sizeof(*parts)));

	for (size_t i = 0; i < count; i++)
		parts[i] = (struct memory_part){ .address = addresses[i],
						 .buffer = (uint8_t *)buffer + i * size,
						 .size = size };
	target_memory__read_parts(pid, parts, count);
	for (size_t i = 0; i < count; i++)
		readable[i] = parts[i].readable;
	free(reader__take_back(parts));
}
