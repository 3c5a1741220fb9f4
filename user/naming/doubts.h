/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of processes whose code objects gave way to others: what was counted with them is not
 * named. */
#ifndef PYBPFPROF_DOUBTS_H
#define PYBPFPROF_DOUBTS_H

#include <stdbool.h>
#include <stdint.h>

struct doubts;

/* None.  Free with doubts__free, NULL too. */
struct doubts *doubts__new(void);
void doubts__free(struct doubts *doubts);

/* PROCESS and FUNCTION are as the profile numbers them: processes share functions, not code
 * objects. */
void doubts__add(struct doubts *doubts, uint32_t process, uint32_t function);
bool doubts__has(const struct doubts *doubts, uint32_t process, uint32_t function);

/* Ends all. */
void doubts__end(struct doubts *doubts);

#endif
