// SPDX-License-Identifier: BSD-2-Clause
/*
 * A function is reached from its interpreter's modules:
 *
 *	modules -> module -> function
 *	                  -> class -> function, class, ...
 *
 * where what a class has may be in a staticmethod, a classmethod or a property, and
 * what was decorated in the __wrapped__ or in a cell of what took its place.
 *
 * What is to be looked at lies on a stack of addresses, and as many as one system
 * call takes are looked at together.  What leads on is followed once, so that cycles
 * end.  All that is read may be anything: an address that is none is not readable, a
 * type is what its flags and its name say, and there are limits to objects, to what
 * is followed.
 *
 * A search of many modules takes long, and its user has other things to do.  So it goes
 * on from the stack for a while at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "python/dict.h"
#include "python/function_search.h"
#include "python/interpreters.h"
#include "target/deputy.h"
#include "target/target_memory.h"

#define MODULES_MAX (64 * 1024)
#define STACK_MAX   (1024 * 1024)
#define OBJECTS_MAX (8 * 1024 * 1024)
#define KNOWN_MAX   (256 * 1024)
#define CELLS_MAX   16

/* Looked at together. */
#define BATCH 256

/* What is read of a function ends below this (3.10: 96). */
#define FUNCTION_BYTES_MAX 256

/* Of tp_flags. */
#define TYPE_IS_HEAP (1ULL << 9)
#define TYPE_IS_TYPE (1ULL << 31)

/* What an object is, by its type. */
enum kind {
	KIND_OTHER,
	KIND_CLASS,
	KIND_FUNCTION,
	KIND_WRAPPER,  /* refers to one object, */
	KIND_PROPERTY, /* or to three, right behind the head */
};

#define REFERENCES_MAX 3

static const struct {
	const char name[16];
	enum kind kind;
} kinds[] = {
	{ "function", KIND_FUNCTION },
	{ "staticmethod", KIND_WRAPPER },
	{ "classmethod", KIND_WRAPPER },
	{ "property", KIND_PROPERTY },
};

/* A type whose kind is known, or an object that was followed. */
struct known {
	uint64_t address; /* key */
	enum kind kind;
	UT_hash_handle hh;
};

struct function_search {
	struct object_reader reader;
	function_search__found found;
	void *context;
	struct function_search_extent extent;
	struct known *types, *followed;
	uint64_t *modules; /* yet to come */
	size_t module_count, module_capacity;
	uint64_t *stack;
	size_t stack_count, stack_capacity;
	uint64_t wrapped_key;
	int64_t end_ns; /* of this step */
};

static void forget(struct known **table)
{
	struct known *known = *table, *next;

	HASH_CLEAR(hh, *table);
	for (; known; known = next) {
		next = known->hh.next;
		free(known);
	}
}

/* What TABLE has of ADDRESS; *ADDED where there was nothing yet.  NULL where it is full. */
static struct known *know(struct known **table, uint64_t address, bool *added)
{
	struct known *known;

	HASH_FIND(hh, *table, &address, sizeof(address), known);
	*added = !known;
	if (known || HASH_COUNT(*table) >= KNOWN_MAX)
		return known;
	known = xcalloc(1, sizeof(*known));
	known->address = address;
	HASH_ADD(hh, *table, address, sizeof(known->address), known);
	return known;
}

/* Whether the object at ADDRESS leads on to others, and was not followed before. */
static bool is_news(struct function_search *search, uint64_t address)
{
	bool added;

	if (know(&search->followed, address, &added))
		return added;
	search->extent.cut = true;
	return false;
}

static void push(struct function_search *search, const uint64_t *addresses, size_t count)
{
	if (search->stack_count + count > STACK_MAX) {
		search->extent.cut = true;
		return;
	}
	search->stack = xgrow(search->stack, &search->stack_capacity, search->stack_count + count,
			      sizeof(*search->stack));
	for (size_t i = 0; i < count; i++)
		if (addresses[i])
			search->stack[search->stack_count++] = addresses[i];
}

static void push_values(struct function_search *search, struct dict *dict)
{
	push(search, dict->values, dict->count);
	dict__free(dict);
}

/* Reads the kind of a type; only those that are built in are told by their name. */
static enum kind read_kind(const struct object_reader *reader, uint64_t type)
{
	/* The name is the first field behind the head, which has a size in it. */
	uint32_t name_offset = reader->offsets->varobject_size + sizeof(uint64_t);
	char name[sizeof(kinds[0].name)] = { 0 };
	uint64_t flags, address;

	if (target_memory__read_pointer(reader->pid, type + reader->offsets->type_flags, &flags))
		return KIND_OTHER;
	if (flags & TYPE_IS_TYPE)
		return KIND_CLASS;
	if (flags & TYPE_IS_HEAP ||
	    target_memory__read_pointer(reader->pid, type + name_offset, &address) ||
	    target_memory__read(reader->pid, address, name, sizeof(name)))
		return KIND_OTHER;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(name, kinds[i].name, sizeof(name)))
			return kinds[i].kind;
	return KIND_OTHER;
}

static enum kind kind_of(struct function_search *search, uint64_t type)
{
	bool added;
	struct known *known = know(&search->types, type, &added);

	if (!known)
		return KIND_OTHER;
	if (added)
		known->kind = read_kind(&search->reader, type);
	return known->kind;
}

/* Follows the COUNT references that the object at ADDRESS has from OFFSET on. */
static void follow(struct function_search *search, uint64_t address, uint32_t offset, size_t count)
{
	uint64_t references[CELLS_MAX];

	if (!target_memory__read(search->reader.pid, address + offset, references,
				 count * sizeof(*references)))
		push(search, references, count);
}

static uint32_t head_bytes(const struct function_search *search)
{
	return search->reader.offsets->object_type + sizeof(uint64_t);
}

static void follow_class(struct function_search *search, uint64_t address)
{
	const struct object_reader *reader = &search->reader;
	struct dict dict;
	uint64_t own;

	search->extent.classes++;
	if (!target_memory__read_pointer(reader->pid, address + reader->offsets->type_dict, &own) &&
	    !dict__read(&search->reader, own, &dict))
		push_values(search, &dict);
}

static void follow_module(struct function_search *search, uint64_t address)
{
	struct dict dict;

	search->extent.objects++;
	if (!is_news(search, address))
		return;
	if (!dict__read_attributes(&search->reader, address, &dict))
		push_values(search, &dict);
}

/* Follows the cells of the tuple at CLOSURE. */
static void follow_closure(struct function_search *search, uint64_t closure)
{
	const struct object_reader *reader = &search->reader;
	uint32_t size_offset = reader->offsets->varobject_size;
	uint64_t count, cells[CELLS_MAX];

	if (target_memory__read_pointer(reader->pid, closure + size_offset, &count) ||
	    count > CELLS_MAX ||
	    target_memory__read(reader->pid, closure + size_offset + sizeof(count), cells,
				count * sizeof(*cells)))
		return;
	for (size_t i = 0; i < count; i++)
		follow(search, cells[i], head_bytes(search), 1);
}

static void follow_function(struct function_search *search, const struct function_object *function)
{
	struct dict dict;
	uint64_t wrapped;

	if (function->closure)
		follow_closure(search, function->closure);
	if (!function->dict || dict__read(&search->reader, function->dict, &dict))
		return;
	wrapped = dict__find(&search->reader, &dict, "__wrapped__", &search->wrapped_key);
	push(search, &wrapped, 1);
	dict__free(&dict);
}

static size_t function_bytes(const struct offsets *offsets)
{
	uint32_t fields[] = { offsets->object_type,   offsets->function_code,
			      offsets->function_name, offsets->function_qualname,
			      offsets->function_dict, offsets->function_closure };
	size_t bytes = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i] + sizeof(uint64_t) > bytes)
			bytes = fields[i] + sizeof(uint64_t);
	return bytes;
}

static uint64_t word_at(const uint8_t *bytes, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

static struct function_object parse_function(const struct offsets *offsets, uint64_t address,
					     const uint8_t *bytes)
{
	return (struct function_object){
		.address = address,
		.code = word_at(bytes, offsets->function_code),
		.name = word_at(bytes, offsets->function_name),
		.qualified_name = word_at(bytes, offsets->function_qualname),
		.dict = word_at(bytes, offsets->function_dict),
		.closure = word_at(bytes, offsets->function_closure),
	};
}

static void look_at_functions(struct function_search *search, const uint64_t *addresses,
			      size_t count)
{
	const struct offsets *offsets = search->reader.offsets;
	size_t size = function_bytes(offsets);
	uint8_t *objects = deputy__lend(xcalloc(count, size));
	bool readable[BATCH];

	target_memory__read_each(search->reader.pid, addresses, count, objects, size, readable);
	for (size_t i = 0; i < count; i++) {
		struct function_object function =
			parse_function(offsets, addresses[i], objects + i * size);

		if (!readable[i])
			continue;
		search->found(search->context, &search->reader, &function);
		if ((function.closure || function.dict) && is_news(search, addresses[i]))
			follow_function(search, &function);
	}
	free(deputy__take_back(objects));
}

/* Looks at COUNT objects, at most BATCH. */
static void look_at(struct function_search *search, const uint64_t *addresses, size_t count)
{
	const struct object_reader *reader = &search->reader;
	uint64_t places[BATCH] = { 0 }, types[BATCH], functions[BATCH];
	size_t function_count = 0;
	bool readable[BATCH];

	for (size_t i = 0; i < count; i++)
		places[i] = addresses[i] + reader->offsets->object_type;
	target_memory__read_each(reader->pid, places, count, types, sizeof(*types), readable);
	for (size_t i = 0; i < count; i++) {
		enum kind kind = readable[i] ? kind_of(search, types[i]) : KIND_OTHER;

		/* Each class may have many attributes: the others wait for the next step. */
		if (kind == KIND_CLASS && i && now_ns() > search->end_ns) {
			push(search, addresses + i, count - i);
			break;
		}
		search->extent.objects++;
		if (kind == KIND_FUNCTION)
			functions[function_count++] = addresses[i];
		else if (kind == KIND_OTHER || !is_news(search, addresses[i]))
			continue;
		else if (kind == KIND_CLASS)
			follow_class(search, addresses[i]);
		else
			follow(search, addresses[i], head_bytes(search),
			       kind == KIND_PROPERTY ? REFERENCES_MAX : 1);
	}
	look_at_functions(search, functions, function_count);
}

static void add_modules(struct function_search *search, uint64_t interpreter)
{
	struct object_reader *reader = &search->reader;
	struct dict modules;
	uint64_t address;

	if (target_memory__read_pointer(reader->pid, interpreter + reader->offsets->interp_modules,
					&address) ||
	    dict__read(reader, address, &modules))
		return;
	if (search->module_count + modules.count > MODULES_MAX) {
		search->extent.cut = true;
		modules.count = 0;
	}
	search->modules = xgrow(search->modules, &search->module_capacity,
				search->module_count + modules.count, sizeof(*search->modules));
	for (size_t i = 0; i < modules.count; i++)
		search->modules[search->module_count++] = modules.values[i];
	dict__free(&modules);
}

struct function_search *function_search__new(pid_t pid, const struct offsets *offsets,
					     uint64_t interpreters, function_search__found found,
					     void *context)
{
	struct function_search *search = xcalloc(1, sizeof(*search));
	struct interpreters all;

	search->found = found;
	search->context = context;
	object_reader__init(&search->reader, pid, offsets);
	interpreters__read(pid, offsets, interpreters, &all);
	search->extent.cut = all.cut;
	for (size_t i = 0; i < all.count && !search->extent.cut; i++)
		add_modules(search, all.addresses[i]);
	return search;
}

void function_search__free(struct function_search *search)
{
	if (!search)
		return;
	forget(&search->types);
	forget(&search->followed);
	free(search->modules);
	free(search->stack);
	free(search);
}

/* Looks at what is uppermost on the stack. */
static void look_at_some(struct function_search *search)
{
	size_t count = search->stack_count < BATCH ? search->stack_count : BATCH;
	uint64_t addresses[BATCH];

	search->stack_count -= count;
	memcpy(addresses, search->stack + search->stack_count, count * sizeof(*addresses));
	look_at(search, addresses, count);
}

bool function_search__go_on(struct function_search *search, int64_t *left_ns)
{
	int64_t start_ns = now_ns(), passed_ns = 0;

	search->end_ns = start_ns + *left_ns;
	while ((search->stack_count || search->module_count) && passed_ns < *left_ns) {
		if (search->extent.objects > OBJECTS_MAX) {
			search->extent.cut = true;
			search->stack_count = search->module_count = 0;
		} else if (search->stack_count) {
			look_at_some(search);
		} else {
			follow_module(search, search->modules[--search->module_count]);
		}
		passed_ns = now_ns() - start_ns;
	}
	search->extent.duration_ns += passed_ns;
	*left_ns -= passed_ns;
	return !search->stack_count && !search->module_count;
}

const struct function_search_extent *function_search__extent(const struct function_search *search)
{
	return &search->extent;
}

bool function_search__is_same(const struct object_reader *reader,
			      const struct function_object *function)
{
	const struct offsets *offsets = reader->offsets;
	uint8_t bytes[FUNCTION_BYTES_MAX];
	struct function_object now;

	if (target_memory__read(reader->pid, function->address, bytes, function_bytes(offsets)))
		return false;
	now = parse_function(offsets, function->address, bytes);
	return now.code == function->code && now.name == function->name &&
	       now.qualified_name == function->qualified_name && now.dict == function->dict;
}
