/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * C functions that only carry one Python call to the next, and tell nothing in a profile.  Suffixes
 * of a NAME, as in symbols__base_length, are ignored.
 */
#ifndef PYBPFPROF_PLUMBING_H
#define PYBPFPROF_PLUMBING_H

#include <stdbool.h>

/* Whether the function NAME calls or runs Python code for the interpreter, or starts a program or a
 * thread.  NAME is a symbol of the interpreter's files or of the C library: other files may use
 * these names for functions of their own. */
bool plumbing__is_name(const char *name);

/* Whether NAME is CPython's eval loop: _PyEval_EvalFrameDefault from 3.6 on, or PyEval_EvalFrameEx,
 * which only calls it from 3.6 on. */
bool plumbing__is_eval_loop(const char *name);

/* Whether NAME, of the greenlet module, is g_initialstub, with which the part of each greenlet on
 * the C stack begins.  The stack above belongs to another greenlet, and may be overwritten. */
bool plumbing__is_stack_base(const char *name);

#endif
