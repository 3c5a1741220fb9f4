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
 *
 * 2.7 has no qualified names.  The name of a function is the path to it, and each step of
 * the path must be confirmed by the object that it leads to:
 *
 * 	module	the globals of a function are the dict of the module.  The __module__ of
 * 		a class is the __name__ of the module: the same object, compared without
 * 		a read
 * 	class	its name is the key under which the module or outer class has it
 * 	method	likewise.  If the name begins with two underscores, the compiler put the
 * 		name of the class before it in the key
 *
 * This excludes what was imported or has a second name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "python/dict.h"
#include "python/function_object.h"
#include "reading/reader.h"
#include "reading/target_memory.h"

/* In co_flags. */
#define CODE_NESTED 0x10

/* The fields of a function that are read end below this (3.10: 96). */
#define FUNCTION_BYTES_MAX 256

/* Longer paths are refused. */
#define PATH_BYTES_MAX 256

/* The bytes of NAME joined to PATH. */
static size_t joined_bytes(const char *path, const char *name)
{
	return strlen(path) + strlen(name) + 2;
}

static void join(char *joined, const char *path, const char *name)
{
	snprintf(joined, joined_bytes(path, name), "%s%s%s", path, *path ? "." : "", name);
}

static struct function_owner *make(uint64_t globals, uint64_t module_name, const char *outer,
				   const char *name)
{
	struct function_owner *owner = xcalloc(1, sizeof(*owner) + joined_bytes(outer, name));

	owner->globals = globals;
	owner->module_name = module_name;
	join(owner->path, outer, name);
	return owner;
}

struct function_owner *function_owner__of_module(uint64_t globals, uint64_t name)
{
	return make(globals, name, "", "");
}

/* Whether the C string at ADDRESS is TEXT. */
static bool is_at(pid_t pid, uint64_t address, const char *text)
{
	char bytes[PATH_BYTES_MAX];
	size_t size = strlen(text) + 1;

	return size <= sizeof(bytes) && !target_memory__read(pid, address, bytes, size) &&
	       memcmp(bytes, text, size) == 0;
}

/* Whether NAME, the text of the str at KEY, is the name of the class at ADDRESS. */
static bool is_named(struct object_reader *reader, uint64_t address, bool is_old, uint64_t key,
		     const char *name)
{
	uint64_t own;
	char *text;
	bool named;

	if (!is_old) {
		own = object__type_name(reader->pid, reader->offsets, address);
		return own && is_at(reader->pid, own, name);
	}
	if (target_memory__read_pointer(reader->pid, address + reader->offsets->class_name, &own))
		return false;
	text = own == key ? NULL : object__text(reader, own);
	named = own == key || (text && strcmp(text, name) == 0);
	free(text);
	return named;
}

struct function_owner *function_owner__within(struct object_reader *reader,
					      const struct function_owner *outer, uint64_t key,
					      uint64_t address, bool is_old)
{
	char *name = reader__lend(object__text(reader, key));
	struct function_owner *owner = NULL;

	if (name && *name && joined_bytes(outer->path, name) <= PATH_BYTES_MAX &&
	    is_named(reader, address, is_old, key, name))
		owner = make(outer->globals, outer->module_name, outer->path, name);
	free(reader__take_back(name));
	return owner;
}

/* Whether KEY is the private name NAME after the compiler mangled it in the class at PATH. */
static bool is_private(const char *path, const char *key, const char *name)
{
	const char *dot = strrchr(path, '.'), *class = dot ? dot + 1 : path;
	size_t length = strlen(name);

	if (strncmp(name, "__", 2) != 0 || strcmp(name + length - 2, "__") == 0)
		return false;
	class += strspn(class, "_");
	length = strlen(class);
	return length && *key == '_' && strncmp(key + 1, class, length) == 0 &&
	       strcmp(key + 1 + length, name) == 0;
}

/* Qualifies NAME by PATH.  MANGLED: KEY may be the mangled form of NAME. */
static char *qualify(struct object_reader *reader, const char *path, uint64_t key, uint64_t name,
		     bool mangled)
{
	char *written = reader__lend(object__text(reader, name));
	char *text = written ? object__text(reader, key) : NULL, *qualified = NULL;

	if (text && (strcmp(text, written) == 0 || (mangled && is_private(path, text, written)))) {
		qualified = xmalloc(joined_bytes(path, written));
		join(qualified, path, written);
	}
	free(text);
	free(reader__take_back(written));
	return qualified;
}

/* The qualified name of the class at ADDRESS; NULL if Python code did not make the class. */
static char *class_name(struct object_reader *reader, uint64_t address)
{
	const struct offsets *offsets = reader->offsets;
	uint64_t flags, name;

	if (!address ||
	    target_memory__read_pointer(reader->pid, address + offsets->type_flags, &flags) ||
	    !(flags & TYPE_IS_HEAP) ||
	    target_memory__read_pointer(reader->pid, address + offsets->type_qualname, &name))
		return NULL;
	return object__text(reader, name);
}

/* The qualified name of FUNCTION by its class's own. */
static char *name_in_class(struct object_reader *reader, const struct function_object *function)
{
	char *outer = reader__lend(class_name(reader, function->class));
	char *qualified =
		outer ? qualify(reader, outer, function->key, function->name, false) : NULL;

	free(reader__take_back(outer));
	return qualified;
}

/* The qualified name of FUNCTION; in 2.7, the path to it.  NULL if it is not known. */
static char *qualified_name(struct object_reader *reader, const struct function_object *function)
{
	if (!function->owner)
		return object__text(reader, function->qualified_name);
	return function->globals == function->owner->globals
		       ? qualify(reader, function->owner->path, function->key, function->name, true)
		       : NULL;
}

size_t function_object__bytes(const struct offsets *offsets)
{
	uint32_t fields[] = { offsets->object_type,	offsets->function_code,
			      offsets->function_name,	offsets->function_qualname,
			      offsets->function_dict,	offsets->function_closure,
			      offsets->function_globals };

	return object__bytes(fields, sizeof(fields) / sizeof(fields[0]));
}

struct function_object function_object__parse(const struct offsets *offsets, const uint8_t *bytes)
{
	return (struct function_object){
		.code = object__word(bytes, offsets->function_code),
		.name = object__word(bytes, offsets->function_name),
		.qualified_name = object__word(bytes, offsets->function_qualname),
		.dict = object__word(bytes, offsets->function_dict),
		.closure = object__word(bytes, offsets->function_closure),
		.globals = object__word(bytes, offsets->function_globals),
	};
}

bool function_object__is_same(const struct object_reader *reader,
			      const struct function_object *function)
{
	const struct offsets *offsets = reader->offsets;
	uint8_t bytes[FUNCTION_BYTES_MAX];
	struct function_object now;

	if (target_memory__read(reader->pid, function->address, bytes,
				function_object__bytes(offsets)))
		return false;
	now = function_object__parse(offsets, bytes);
	return now.code == function->code && now.name == function->name &&
	       now.qualified_name == function->qualified_name && now.dict == function->dict &&
	       now.globals == function->globals;
}

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
static bool was_within(const struct object_reader *reader, uint64_t code, const char *qualified)
{
	uint32_t flags;

	return target_memory__read(reader->pid, code + reader->offsets->code_flags, &flags,
				   sizeof(flags)) ||
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
static char *own_name(struct object_reader *reader, const struct function_object *function,
		      const char *code_name)
{
	char *name = reader__lend(object__text(reader, function->name));
	char *qualified = reader__lend(qualified_name(reader, function));
	bool believed = name && qualified && strcmp(name, code_name) == 0 &&
			ends_with(qualified, name) &&
			!was_within(reader, function->code, qualified);

	qualified = reader__take_back(qualified);
	free(reader__take_back(name));
	if (believed)
		return qualified;
	free(qualified);
	return NULL;
}

char *function_object__believed_name(struct object_reader *reader,
				     const struct function_object *function, const char *code_name,
				     bool generated)
{
	char *name = reader__lend(generated ? name_in_class(reader, function)
					    : own_name(reader, function, code_name));
	bool believed =
		name && !is_wrapper(reader, function) && function_object__is_same(reader, function);

	name = reader__take_back(name);
	if (believed)
		return name;
	free(name);
	return NULL;
}
