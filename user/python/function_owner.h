/* SPDX-License-Identifier: BSD-2-Clause */
/* Owners of functions: modules and classes.  They name functions that do not know their qualified
 * name: those of 2.7, and in later versions some that a program made while it ran. */
#ifndef PYBPFPROF_FUNCTION_OWNER_H
#define PYBPFPROF_FUNCTION_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "python/object.h"

struct function_owner {
	struct function_owner *next; /* for the caller's list */
	uint64_t globals;	     /* the module's dict */
	uint64_t module_name;	     /* the str object; classes of the module refer to it too */
	char path[];		     /* "Outer.Inner"; empty for the module itself */
};

/* The module whose dict is at GLOBALS and whose name is at NAME.  The caller frees all owners. */
struct function_owner *function_owner__of_module(uint64_t globals, uint64_t name);

/* The class at ADDRESS; IS_OLD: an old-style one.  OUTER refers to it by the str at KEY.  NULL if
 * that is not the name of the class, or the path is too long. */
struct function_owner *function_owner__within(struct object_reader *reader,
					      const struct function_owner *outer, uint64_t key,
					      uint64_t address, bool is_old);

/* The qualified name of a function whose __name__ is at NAME, and which OWNER refers to by the str
 * at KEY; NULL if these two differ.  The caller frees. */
char *function_owner__qualify(struct object_reader *reader, const struct function_owner *owner,
			      uint64_t key, uint64_t name);

/* The same from 3.6 on, for a function of the class at CLASS, by the class's own qualified name. */
char *function_owner__name_in_class(struct object_reader *reader, uint64_t class, uint64_t key,
				    uint64_t name);

#endif
