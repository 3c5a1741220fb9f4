// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>
#include <sys/syscall.h>

#include "base/near.h"
#include "events/system_call.h"

/* By their numbers: generated from the kernel's header. */
static const char *const names[] = {
#include "system_call_names.h"
};

#define NAME_COUNT (sizeof(names) / sizeof(names[0]))

/* Calls that take a number of bytes, with the names that the kernel has for their arguments. */
static const char *const arguments[][2] = {
	{ "read", "fd, buf, count" },
	{ "write", "fd, buf, count" },
	{ "pread64", "fd, buf, count, pos" },
	{ "pwrite64", "fd, buf, count, pos" },
	{ "readv", "fd, vec, vlen" },
	{ "writev", "fd, vec, vlen" },
	{ "sendto", "fd, buff, len, flags, addr, addr_len" },
	{ "recvfrom", "fd, ubuf, size, flags, addr, addr_len" },
	{ "sendfile", "out_fd, in_fd, offset, count" },
	{ "splice", "fd_in, off_in, fd_out, off_out, len, flags" },
	{ "copy_file_range", "fd_in, off_in, fd_out, off_out, len, flags" },
	{ "mmap", "addr, len, prot, flags, fd, off" },
	{ "munmap", "addr, len" },
	{ "mremap", "addr, old_len, new_len, flags, new_addr" },
	{ "madvise", "start, len_in, behavior" },
	{ "mprotect", "start, len, prot" },
	{ "ftruncate", "fd, length" },
	{ "fallocate", "fd, mode, offset, len" },
	{ "readahead", "fd, offset, count" },
	{ "getrandom", "ubuf, len, flags" },
	{ "getdents64", "fd, dirent, count" },
};

const char *system_call__name(uint32_t number)
{
	return number < NAME_COUNT ? names[number] : NULL;
}

int system_call__number(const char *name)
{
	for (size_t i = 0; i < NAME_COUNT; i++)
		if (names[i] && strcmp(names[i], name) == 0)
			return i;
	return -1;
}

const char *system_call__near(const char *name)
{
	struct near near = NEAR(name);

	for (size_t i = 0; i < NAME_COUNT; i++)
		if (names[i])
			near__try(&near, names[i]);
	return near.best;
}

const char *system_call__arguments(const char *name)
{
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++)
		if (strcmp(arguments[i][0], name) == 0)
			return arguments[i][1];
	return "";
}

int system_call__argument(const char *call, const char *name)
{
	size_t length = strlen(name);
	const char *at = system_call__arguments(call);

	if (length == 4 && strncmp(name, "arg", 3) == 0 && name[3] >= '0' &&
	    name[3] < '0' + SYSTEM_CALL_ARGUMENTS)
		return name[3] - '0';
	for (int i = 0; *at; i++) {
		size_t word = strcspn(at, ",");

		if (word == length && strncmp(at, name, word) == 0)
			return i;
		at += word + strspn(at + word, ", ");
	}
	return -1;
}
