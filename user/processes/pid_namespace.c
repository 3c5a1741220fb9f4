// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "processes/pid_namespace.h"
#include "reading/process.h"

/* PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h. */
#define FIRST_NAMESPACE 0xeffffffc

/* Names at most this number of processes: every container has a process 1. */
#define NAMED_MAX 3

/* The inode of the PID namespace of the process with this name in /proc; 0: unknown. */
static ino_t namespace_of(const char *name)
{
	char path[300];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%s/ns/pid", name);
	return stat(path, &status) ? 0 : status.st_ino;
}

bool pid_namespace__is_first(void)
{
	ino_t own = namespace_of("self");

	return !own || own == FIRST_NAMESPACE;
}

bool pid_namespace__has_proc(void)
{
	pid_t numbers[PID_NAMESPACES_MAX];
	char name[16] = "";

	/* In a /proc of an outer namespace, this process has several numbers.  In one of an inner
	 * namespace, there is no link.  No number at all: the file cannot be read. */
	return readlink("/proc/self", name, sizeof(name) - 1) > 0 && atoi(name) == getpid() &&
	       process__numbers(getpid(), numbers) <= 1;
}

/* Whether a namespace within this one knows process CANDIDATE as PID. */
static bool is_known_as(pid_t candidate, pid_t pid)
{
	pid_t numbers[PID_NAMESPACES_MAX];
	size_t count = process__numbers(candidate, numbers);

	for (size_t i = 1; i < count; i++)
		if (numbers[i] == pid)
			return true;
	return false;
}

/* Adds process CANDIDATE to WORDS, which name COUNT processes. */
static char *add(char *words, size_t count, pid_t candidate)
{
	char *longer;

	if (count > NAMED_MAX)
		return words;
	longer = count == 0	     ? xasprintf("%d", candidate)
		 : count < NAMED_MAX ? xasprintf("%s, %d", words, candidate)
				     : xasprintf("%s and others", words);
	free(words);
	return longer;
}

char *pid_namespace__namesakes(pid_t pid)
{
	ino_t own = namespace_of("self");
	size_t process_count, count = 0;
	pid_t *pids = process__list(&process_count);
	char *words = NULL, name[16];

	for (size_t i = 0; i < process_count; i++) {
		snprintf(name, sizeof(name), "%d", pids[i]);
		/* Most processes are in this namespace, and need no look at their status. */
		if (namespace_of(name) != own && is_known_as(pids[i], pid))
			words = add(words, count++, pids[i]);
	}
	free(pids);
	return words;
}
