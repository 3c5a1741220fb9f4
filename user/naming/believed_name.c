// SPDX-License-Identifier: BSD-2-Clause
/*
 * A function's name is taken as its code's name only if nothing has renamed the function.  __name__
 * is co_name, and so is the last part of __qualname__.  There is no __wrapped__, which
 * functools.wraps leaves.  If the code object says that it is nested, the name has "<locals>" in
 * it: the classes that namedtuple makes share the code of some functions, and each class renames
 * them.  The process runs on meanwhile, so a function is read again after its names.
 *
 * Functions that a program makes while it runs have names that say nothing: dataclass's methods are
 * __create_fn__.<locals>.__init__ or __init__, and namedtuple's __new__ is <lambda>.  Such a
 * function gets the name of its class, and its name in that class.
 */
#include <stdlib.h>
#include <string.h>

#include "naming/believed_name.h"
#include "python/dict.h"
#include "python/function_owner.h"
#include "reading/deputy.h"
#include "reading/target_memory.h"

/* In co_flags. */
#define CODE_NESTED 0x10

/* Whether FUNCTION may have taken the names of another one by functools.wraps. */
static bool is_wrapper(struct object_reader *reader, const struct function_object *function)
{
	uint64_t key = 0, wrapped;
	struct dict dict;

	if (!function->dict)
		return false;
	if (dict__read(reader, function->dict, &dict))
		return true;
	wrapped = dict__find(reader, &dict, "__wrapped__", &key);
	dict__free(&dict);
	return wrapped;
}

/* Whether the code object says that it is nested, but QUALIFIED does not. */
static bool was_within(const struct target_process *target, uint64_t code, const char *qualified)
{
	uint32_t flags;

	return target_memory__read(target->process.pid, code + target->runtime.offsets.code_flags,
				   &flags, sizeof(flags)) ||
	       (flags & CODE_NESTED && !strstr(qualified, "<locals>"));
}

/* Whether QUALIFIED is NAME, or ends with "." and NAME. */
static bool ends_with(const char *qualified, const char *name)
{
	size_t length = strlen(qualified), end = strlen(name);

	if (length < end || strcmp(qualified + length - end, name) != 0)
		return false;
	return length == end || qualified[length - end - 1] == '.';
}

/* The name by FUNCTION's own attributes. */
static char *own_name(const struct target_process *target, struct object_reader *reader,
		      const struct function_object *function, const char *code_name)
{
	char *name = deputy__lend(object__text(reader, function->name));
	char *qualified = deputy__lend(function_search__qualified_name(reader, function));
	bool believed = name && qualified && strcmp(name, code_name) == 0 &&
			ends_with(qualified, name) &&
			!was_within(target, function->code, qualified);

	qualified = deputy__take_back(qualified);
	free(deputy__take_back(name));
	if (believed)
		return qualified;
	free(qualified);
	return NULL;
}

char *believed_name__of(const struct target_process *target, struct object_reader *reader,
			const struct function_object *function, const char *code_name,
			bool generated)
{
	char *name = deputy__lend(generated ? function_owner__name_in_class(reader, function->class,
									    function->key,
									    function->name)
					    : own_name(target, reader, function, code_name));
	bool believed =
		name && !is_wrapper(reader, function) && function_search__is_same(reader, function);

	name = deputy__take_back(name);
	if (believed)
		return name;
	free(name);
	return NULL;
}
