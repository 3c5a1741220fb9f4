/* SPDX-License-Identifier: BSD-2-Clause */
/* Function objects, and the names that they give to their code. */
#ifndef PYBPFPROF_FUNCTION_OBJECT_H
#define PYBPFPROF_FUNCTION_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "python/object.h"

/* A module or class of 2.7, where functions do not know their qualified name. */
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

/* A function object and how it was found. */
struct function_object {
	uint64_t address;
	uint64_t code, name, qualified_name, dict, closure;
	/* The class that refers to the function, and the str by which it does; 0: no class does.
	 * In 2.7, KEY is the str by which OWNER refers to it. */
	uint64_t class, key;
	uint64_t globals;
	const struct function_owner *owner;
};

/* How many bytes of a function object are read; then the function by its own words in BYTES. */
size_t function_object__bytes(const struct offsets *offsets);
struct function_object function_object__parse(const struct offsets *offsets, const uint8_t *bytes);

/* Reads FUNCTION again.  False if it has changed or is not readable. */
bool function_object__is_same(const struct object_reader *reader,
			      const struct function_object *function);

/* The qualified name that FUNCTION gives to its code; in 2.7, the path to it.  CODE_NAME is
 * co_name.  GENERATED: the program made the code while it ran, and the function has its class's
 * name.  NULL if no name can be trusted.  FUNCTION's owner must still exist.  The caller frees. */
char *function_object__believed_name(struct object_reader *reader,
				     const struct function_object *function, const char *code_name,
				     bool generated);

#endif
