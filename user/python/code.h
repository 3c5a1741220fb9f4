/* SPDX-License-Identifier: BSD-2-Clause */
/* A code object of a target: its names and its line table, read once. */
#ifndef PYBPFPROF_CODE_H
#define PYBPFPROF_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "offsets.h"

/* A line table longer than this is not one: refused, not cut. */
#define LINE_TABLE_BYTES_MAX (16 * 1024 * 1024)

struct code {
	char *name;	     /* co_qualname from 3.11 on, else co_name; UTF-8 */
	char *filename;	     /* co_filename; UTF-8 */
	uint32_t first_line; /* modulo 2^32: a program may number its lines below 1 */
	bool hidden; /* the interpreter's own (3.13: what calls __init__); tracebacks hide it */
	uint64_t instructions; /* how many code units they are, from 3.11 on */
	uint8_t *line_table;
	size_t line_table_length;
};

/* Reads the code object at ADDRESS of process PID.  CODE_TYPE is the address of PyCode_Type in the
 * target, 0 where it is not known: then the object's type is not checked.
 * 0 with *CODE for code__free; -EFAULT where memory is not readable (the process has ended, say);
 * -EINVAL where what is there is no code object.  From 3.13 on, None is hidden code: see code.c. */
int code__read(pid_t pid, const struct offsets *offsets, uint64_t code_type, uint64_t address,
	       struct code *code);

/* The same for one that the kernel has copied, in a record of SIZE bytes.  -ERANGE where not all of
 * it is there. */
int code__decode(const struct offsets *offsets, uint64_t code_type,
		 const struct code_record *record, size_t size, struct code *code);

/* Whether the code object at ADDRESS lives, as far as its count of references tells, and its type,
 * by CODE_TYPE as above; a freed one keeps its other fields until its memory is used again. */
bool code__is_alive(pid_t pid, const struct offsets *offsets, uint64_t code_type, uint64_t address);

/* The position in the code object at ADDRESS, which CODE was read from, of the instruction that
 * FRAME (bpf/pybpfprof.h) records: the same, but where threads have their own copies of the
 * instructions (3.14t and later).  False where it is in none that is there. */
bool code__position(pid_t pid, const struct offsets *offsets, uint64_t address,
		    const struct code *code, const struct frame *frame, int32_t *position);

/* Whether the program made CODE while it ran, as dataclass and namedtuple do, as far as it says
 * itself: many such have the same name, file and line. */
bool code__is_generated(const struct code *code);

/* Frees what CODE points to; a zeroed one is fine. */
void code__free(struct code *code);

#endif
