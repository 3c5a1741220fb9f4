/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of machine code that processes map, and their rows in BPF's maps. */
#ifndef PYBPFPROF_CODE_FILES_H
#define PYBPFPROF_CODE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "reading/process.h"
#include "unwind/chunks.h"
#include "unwind/code_file.h"

struct code_files {
	int files_map, rules_map; /* BPF's, the caller's */
	struct chunks *chunks;
	struct code_file *all; /* by identity */
	struct code_memory memory;
	uint32_t count; /* numbers that were given */
	uint64_t serial;
	uint32_t rule_count;
	bool is_full, was_full; /* something had no room: now, and ever */
	bool wants_rows;	/* of some file */
};

/* The file of IDENTITY, which is opened as process PID maps it, or the vDSO's for that mapping;
 * NULL where it cannot be read, has no machine code, or where there are too many.  PID or READER, a
 * thread of it, is read.  It lives until code_files__begin_anew. */
struct code_file *code_files__get(struct code_files *files, pid_t pid, pid_t reader,
				  const struct mapping *mapping,
				  const struct file_identity *identity);

/* Whether its rows are made first, as nearly each stack needs them.  FILE may be NULL. */
bool code_files__is_first(const struct code_file *file);

/* Has the rows of FILE, which may be NULL, made by code_files__make. */
void code_files__want(struct code_files *files, struct code_file *file);

/* Makes the rows that are wanted, of one file at least, and of no more after UNTIL_NS by now_ns().
 * Returns whether some are left. */
bool code_files__make(struct code_files *files, int64_t until_ns);

/* Whether ERROR, a -errno, is that there was no room, in the budget or in the kernel; that is
 * noted, and said the first time. */
bool code_files__note_full(struct code_files *files, int error);

/* Forgets all files and gives back their room, which no table in BPF may lead to any more. */
void code_files__begin_anew(struct code_files *files);

/* Frees all files; BPF's maps stay as they are. */
void code_files__free(struct code_files *files);

#endif
