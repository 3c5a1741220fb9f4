/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What BPF needs to walk the native frames of processes: the rows of the files that they map, and
 * where they map them.  And what their addresses mean, to name these frames.
 */
#ifndef PYBPFPROF_UNWINDER_H
#define PYBPFPROF_UNWINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/code_file.h"

/* Descriptors of BPF's maps; the program's. */
struct unwinder_maps {
	int chunks, files, rules, tables;
};

struct unwinder;

/* With at most MEMORY bytes of rows and tables in the kernel, and about as many of names here. Free
 * with unwinder__free, NULL too. */
struct unwinder *unwinder__new(const struct unwinder_maps *maps, uint64_t memory);
void unwinder__free(struct unwinder *unwinder);

/* No sample is taken any more: gives back what BPF used.  Names stay.  Of NULL there is nothing. */
void unwinder__stop(struct unwinder *unwinder);

/* Has read what process PID maps, which BPF knows by SERIAL; its Python has data at PYTHON.  If
 * process PARENT is known, which forked it, it maps the same.  It is read but once, unless
 * something is lacking; WHOLE: the rows of all its files are made, else those of the interpreter's
 * and of the C library.  All that is done by unwinder__work. */
void unwinder__add(struct unwinder *unwinder, uint64_t serial, pid_t pid, uint64_t python,
		   uint64_t parent, bool whole);

/* A sample of the process met no rows at ADDRESS; UNWIND_ANY_ADDRESS: nor anything of what it maps.
 */
void unwinder__want(struct unwinder *unwinder, uint64_t serial, uint64_t address);

/* The process has ended: nothing of it is read any more.  And no sample of it can come any more. */
void unwinder__end(struct unwinder *unwinder, uint64_t serial);
void unwinder__forget(struct unwinder *unwinder, uint64_t serial);

/* Makes some of what is lacking, for a few milliseconds: NOW is now_ns().  What a process maps
 * is read again once a second at most.  Returns when more is to be done: INT64_MAX for nothing,
 * also where UNWINDER is NULL. */
int64_t unwinder__work(struct unwinder *unwinder, int64_t now);

/* Bytes of its tables that are in use; of NULL, and once it has stopped, 0. */
uint64_t unwinder__bytes(const struct unwinder *unwinder);

/* The name that the process gave its code at ADDRESS, which no file is behind: perf_maps__name. */
const char *unwinder__jit_name(struct unwinder *unwinder, uint64_t serial, uint64_t address);

/* Whether such code has names that had none when it was named; of NULL it has not. */
bool unwinder__have_names(struct unwinder *unwinder);

/* What an address of a process is. */
struct code_place {
	struct code_file *file; /* NULL: code that was made at run time, or memory not known */
	bool is_mapped;
	uint64_t address;	       /* in the file */
	uint64_t start, limit, offset; /* the mapping: from START to LIMIT in the file's addresses
					* is what the file has at OFFSET */
};

struct code_place unwinder__place(const struct unwinder *unwinder, uint64_t serial,
				  uint64_t address);

#endif
