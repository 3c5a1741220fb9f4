/* SPDX-License-Identifier: BSD-2-Clause */
/* Derives a code object's qualified name from a function object, if that can be trusted. */
#ifndef PYBPFPROF_BELIEVED_NAME_H
#define PYBPFPROF_BELIEVED_NAME_H

#include <stdbool.h>

#include "python/function_search.h"
#include "sampling/targets.h"

/* The qualified name that FUNCTION of TARGET gives to its code.  CODE_NAME is co_name.  GENERATED:
 * the program made the code while it ran.  NULL if no name can be trusted.  The caller frees. */
char *believed_name__of(const struct target_process *target, struct object_reader *reader,
			const struct function_object *function, const char *code_name,
			bool generated);

#endif
