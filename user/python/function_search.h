/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding the functions of a process: those that its modules and their classes have. */
#ifndef PYBPFPROF_FUNCTION_SEARCH_H
#define PYBPFPROF_FUNCTION_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "python/object.h"

struct function_owner;

/* A function object as it was read. */
struct function_object {
	uint64_t address;
	uint64_t code, name, qualified_name, dict, closure;
	/* The class that has it, and the str by which it does; 0: none does.  In 2.7, which has no
	 * qualified names, any owner and its str. */
	uint64_t class, key;
	uint64_t globals;
	const struct function_owner *owner;
};

/* What is to be done with each function; one that has several names comes several times. */
typedef void (*function_search__found)(void *context, struct object_reader *reader,
				       const struct function_object *function);

struct function_search;

/* A search through all modules and classes of the interpreters from the pointer at INTERPRETERS on;
 * OFFSETS must outlive it.  Free with function_search__free, NULL too. */
struct function_search *function_search__new(pid_t pid, const struct offsets *offsets,
					     uint64_t interpreters, function_search__found found,
					     void *context);
void function_search__free(struct function_search *search);

/* Searches on for *LEFT_NS or little more, and takes what it needed from that; returns whether that
 * was all. */
bool function_search__go_on(struct function_search *search, int64_t *left_ns);

/* How far it went. */
struct function_search_extent {
	uint64_t objects, classes;
	int64_t duration_ns;
	bool cut; /* there is more than is searched: what was found may not be all */
};
const struct function_search_extent *function_search__extent(const struct function_search *search);

/* Reads FUNCTION again; false where it is another one by now, or not readable. */
bool function_search__is_same(const struct object_reader *reader,
			      const struct function_object *function);

/* What FUNCTION, of a search that goes on, says that it is called, in 2.7 where it was found; NULL
 * where nothing can be said.  The caller frees. */
char *function_search__qualified_name(struct object_reader *reader,
				      const struct function_object *function);

#endif
