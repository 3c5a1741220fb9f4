/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files of machine code that processes map: the names of their functions, and their rows in
 * BPF's maps.
 */
#ifndef PYBPFPROF_CODE_FILES_H
#define PYBPFPROF_CODE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hash_table.h"
#include "elf/elf_image.h"
#include "reading/process.h"
#include "reading/target_files.h"
#include "unwind/chunks.h"
#include "unwind/symbols.h"

/* Executable segments of a file; a linker makes one or two. */
#define CODE_PARTS_MAX 8

/* Our own memory that all files share, for the names and addresses of functions. */
struct code_memory {
	uint64_t limit, used; /* bytes */
	bool is_full;	      /* the symbols of a file were skipped for lack of memory */
};

struct code_file {
	struct file_identity identity;	       /* key */
	uint32_t number;		       /* in BPF's table */
	uint64_t serial;		       /* never used again for another file */
	char *path;			       /* as the kernel shows it */
	char build_id[ELF_BUILD_ID_HEX_BYTES]; /* "": none */
	Elf64_Phdr parts[CODE_PARTS_MAX];
	size_t part_count;
	bool is_interpreter; /* it contains CPython's own functions */
	bool is_wanted;	     /* its rows are to be made */
	bool has_rows;	     /* they were made, or cannot be made */
	uint64_t *functions; /* the addresses of its functions by its unwind data, sorted */
	size_t function_count;
	struct symbols *symbols; /* NULL: none, or not read yet */
	bool has_symbols;	 /* they were read */
	struct elf_image *image; /* NULL once all is read */
	struct elf_budget budget;
	struct code_memory *memory;
	UT_hash_handle hh;
};

struct code_files {
	int files_map, rules_map; /* BPF's, the caller's */
	struct chunks *chunks;
	struct code_file *all; /* by identity */
	struct code_memory memory;
	uint64_t serial; /* the last one */
	uint32_t rule_count;
	bool is_full, was_full; /* memory ran out: now, and ever */
};

/* The file of IDENTITY, opened at MAPPING of process PID, or the vDSO.  READER is PID or one of its
 * threads.  NULL: the file cannot be read, it has no machine code, or there are too many.  It lives
 * until code_files__begin_anew. */
struct code_file *code_files__get(struct code_files *files, pid_t pid, pid_t reader,
				  const struct mapping *mapping,
				  const struct file_identity *identity);

/* Has code_files__make make the rows of FILE, which may be NULL.  FIRST: only if nearly every stack
 * needs them. */
void code_file__want(struct code_file *file, bool first);

/* Makes the rows that are wanted: of one file at least, and of no more after UNTIL_NS by now_ns().
 * Returns whether some are left. */
bool code_files__make(struct code_files *files, int64_t until_ns);

/* Whether ERROR, a -errno, means that the budget or the kernel had no room.  Notes that, and warns
 * the first time. */
bool code_files__note_full(struct code_files *files, int error);

/* Forgets all files and gives back their room.  No table in BPF may refer to them any more. */
void code_files__begin_anew(struct code_files *files);

/* Frees all files; BPF's maps stay as they are. */
void code_files__free(struct code_files *files);

/* Reads the symbols of FILE, unless that was done or memory is full. */
void code_file__read_symbols(struct code_file *file);

/* *BIAS is added to the file's addresses where its part at OFFSET is mapped at START.  False if the
 * file has no code there. */
bool code_file__bias(const struct code_file *file, uint64_t start, uint64_t offset, uint64_t *bias);

/* The start of the function at ADDRESS of the file; ADDRESS itself if that is unknown. */
uint64_t code_file__function_start(struct code_file *file, uint64_t address);

/* The name of that function: "list_sort (python3.11)", or "python3.11+0x1a2b30", its start, if it
 * has no symbol.  The caller frees. */
char *code_file__describe(struct code_file *file, uint64_t address);

/* Whether that function is the interpreter's plumbing, or starts a program or thread. */
bool code_file__is_plumbing(struct code_file *file, uint64_t address);

#endif
