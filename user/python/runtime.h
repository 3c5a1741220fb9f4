/* SPDX-License-Identifier: BSD-2-Clause */
/* A process's Python: its version, where its interpreters are, and its layout. */
#ifndef PYBPFPROF_RUNTIME_H
#define PYBPFPROF_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "offsets.h"
#include "python/python_version.h"

struct mapping;

struct runtime {
	char version[PYTHON_VERSION_TEXT_MAX];
	struct offsets offsets; /* its version is PY_VERSION_HEX */
	struct layout layout;
	uint64_t interpreters; /* address of the pointer to the newest interpreter */
	uint64_t code_type;    /* address of PyCode_Type, 0: not known */
	uint64_t thread_area;  /* pthread_self() is so many bytes below the thread pointer */
	struct entry_gap entry_gap;
	/* Where its file's code is: at START is what the file has at OFFSET, and BIAS is to be
	 * added to the file's addresses.  START is 0 where that does not tell where everything is.
	 */
	struct {
		uint64_t start, offset, bias;
	} text;
	/* NULL: a CPython of this architecture.  Others have a kind and a version, and nothing
	 * else. */
	const struct python_kind *kind;
	bool stripped;	       /* its file names nothing: unnamed.h finds it where it runs */
	bool initialized;      /* there is an interpreter, with a thread */
	bool begins;	       /* there is none at all: not yet, or not any more */
	const char *objection; /* why it is not supported, where it is not for its version alone */
	char other_version[PYTHON_VERSION_TEXT_MAX]; /* of one that lives beside it; "": none */
};

/* Finds the Python that lives in process PID: the one that has an interpreter, where several files
 * could hold one; of several that have, the newest.
 * 0; -ENOEXEC where no mapped file holds a Python; -E2BIG where none does of those that could be
 * read within bounds; -ENOTSUP where it is a version that is not supported (RUNTIME->version names
 * it, "" where it cannot be told), or of another kind (RUNTIME->kind); -EAGAIN where it is newer
 * than this build and has run nothing yet that it could be checked by, or where it has no C library
 * yet; -ETIMEDOUT where it does not answer, for which it waits (deputy.h); -ESRCH, -EPERM, -EACCES,
 * -ENOMEM. */
int runtime__find(pid_t pid, struct runtime *runtime);

/* The same among MAPPINGS, COUNT of them, CUT or not, as process__program_mappings() gives them for
 * PID by way of READER; they may be sorted anew.  It does not wait: -EINPROGRESS where the process
 * does not answer for now. */
int runtime__find_among(pid_t pid, pid_t reader, struct mapping *mappings, ssize_t count, bool cut,
			struct runtime *runtime);

/* Moves all addresses of RUNTIME by DISTANCE, as its file is. */
void runtime__move(struct runtime *runtime, uint64_t distance);

#endif
