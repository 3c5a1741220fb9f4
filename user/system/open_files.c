// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "system/cpus.h"
#include "system/open_files.h"

/* A perf event, the link of a program to it, and an event for mappings. */
#define FILES_PER_CPU 3

/* The process itself, and a file of it that is read. */
#define FILES_PER_PROCESS 2

/* The BPF programs and maps, inherited files, files that are read, kept open (user/elf/elf_cache.c)
 * and written. */
#define FILES_BESIDES 88

static struct rlimit found;

enum exit_status open_files__allow(size_t processes)
{
	ssize_t cpus = cpus__array_size();
	size_t needed = FILES_BESIDES + FILES_PER_CPU * (cpus > 0 ? cpus : 1) +
			FILES_PER_PROCESS * (processes + 1);
	struct rlimit raised;

	if (getrlimit(RLIMIT_NOFILE, &found))
		return STATUS_WRITTEN;
	raised = found;
	raised.rlim_cur = raised.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &raised))
		raised = found;
	if (raised.rlim_cur >= needed)
		return STATUS_WRITTEN;
	log__error("too few open files are allowed: %zu are needed (%d per CPU) but the limit is "
		   "%llu; run ulimit -n %zu as root",
		   needed, FILES_PER_CPU, (unsigned long long)raised.rlim_cur, needed);
	return STATUS_NOT_ALLOWED;
}

bool open_files__ran_out(int error)
{
	return error == -EMFILE || error == -ENFILE;
}

void open_files__warn(int error)
{
	char *mend = error == -ENFILE ? xstrdup("sysctl fs.file-max")
				      : xasprintf("prlimit --nofile=NUMBER --pid %d", getpid());

	log__warning("cannot open more files (%s): new processes are not profiled until that is "
		     "possible; raise the limit as root with %s",
		     strerror(-error), mend);
	free(mend);
}

void open_files__restore(void)
{
	if (found.rlim_max)
		setrlimit(RLIMIT_NOFILE, &found);
}
