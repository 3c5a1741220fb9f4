// SPDX-License-Identifier: BSD-2-Clause
/*
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
#include "python/function_owner.h"
#include "reading/deputy.h"
#include "reading/target_memory.h"

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
	char *name = deputy__lend(object__text(reader, key));
	struct function_owner *owner = NULL;

	if (name && *name && joined_bytes(outer->path, name) <= PATH_BYTES_MAX &&
	    is_named(reader, address, is_old, key, name))
		owner = make(outer->globals, outer->module_name, outer->path, name);
	free(deputy__take_back(name));
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
	char *written = deputy__lend(object__text(reader, name));
	char *text = written ? object__text(reader, key) : NULL, *qualified = NULL;

	if (text && (strcmp(text, written) == 0 || (mangled && is_private(path, text, written)))) {
		qualified = xmalloc(joined_bytes(path, written));
		join(qualified, path, written);
	}
	free(text);
	free(deputy__take_back(written));
	return qualified;
}

char *function_owner__qualify(struct object_reader *reader, const struct function_owner *owner,
			      uint64_t key, uint64_t name)
{
	return qualify(reader, owner->path, key, name, true);
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

char *function_owner__name_in_class(struct object_reader *reader, uint64_t class, uint64_t key,
				    uint64_t name)
{
	char *outer = deputy__lend(class_name(reader, class));
	char *qualified = outer ? qualify(reader, outer, key, name, false) : NULL;

	free(deputy__take_back(outer));
	return qualified;
}
