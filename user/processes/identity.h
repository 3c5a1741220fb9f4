/* SPDX-License-Identifier: BSD-2-Clause */
/* What /proc tells about a process: its names, its owner, its container. */
#ifndef PYBPFPROF_IDENTITY_H
#define PYBPFPROF_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Texts are raw bytes, not always UTF-8.  NULL: unknown. */
struct identity {
	char *command;	    /* the command line, words joined by a space */
	char *short_name;   /* the script or module: command_name.h */
	char *comm;	    /* the kernel's name, at most 15 bytes */
	bool wordless;	    /* there is no command line (any more): comm is all there is */
	bool is_worker;	    /* the command line does not say what it does: COMMAND_WORKER */
	bool is_inherited;  /* a worker's short name is that of an ancestor */
	char *service_name; /* from the environment: service_name.h */
	char *archive;	    /* the PEX archive that it was started from: service_name.h */
	uid_t uid;	    /* effective, in this user namespace */
	char *user;	    /* its name, otherwise its number: see identity__read */
	char *cgroups;	    /* the lines of its /proc/PID/cgroup */
	char *cgroup;	    /* the path that tells most: cgroup.h */
	char *container_id;
	const char *container_runtime;
	char *pod_uid;
	char *unit;
	uint64_t start_unix_ns; /* when it was started, to 10 ms */
	uint64_t start_time;	/* the same in clock ticks since boot, as in /proc/PID/stat */
};

/* What may have changed. */
enum identify {
	IDENTIFY_ALL,	 /* everything: it may run another program */
	IDENTIFY_FORKED, /* its names and owner: it runs the program of its parent */
	IDENTIFY_OWNER,	 /* user and cgroups only, as a program may change its title at any time */
};

/*
 * Reads the identity of process PID; free it with identity__free.  Returns 0, or -ESRCH if there is
 * no such process or its PID was reused meanwhile.  If the process ends meanwhile, parts may be
 * unknown.
 *
 * A worker gets the short name of its nearest ancestor that is a Python and no worker.
 *
 * The user's name is looked up only if the process has this program's root directory, and so its
 * /etc/passwd.  User 1000 of a container is not user 1000 here.
 */
int identity__read(pid_t pid, struct identity *identity);
void identity__free(struct identity *identity);

/* Copies the identity, for a forked process.  Free it with identity__free. */
void identity__copy(const struct identity *identity, struct identity *copy);

/*
 * Reads WHAT again.  START_TIME is when process PID was started; 0: unknown.  Returns as
 * identity__read, but also -ESRCH for a process that has ended, and -EALREADY if IDENTIFY_OWNER
 * finds the same owner.  If it fails, IDENTITY is unchanged.
 *
 * Some values are kept if they were known.  The environment is kept because the program may have
 * overwritten it, for example with a title.  The command line is kept if it is gone, as in a
 * process that is about to end.  An ancestor's name is kept because the ancestor may have ended.
 */
int identity__read_again(pid_t pid, uint64_t start_time, enum identify what,
			 struct identity *identity);

/* Replaces the names by what WORDS tell, the command line of a program that was executed, or of a
 * process that has ended.  LENGTH bytes, a NUL after each word.  IDENTITY may be all zero. */
void identity__take_words(const char *words, size_t length, struct identity *identity);

/* Sets the last title of a process that has ended.  CUT: WORDS are only its beginning.  Returns
 * whether it differs from the one before. */
bool identity__retitle(struct identity *identity, const char *words, size_t length, bool cut);

/* Gives a worker the name of an ancestor, unless it already has one.  NULL: unknown. */
void identity__inherit(struct identity *identity, const char *name);

#endif
