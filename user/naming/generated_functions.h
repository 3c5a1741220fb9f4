/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that a program makes while it runs, as dataclass and namedtuple do: many have the same
 * name, file and line, so that each code object is a function of its own in the profile, until it
 * is known which class it belongs to.
 */
#ifndef PYBPFPROF_GENERATED_FUNCTIONS_H
#define PYBPFPROF_GENERATED_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "python/code.h"

struct generated_functions;

/* Those of one process; at first NULL. */
struct generated_code;

/* Free with generated_functions__free, NULL too, after all that processes hold was released. */
struct generated_functions *generated_functions__new(void);
void generated_functions__free(struct generated_functions *all);

/* Whether CODE is one of them, as far as it says itself. */
bool generated_functions__has(const struct code *code);

/* The number, not 0, that tells the code object at ADDRESS from others; a process that was forked
 * has its parent's.  0 where a process has too many of them, which are not told apart. */
uint32_t generated_functions__number(struct generated_functions *all, struct generated_code **held,
				     uint64_t address, uint64_t identity);

/* The process that HELD these has been forgotten. */
void generated_functions__release(struct generated_functions *all, struct generated_code **held);

#endif
