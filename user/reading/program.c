// SPDX-License-Identifier: BSD-2-Clause
/*
 * Nothing in /proc counts the calls of exec of a process.  But the kernel places each program at
 * random addresses: those of its file, the loader, the vDSO and the stack have some eighty random
 * bits together.  All of them are in the auxiliary vector.
 *
 * The vector also points to random bytes, but these are in the process's memory, which may be
 * unreadable.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>

#include "base/small_file.h"
#include "reading/process.h"
#include "reading/program.h"

/* The auxiliary vector has some twenty pairs. */
#define WORDS_MAX 128

/* Whether the kernel randomizes addresses by default. */
static bool randomizes(void)
{
	char how[16];

	return small_file__read("/proc/sys/kernel/randomize_va_space", how, sizeof(how)) > 0 &&
	       atoi(how);
}

static bool is_at_random(pid_t pid, pid_t reader)
{
	char text[16];
	size_t length = process__read_file(pid, reader, "personality", text, sizeof(text) - 1);

	text[length] = '\0';
	return length && !(strtoul(text, NULL, 16) & ADDR_NO_RANDOMIZE) && randomizes();
}

/* 0: it cannot be read. */
static uint64_t read_places(pid_t pid, pid_t reader)
{
	uint64_t words[WORDS_MAX], places = 1;
	size_t bytes = process__read_file(pid, reader, "auxv", (char *)words, sizeof(words));

	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		places = (places ^ places >> 32 ^ words[i]) * 0x9e3779b97f4a7c15ULL;
	return bytes ? places : 0;
}

int program__identify(pid_t pid, struct program *program)
{
	struct process process;
	int error = process__inspect(pid, &process);

	memset(program, 0, sizeof(*program));
	if (!error && process.zombie)
		error = -ESRCH;
	if (error)
		return error;
	program->start_time = process.start_time;
	if (!process.executes && is_at_random(pid, process.reader))
		program->places = read_places(pid, process.reader);
	return 0;
}

bool program__is_same(const struct program *one, const struct program *other)
{
	return one->places && one->places == other->places && one->start_time == other->start_time;
}
