/* SPDX-License-Identifier: BSD-2-Clause */
/* A code object of a target: its names and its line table. */
#ifndef PYBPFPROF_CODE_H
#define PYBPFPROF_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "offsets.h"

/* Longer line tables are refused. */
#define LINE_TABLE_BYTES_MAX (16 * 1024 * 1024)

struct code {
	char *name;	     /* co_qualname from 3.11 on, before that co_name; UTF-8 */
	char *filename;	     /* co_filename; UTF-8 */
	uint32_t first_line; /* modulo 2^32: a program may number its lines below 1 */
	bool hidden; /* the interpreter's own (3.13: the caller of __init__); tracebacks hide it */
	uint64_t instructions; /* in code units, from 3.11 on */
	uint8_t *line_table;
	size_t line_table_length;
};

/* Reads the code object at ADDRESS of process PID.  CODE_TYPE is the address of PyCode_Type in the
 * target; if it is 0, the object's type is not checked.  0 with *CODE, for code__free; -EFAULT if
 * memory is not readable, for example after the process ended; -EINVAL if there is no code object.
 * From 3.13 on None is read as hidden code (code.c). */
int code__read(pid_t pid, const struct offsets *offsets, uint64_t code_type, uint64_t address,
	       struct code *code);

/* Decodes a code object from RECORD, of SIZE bytes, which BPF made.  Like code__read, but -ERANGE
 * if the record does not have all of it. */
int code__decode(const struct offsets *offsets, uint64_t code_type,
		 const struct code_record *record, size_t size, struct code *code);

/* Whether the code object at ADDRESS is alive, by its reference count and, unless CODE_TYPE is 0,
 * its type.  A freed object keeps its other fields until its memory is used again. */
bool code__is_alive(pid_t pid, const struct offsets *offsets, uint64_t code_type, uint64_t address);

/* The position in CODE, read from ADDRESS, of the instruction that FRAME records.  It differs from
 * FRAME's only if threads have their own copies of the instructions (3.14t and later).  False if
 * the position is unknown or not in CODE. */
bool code__position(pid_t pid, const struct offsets *offsets, uint64_t address,
		    const struct code *code, const struct frame *frame, int32_t *position);

/* Whether the program seems to have made CODE while it ran, as dataclass and namedtuple do.  Many
 * such code objects have the same name, file and line. */
bool code__is_generated(const struct code *code);

/* Frees what CODE points to.  CODE may be zeroed. */
void code__free(struct code *code);

#endif
