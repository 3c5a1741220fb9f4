/* SPDX-License-Identifier: BSD-2-Clause */
/* What /proc tells about a process.  All of it is the process's own to choose. */
#ifndef PYBPFPROF_PROCESS_H
#define PYBPFPROF_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "reading/target_files.h"

struct process {
	pid_t pid;
	pid_t parent;
	pid_t reader; /* as process__reader() has it */
	char state;   /* its first thread's, a letter as ps has it */
	bool zombie;  /* all its threads have ended */
	bool kernel_thread;
	bool forked;	     /* and has not called exec since */
	bool executes;	     /* it is in the midst of that: what it maps has not begun yet */
	uint64_t start_time; /* clock ticks since boot: with the pid, its identity */
	uint64_t cpu_ticks;  /* clock ticks of CPU time, of all its threads */
};

/* 0; -ESRCH where there is no such process; -EMFILE, -ENFILE or -ENOMEM where that cannot be told
 * now. */
int process__inspect(pid_t pid, struct process *process);

/* Of which process PID is a thread; and its effective user, as this user namespace numbers it.  0;
 * or as process__inspect(). */
int process__thread_group(pid_t pid, pid_t *tgid);
int process__user(pid_t pid, uid_t *uid);

/* The thread through which /proc and the kernel give what all threads of process PID share: its
 * first, but where that has ended before others, one of those. */
pid_t process__reader(pid_t pid);

/* The kernel nests no more PID namespaces. */
#define PID_NAMESPACES_MAX 33

/* The numbers of process PID in each of its PID namespaces, from the one that /proc shows to its
 * own.  How many; 0 where there is no such process. */
size_t process__numbers(pid_t pid, pid_t numbers[PID_NAMESPACES_MAX]);

/* The number by which thread TID of process PID knows itself: another one in a container.
 * 0 where there is no such thread. */
pid_t process__inner_tid(pid_t pid, pid_t tid);

/* The lines of /proc/PID/cgroup, cut after 16 KiB.  The caller frees; NULL where there are none. */
char *process__cgroups(pid_t pid);

/* The beginning of the file NAME in the folder of READER, a thread of process PID, of at most SIZE
 * bytes. Its length; 0 where there is nothing to read. */
size_t process__read_file(pid_t pid, pid_t reader, const char *name, char *bytes, size_t size);

/* What stops process PID: "by a signal, such as SIGSTOP", "by a debugger", "by its cgroup's
 * freezer"; NULL: it may run. */
const char *process__stopped_by(pid_t pid);

/* The processes that /proc shows, COUNT; the caller frees. */
pid_t *process__list(size_t *count);

/* One mapping of a file. */
struct mapping {
	uint64_t start, end, offset;
	uint64_t device, inode;
	bool executable; /* else it is writable */
	bool is_vdso;
};

/* The mappings of files that are executable, or private and writable, in address order: where a
 * program or a library is loaded, there is one or the other.  READER is a thread of process PID.
 * *CUT: there are more than are read.  The caller, who is on no errand (deputy.h), frees *MAPPINGS.
 * Their number, or -errno. */
ssize_t process__program_mappings(pid_t pid, pid_t reader, struct mapping **mappings, bool *cut);

/* The same of all that is executable, and of what process__program_mappings gives: also memory that
 * no file is behind, whose inode is 0. */
ssize_t process__code_mappings(pid_t pid, pid_t reader, struct mapping **mappings, bool *cut);

/* Opens the file behind a mapping for reading, also where it was deleted or lies in another mount
 * namespace.  READER as above.  A descriptor, or -errno. */
int process__open_mapping(pid_t pid, pid_t reader, const struct mapping *mapping);

/* What that file is, as target_file__identify_path() has it. */
int process__identify_mapping(pid_t pid, pid_t reader, const struct mapping *mapping,
			      struct file_identity *identity);

#endif
