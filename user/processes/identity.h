/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose a process is: what /proc tells of what it runs, for whom and where. */
#ifndef PYBPFPROF_IDENTITY_H
#define PYBPFPROF_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All texts are bytes as the process or the kernel has them, not always UTF-8; NULL: not known. */
struct identity {
	char *command;	    /* the command line, words joined by a space */
	char *short_name;   /* the script or module that it runs: command_name.h */
	char *comm;	    /* the kernel's name for it, of at most 15 bytes */
	bool wordless;	    /* that is all that tells what it runs: no word is there (any more) */
	bool is_worker;	    /* its command line does not say what it is for: COMMAND_WORKER */
	bool is_inherited;  /* its short name, for that reason: it is an ancestor's */
	char *service_name; /* by which its environment calls it: service_name.h */
	char *archive;	    /* of PEX's, by which it was started, where that was unpacked */
	uid_t uid;	    /* the effective one, as this user namespace numbers it */
	char *user;	    /* its name, else its number: see below */
	char *cgroups;	    /* the lines of its /proc/PID/cgroup */
	char *cgroup;	    /* the path among them that tells most: cgroup.h */
	char *container_id;
	const char *container_runtime;
	char *pod_uid;
	char *unit;
	uint64_t start_unix_ns; /* when it was started; exact to 10 ms */
	uint64_t start_time;	/* the same in clock ticks since the boot, as the kernel tells it */
};

/* What of a process is read again. */
enum identify {
	IDENTIFY_ALL,	 /* it may run another program */
	IDENTIFY_FORKED, /* it runs what it ran, or the process ran that had forked it */
	IDENTIFY_OWNER,	 /* whose it is: its names a program may change all the time */
};

/* 0 with *IDENTITY for identity__free; -ESRCH where there is no such process, or another took the
 * number meanwhile.  Of one that ends meanwhile, some may be unknown.
 *
 * A worker has the short name of its nearest ancestor that is a Python and no worker, where there
 * is one.
 *
 * A user is named only where the process has the same root folder as this one, and so this one's
 * users: a container's user 1000 is not whom /etc/passwd here has for it. */
int identity__read(pid_t pid, struct identity *identity);
void identity__free(struct identity *identity);

/* The same once more, for identity__free: of a process that was forked. */
void identity__copy(const struct identity *identity, struct identity *copy);

/* Reads again WHAT of IDENTITY may have changed, of process PID that was started at START_TIME; 0:
 * that is not known.  As identity__read, but one that has ended tells no more of itself either, and
 * -EALREADY says that its owner has not changed; where it fails, IDENTITY is what it was.
 *
 * What its environment says is kept where it was known: the program began with that, and may have
 * written something else over it, as for a title.  So is its command where no word of
 * it is left, as in what is about to end; and a worker's name from an ancestor, which may have
 * ended.
 */
int identity__read_again(pid_t pid, uint64_t start_time, enum identify what,
			 struct identity *identity);

/* It runs another program, or has ended: of its names only the LENGTH bytes of the WORDS are known
 * that it was started with, each with a NUL.  IDENTITY may be all zero. */
void identity__take_words(const char *words, size_t length, struct identity *identity);

/* Its title was WORDS in the end, which are *CUT: there were more; returns whether that is another
 * one than before. */
bool identity__retitle(struct identity *identity, const char *words, size_t length, bool cut);

/* It had an ancestor NAME, which a worker is called where it has no other one's name; NULL: that is
 * not known. */
void identity__inherit(struct identity *identity, const char *name);

#endif
