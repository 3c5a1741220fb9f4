/* SPDX-License-Identifier: BSD-2-Clause */
/* The system calls of this architecture. */
#ifndef PYBPFPROF_SYSTEM_CALL_H
#define PYBPFPROF_SYSTEM_CALL_H

#include <stdint.h>

#define SYSTEM_CALL_ARGUMENTS 6

/* The name of the call with NUMBER, as in the kernel's header; NULL: unknown. */
const char *system_call__name(uint32_t number);

/* The number of the call NAME; -1: there is none. */
int system_call__number(const char *name);

/* The name of a call that differs from NAME by a letter or two; NULL: there is none. */
const char *system_call__near(const char *name);

/* The names of the call's arguments, "fd, buf, count", as far as they are known; "" if none
 * is. */
const char *system_call__arguments(const char *name);

/* The number of the argument NAME of CALL, from 0: "count", or "arg2"; -1: there is none. */
int system_call__argument(const char *call, const char *name);

#endif
