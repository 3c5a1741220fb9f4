// SPDX-License-Identifier: BSD-2-Clause
/* The input: a layout, the address of the interpreters, how memory changes, and the memory with
 * modules, classes and functions. */
#include <stdlib.h>

#include "input.h"
#include "python/function_search.h"

#define PID	0
#define STEP_NS 20000000LL
#define STEPS	4

static void look_at_function(void *context, struct object_reader *reader,
			     const struct function_object *function)
{
	(void)context;
	function_object__is_same(reader, function);
	free(function_object__believed_name(reader, function, "f", false));
	free(function_object__believed_name(reader, function, "f", true));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input input = { bytes, size };
	struct function_search *search;
	struct offsets offsets;
	uint64_t interpreters;
	unsigned int changes;
	int64_t left_ns;

	if (!input__take_offsets(&input, &offsets))
		return 0;
	interpreters = input__number(&input, 2);
	changes = input__number(&input, 1);
	memory__set(input.next, input.left, changes);
	search = function_search__new(PID, &offsets, interpreters, look_at_function, NULL);
	for (int i = 0; i < STEPS; i++) {
		left_ns = STEP_NS;
		if (function_search__go_on(search, &left_ns))
			break;
	}
	function_search__free(search);
	return 0;
}
