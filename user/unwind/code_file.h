/* SPDX-License-Identifier: BSD-2-Clause */
/* A file of machine code that processes map: its rows for BPF, and the names of its functions. */
#ifndef PYBPFPROF_CODE_FILE_H
#define PYBPFPROF_CODE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "elf/elf_image.h"
#include "reading/target_files.h"
#include "unwind/cfi.h"
#include "unwind/symbols.h"

/* Parts of a file that are executable; a linker makes one or two. */
#define CODE_PARTS_MAX 8

/* What files take of our own memory: the names and beginnings of functions. */
struct code_memory {
	uint64_t limit, used; /* bytes */
	bool is_full;	      /* something was left out for that */
};

struct code_file {
	struct file_identity identity;	       /* key */
	uint32_t number;		       /* in BPF's table */
	uint64_t serial;		       /* no other file has, or had, this one */
	char *path;			       /* as the kernel has it */
	char build_id[ELF_BUILD_ID_HEX_BYTES]; /* "": it has none */
	Elf64_Phdr parts[CODE_PARTS_MAX];
	size_t part_count;
	bool is_interpreter; /* CPython's own functions are in it */
	bool is_wanted;	     /* its rows are to be made */
	bool has_rows;	     /* they were made, or cannot be: that is settled */
	uint64_t *functions; /* where its functions begin, by its unwind data; in order */
	size_t function_count;
	struct symbols *symbols; /* NULL: none, or not read yet */
	bool has_symbols;	 /* they were read */
	struct elf_image *image; /* NULL once all was read */
	struct elf_budget budget;
	struct code_memory *memory;
	UT_hash_handle hh;
};

/* The file behind FD, which it takes over: what it maps, and its build ID.  What cannot be read of
 * it is missing.  PID is the process on whose account it is read, MEMORY what all files share; it
 * must outlive the file.  Free with code_file__free. */
struct code_file *code_file__new(int fd, pid_t pid, const struct file_identity *identity,
				 struct code_memory *memory);
void code_file__free(struct code_file *file);

/* The file's last name: "libc.so.6". */
const char *code_file__name(const struct code_file *file);

bool code_file__is_c_library(const struct code_file *file);

/* Reads its symbols, unless that was done or there is no memory for them. */
void code_file__read_symbols(struct code_file *file);

/* What is to be added to the file's addresses where its part at OFFSET is mapped at START; false
 * where it has no code there. */
bool code_file__bias(const struct code_file *file, uint64_t start, uint64_t offset, uint64_t *bias);

/* Reads its unwind data into ROWS, zeroed, for cfi_rows__free, marked where that is wanted.  0, or
 * -ENOENT where there are none, or as cfi__read. */
int code_file__read_rows(struct code_file *file, struct cfi_rows *rows);

/* Where the function that has ADDRESS of the file begins; ADDRESS itself where that is not known.
 */
uint64_t code_file__function_start(struct code_file *file, uint64_t address);

/* The name of that function: "list_sort (python3.11)"; without a symbol where it begins:
 * "python3.11+0x1a2b30".  The caller frees. */
char *code_file__describe(struct code_file *file, uint64_t address);

/* Whether that function is the interpreter's plumbing, or what a thread begins with. */
bool code_file__is_plumbing(struct code_file *file, uint64_t address);

#endif
