/* SPDX-License-Identifier: BSD-2-Clause */
/* What has a function: a module, or a class.  In 2.7 functions have no qualified name, and later on
 * some that a program made while it ran have one that tells nothing. */
#ifndef PYBPFPROF_FUNCTION_OWNER_H
#define PYBPFPROF_FUNCTION_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "python/object.h"

struct function_owner {
	struct function_owner *next; /* for who has many */
	uint64_t globals;	     /* the module's dict */
	uint64_t module_name;	     /* the str in it, as classes have it, too */
	char path[];		     /* "Outer.Inner"; empty: the module itself */
};

/* The module whose dict is at GLOBALS.  The caller frees, as all of these. */
struct function_owner *function_owner__of_module(uint64_t globals, uint64_t name);

/* The class at ADDRESS, an old-style one or not, which OUTER has as the str at KEY; NULL where it
 * does not call itself that, or that is too long. */
struct function_owner *function_owner__within(struct object_reader *reader,
					      const struct function_owner *outer, uint64_t key,
					      uint64_t address, bool is_old);

/* The qualified name of a function whose __name__ is at NAME, which OWNER has as KEY; NULL where
 * these are not the same.  The caller frees. */
char *function_owner__qualify(struct object_reader *reader, const struct function_owner *owner,
			      uint64_t key, uint64_t name);

/* The same from 3.6 on, of a function that the class at CLASS has, by that class's own name. */
char *function_owner__name_in_class(struct object_reader *reader, uint64_t class, uint64_t key,
				    uint64_t name);

#endif
