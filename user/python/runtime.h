/* SPDX-License-Identifier: BSD-2-Clause */
/* The Python of a process: its version, its layout, and where its interpreters are. */
#ifndef PYBPFPROF_RUNTIME_H
#define PYBPFPROF_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "offsets.h"

/* Room for "3.13.0rc12+". */
#define PYTHON_VERSION_TEXT_MAX 16

struct mapping;

/* A kind of Python that is not walked, whatever its version.  Its samples are counted. */
struct python_kind {
	const char *name;      /* "a 32-bit Python" */
	const char *supported; /* what is supported instead; NULL: this architecture's Python */
};

struct runtime {
	char version[PYTHON_VERSION_TEXT_MAX];
	struct offsets offsets; /* with PY_VERSION_HEX */
	struct layout layout;
	uint64_t interpreters; /* address of the pointer to the newest interpreter */
	uint64_t code_type;    /* address of PyCode_Type; 0: unknown */
	uint64_t thread_area;  /* pthread_self() is this many bytes below the thread pointer */
	struct entry_gap entry_gap;
	/* Where the code of its file is mapped: the byte at OFFSET of the file is at START, and
	 * BIAS is added to the file's addresses.  START is 0 if the other addresses of RUNTIME do
	 * not follow from it. */
	struct {
		uint64_t start, offset, bias;
	} text;
	/* NULL: a CPython of this architecture.  For all others, only the version is set besides.
	 */
	const struct python_kind *kind;
	bool stripped;	       /* its file names nothing; unnamed.h finds it in a running process */
	bool initialized;      /* it has an interpreter with a thread */
	bool begins;	       /* it has no interpreter: not yet, or not any more */
	const char *objection; /* why it is not supported, if not only for its version */
	char other_version[PYTHON_VERSION_TEXT_MAX]; /* of another one that is alive; "": none */
};

/* Finds the Python of process PID.  If several files hold one, it is the one with an interpreter;
 * if several have interpreters, the newest version.  0; -ENOEXEC if no mapped file holds a Python;
 * -E2BIG if none was found within limits; -ENOTSUP if its version is not supported
 * (RUNTIME->version; "" if unknown), or its kind (RUNTIME->kind); -EAGAIN if it has no C library
 * yet, or is newer than this build and has run nothing yet to check it by; -ETIMEDOUT if the
 * process does not answer (reader.h); -ESRCH, -EPERM, -EACCES, -ENOMEM. */
int runtime__find(pid_t pid, struct runtime *runtime);

/* The same among the COUNT MAPPINGS that process__program_mappings() gave for PID and READER, CUT
 * or not.  It sorts them.  It does not wait: -EINPROGRESS if the process does not answer for now.
 */
int runtime__find_among(pid_t pid, pid_t reader, struct mapping *mappings, ssize_t count, bool cut,
			struct runtime *runtime);

/* Moves all addresses of RUNTIME by DISTANCE, for a file that is mapped elsewhere. */
void runtime__move(struct runtime *runtime, uint64_t distance);

#endif
