/* SPDX-License-Identifier: BSD-2-Clause */
/* What a function object says of its code's name, where that can be believed. */
#ifndef PYBPFPROF_BELIEVED_NAME_H
#define PYBPFPROF_BELIEVED_NAME_H

#include <stdbool.h>

#include "python/function_search.h"
#include "sampling/targets.h"

/* The qualified name that FUNCTION of TARGET gives to its code, whose co_name is CODE_NAME;
 * GENERATED: the program made that while it ran.  NULL where nothing can be believed.  The caller
 * frees. */
char *believed_name__of(const struct target_process *target, struct object_reader *reader,
			const struct function_object *function, const char *code_name,
			bool generated);

#endif
