/* SPDX-License-Identifier: BSD-2-Clause */
/* Which C functions only carry one Python call to the next, and say nothing in a profile. */
#ifndef PYBPFPROF_PLUMBING_H
#define PYBPFPROF_PLUMBING_H

#include <stdbool.h>

/* Whether the function NAME calls or runs Python code for the interpreter, or is the start of a
 * program or thread.  NAME is a symbol of the interpreter's files or of the C library; other files
 * may give these names to functions of their own.  Suffixes as of symbols__base_length do not
 * count. */
bool plumbing__is_name(const char *name);

/* Whether NAME is CPython's eval loop: _PyEval_EvalFrameDefault, from 3.6 on, or
 * PyEval_EvalFrameEx, which from 3.6 on only calls it.  Suffixes do not count. */
bool plumbing__is_eval_loop(const char *name);

/* Whether NAME, of the greenlet module, is the function with which each greenlet's part of the C
 * stack begins: g_initialstub.  What is above belongs to another greenlet, and may be overwritten.
 * Suffixes do not count. */
bool plumbing__is_stack_base(const char *name);

#endif
