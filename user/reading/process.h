/* SPDX-License-Identifier: BSD-2-Clause */
/* What /proc tells about a process.  The process controls much of it. */
#ifndef PYBPFPROF_PROCESS_H
#define PYBPFPROF_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "reading/target_files.h"

struct process {
	pid_t pid;
	pid_t parent;
	pid_t reader; /* see process__reader() */
	char state;   /* of its first thread, as in ps */
	bool zombie;  /* all its threads have ended */
	bool kernel_thread;
	bool forked;	     /* it has not called exec since */
	bool executes;	     /* it is calling exec, and has not mapped the program yet */
	uint64_t start_time; /* clock ticks since boot; identifies it, with the PID */
	uint64_t cpu_ticks;  /* CPU time of all its threads, in clock ticks */
};

/* 0; -ESRCH if there is no such process; -EMFILE, -ENFILE or -ENOMEM if it cannot be read now. */
int process__inspect(pid_t pid, struct process *process);

/* The process that thread PID belongs to, and the effective user of PID in this user namespace. 0,
 * or as process__inspect(). */
int process__thread_group(pid_t pid, pid_t *tgid);
int process__user(pid_t pid, uid_t *uid);

/* A thread of process PID through which /proc and the kernel give what all its threads share: the
 * first, or if that has ended, one that has not. */
pid_t process__reader(pid_t pid);

/* The kernel's limit on nested PID namespaces. */
#define PID_NAMESPACES_MAX 33

/* The PIDs of process PID in its PID namespaces, from /proc's to its own.  Returns how many; 0 if
 * there is no such process. */
size_t process__numbers(pid_t pid, pid_t numbers[PID_NAMESPACES_MAX]);

/* The number of thread TID of process PID in its own PID namespace; 0 if there is no such
 * thread. */
pid_t process__inner_tid(pid_t pid, pid_t tid);

/* The lines of /proc/PID/cgroup, cut after 16 KiB.  The caller frees; NULL if there are none. */
char *process__cgroups(pid_t pid);

/* Reads at most SIZE bytes from the start of READER's file NAME in /proc.  READER is a thread of
 * process PID.  Returns how many; 0 if it cannot be read. */
size_t process__read_file(pid_t pid, pid_t reader, const char *name, char *bytes, size_t size);

/* Tells what stops process PID: "by a signal, such as SIGSTOP", "by a debugger", "by its cgroup's
 * freezer".  NULL: nothing. */
const char *process__stopped_by(pid_t pid);

/* The COUNT processes that /proc shows.  The caller frees. */
pid_t *process__list(size_t *count);

/* A mapping of a file. */
struct mapping {
	uint64_t start, end, offset;
	uint64_t device, inode;
	bool executable; /* otherwise it is writable */
	bool is_vdso;
};

/* The mappings of files that are executable, or private and writable, by address.  Every loaded
 * program and library has one or the other.  READER is a thread of process PID.  *CUT: there are
 * more than were read.  Returns their number, or -errno.  The caller frees *MAPPINGS; it must not
 * run in an errand (reader.h). */
ssize_t process__program_mappings(pid_t pid, pid_t reader, struct mapping **mappings, bool *cut);

/* The same, and also executable memory without a file, whose inode is 0. */
ssize_t process__code_mappings(pid_t pid, pid_t reader, struct mapping **mappings, bool *cut);

/* Opens the file of a mapping for reading, even if it was deleted or is in another mount namespace.
 * READER as above.  Returns a descriptor, or -errno. */
int process__open_mapping(pid_t pid, pid_t reader, const struct mapping *mapping);

/* Identifies that file, as target_file__identify_path(). */
int process__identify_mapping(pid_t pid, pid_t reader, const struct mapping *mapping,
			      struct file_identity *identity);

/* Whether process PID maps a file of a FUSE mount as program or library.  The kernel lets only the
 * user that mounted it read it, and not even root.  *OWNER: that user. */
bool process__fuse_owner(pid_t pid, uid_t *owner);

#endif
