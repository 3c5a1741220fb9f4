/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives BPF the data to walk native frames: the rows of the files that processes map, and the
 * tables of their mappings.  Identifies the addresses of these frames, to name them.
 */
#ifndef PYBPFPROF_UNWINDER_H
#define PYBPFPROF_UNWINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/code_files.h"

/* Descriptors of BPF's maps; the caller owns them. */
struct unwinder_maps {
	int chunks, files, rules, tables;
};

struct unwinder;

/* MEMORY bounds the bytes of rows and tables in the kernel, and about those of names here.  Free
 * with unwinder__free, NULL too. */
struct unwinder *unwinder__new(const struct unwinder_maps *maps, uint64_t memory);
void unwinder__free(struct unwinder *unwinder);

/* Gives back BPF's memory after the last sample.  Names stay.  UNWINDER may be NULL. */
void unwinder__stop(struct unwinder *unwinder);

/* Adds process PID, which BPF knows by SERIAL; its Python has data at PYTHON.  If the process
 * PARENT, which forked it, is known, it maps the same.  Otherwise unwinder__work reads what it
 * maps, once, and again if samples lack something.  WHOLE: the rows of all its files are made,
 * otherwise those of the interpreter and the C library. */
void unwinder__add(struct unwinder *unwinder, uint64_t serial, pid_t pid, uint64_t python,
		   uint64_t parent, bool whole);

/* A sample of the process found no rows at ADDRESS; UNWIND_ANY_ADDRESS: no mappings either. */
void unwinder__want(struct unwinder *unwinder, uint64_t serial, uint64_t address);

/* end: the process has ended; it is not read any more.  forget: no sample of it can come. */
void unwinder__end(struct unwinder *unwinder, uint64_t serial);
void unwinder__forget(struct unwinder *unwinder, uint64_t serial);

/* Reads mappings and makes rows that are lacking, for a few milliseconds.  NOW is now_ns().  Reads
 * the mappings of a process once per second at most.  Returns when there is more to do; INT64_MAX:
 * never, also if UNWINDER is NULL. */
int64_t unwinder__work(struct unwinder *unwinder, int64_t now);

/* Bytes of BPF's memory in use; 0 if UNWINDER is NULL or stopped. */
uint64_t unwinder__bytes(const struct unwinder *unwinder);

/* The name that the process gave to code at ADDRESS, where it maps no file; as perf_maps__name. */
const char *unwinder__jit_name(struct unwinder *unwinder, uint64_t serial, uint64_t address);

/* Whether names of such code have appeared that were lacking.  UNWINDER may be NULL. */
bool unwinder__have_names(struct unwinder *unwinder);

/* What is at an address of a process. */
struct code_place {
	struct code_file *file; /* NULL: code that was made at run time, or unknown memory */
	bool is_mapped;
	uint64_t address;      /* in the file */
	uint64_t start, limit; /* the mapping, in the file's addresses */
	uint64_t offset;       /* of START in the file */
};

struct code_place unwinder__place(const struct unwinder *unwinder, uint64_t serial,
				  uint64_t address);

#endif
