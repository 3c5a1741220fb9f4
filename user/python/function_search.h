/* SPDX-License-Identifier: BSD-2-Clause */
/* Searches a process for functions, through its modules and their classes. */
#ifndef PYBPFPROF_FUNCTION_SEARCH_H
#define PYBPFPROF_FUNCTION_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "python/object.h"

struct function_owner;

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

/* Called for each function; several times if the function has several names. */
typedef void (*function_search__found)(void *context, struct object_reader *reader,
				       const struct function_object *function);

struct function_search;

/* Begins a search through all modules and classes of the interpreters in the list that the pointer
 * at INTERPRETERS begins.  OFFSETS must outlive the search.  function_search__free takes NULL too.
 */
struct function_search *function_search__new(pid_t pid, const struct offsets *offsets,
					     uint64_t interpreters, function_search__found found,
					     void *context);
void function_search__free(struct function_search *search);

/* Continues for *LEFT_NS or little more, and subtracts the time that it took.  True if the search
 * is complete. */
bool function_search__go_on(struct function_search *search, int64_t *left_ns);

/* How far the search went. */
struct function_search_extent {
	uint64_t objects, classes;
	int64_t duration_ns;
	bool cut; /* a limit was reached: functions may be missing */
};
const struct function_search_extent *function_search__extent(const struct function_search *search);

/* Reads FUNCTION again.  False if it has changed or is not readable. */
bool function_search__is_same(const struct object_reader *reader,
			      const struct function_object *function);

/* The qualified name of FUNCTION; in 2.7, the path to it.  NULL if it is not known.  The search
 * must still exist.  The caller frees. */
char *function_search__qualified_name(struct object_reader *reader,
				      const struct function_object *function);

#endif
