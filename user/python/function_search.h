/* SPDX-License-Identifier: BSD-2-Clause */
/* Searches a process for functions, through its modules and their classes. */
#ifndef PYBPFPROF_FUNCTION_SEARCH_H
#define PYBPFPROF_FUNCTION_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "python/function_object.h"

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

#endif
