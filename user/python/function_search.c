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
 * end.  In 2.7 the path by which a function was found is its name (function_owner.c), so
 * it is followed once by each path; but a class, which may contain itself, by two, for
 * these contradict each other.
 *
 * All that is read may be anything: an address that is none is not readable, a type is
 * what its flags and its name say, and there are limits to objects, to what is followed.
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
#include "python/function_owner.h"
#include "python/function_search.h"
#include "python/interpreters.h"
#include "reading/deputy.h"
#include "reading/target_memory.h"

#define MODULES_MAX (64 * 1024)
#define STACK_MAX   (1024 * 1024)
#define OBJECTS_MAX (8 * 1024 * 1024)
#define KNOWN_MAX   (256 * 1024)
#define OWNERS_MAX  (128 * 1024)
#define CELLS_MAX   16

/* By so many a class is followed. */
#define PATHS_MAX 2

/* Looked at together. */
#define BATCH 256

/* What is read of a function ends below this (3.10: 96). */
#define FUNCTION_BYTES_MAX 256

/* Of tp_flags. */
#define TYPE_IS_TYPE (1ULL << 31)

/* What an object is, by its type. */
enum kind {
	KIND_OTHER,
	KIND_CLASS,
	KIND_OLD_CLASS, /* of 2.7 */
	KIND_FUNCTION,
	KIND_WRAPPER,  /* refers to one object, */
	KIND_PROPERTY, /* or to three, right behind the head */
};

#define REFERENCES_MAX 3

static const struct {
	const char name[16];
	enum kind kind;
} kinds[] = {
	{ "function", KIND_FUNCTION },	 { "staticmethod", KIND_WRAPPER },
	{ "classmethod", KIND_WRAPPER }, { "property", KIND_PROPERTY },
	{ "classobj", KIND_OLD_CLASS },
};

/* An object, and its owner: OWNER in 2.7, the class at CLASS in later versions.  The owner has it,
 * or an object that refers to it, by the str at KEY. */
struct place {
	uint64_t address, key, class;
	const struct function_owner *owner;
};

/* A type whose kind is known, a place that was followed, or a class of 2.7. */
struct known {
	struct place place; /* key; of a type or a class, only the address */
	enum kind kind;
	uint64_t module;    /* __module__ */
	unsigned int paths; /* by which it was followed */
	UT_hash_handle hh;
};

struct function_search {
	struct object_reader reader;
	function_search__found found;
	void *context;
	struct function_search_extent extent;
	struct known *types, *followed, *classes;
	struct function_owner *owners;
	size_t owner_count;
	uint64_t *modules; /* yet to come */
	size_t module_count, module_capacity;
	struct place *stack;
	size_t stack_count, stack_capacity;
	uint64_t wrapped_key, name_key, module_key;
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

/* What TABLE has of PLACE; *ADDED where there was nothing yet.  NULL where it is full. */
static struct known *know(struct known **table, const struct place *place, bool *added)
{
	struct known *known;

	HASH_FIND(hh, *table, place, sizeof(*place), known);
	*added = !known;
	if (known || HASH_COUNT(*table) >= KNOWN_MAX)
		return known;
	known = xcalloc(1, sizeof(*known));
	known->place = *place;
	HASH_ADD(hh, *table, place, sizeof(known->place), known);
	return known;
}

static bool knows_paths(const struct function_search *search)
{
	return search->reader.offsets->function_qualname == OFFSET_ABSENT;
}

/* Whether what leads on to others was not followed before. */
static bool is_news(struct function_search *search, const struct place *place)
{
	const struct place object = { .address = place->address };
	bool added;

	if (know(&search->followed, knows_paths(search) ? place : &object, &added))
		return added;
	search->extent.cut = true;
	return false;
}

/* Keeps OWNER, which may be NULL. */
static const struct function_owner *keep(struct function_search *search,
					 struct function_owner *owner)
{
	if (!owner)
		return NULL;
	if (search->owner_count == OWNERS_MAX) {
		search->extent.cut = true;
		free(owner);
		return NULL;
	}
	search->owner_count++;
	owner->next = search->owners;
	return search->owners = owner;
}

static void push(struct function_search *search, const struct place *place)
{
	if (!place->address)
		return;
	if (search->stack_count == STACK_MAX) {
		search->extent.cut = true;
		return;
	}
	search->stack = xgrow(search->stack, &search->stack_capacity, search->stack_count + 1,
			      sizeof(*search->stack));
	search->stack[search->stack_count++] = *place;
}

/* Pushes what the object at FROM refers to. */
static void push_references(struct function_search *search, const struct place *from,
			    const uint64_t *addresses, size_t count)
{
	for (size_t i = 0; i < count; i++)
		push(search, &(struct place){ addresses[i], from->key, from->class, from->owner });
}

/* Pushes what the class at CLASS has, or OWNER, which is NULL but in 2.7. */
static void push_values(struct function_search *search, const struct dict *dict, uint64_t class,
			const struct function_owner *owner)
{
	for (size_t i = 0; i < dict->count; i++)
		push(search, &(struct place){ dict->values[i], dict->keys[i], class, owner });
}

/* Reads the kind of a type; only those that are built in are told by their name. */
static enum kind read_kind(const struct object_reader *reader, uint64_t type)
{
	char name[sizeof(kinds[0].name)] = { 0 };
	uint64_t flags, address;

	if (target_memory__read_pointer(reader->pid, type + reader->offsets->type_flags, &flags))
		return KIND_OTHER;
	if (flags & TYPE_IS_TYPE)
		return KIND_CLASS;
	if (flags & TYPE_IS_HEAP)
		return KIND_OTHER;
	address = object__type_name(reader->pid, reader->offsets, type);
	if (!address || target_memory__read(reader->pid, address, name, sizeof(name)))
		return KIND_OTHER;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(name, kinds[i].name, sizeof(name)))
			return kinds[i].kind;
	return KIND_OTHER;
}

static enum kind kind_of(struct function_search *search, uint64_t type)
{
	bool added;
	struct known *known = know(&search->types, &(struct place){ .address = type }, &added);

	if (!known)
		return KIND_OTHER;
	if (added)
		known->kind = read_kind(&search->reader, type);
	return known->kind;
}

/* Follows the COUNT references that the object at ADDRESS has from OFFSET on, for PLACE has it. */
static void follow(struct function_search *search, const struct place *place, uint64_t address,
		   uint32_t offset, size_t count)
{
	uint64_t references[CELLS_MAX];

	if (!target_memory__read(search->reader.pid, address + offset, references,
				 count * sizeof(*references)))
		push_references(search, place, references, count);
}

static uint32_t head_bytes(const struct function_search *search)
{
	return search->reader.offsets->object_type + sizeof(uint64_t);
}

/* Of 2.7: the class at PLACE; NULL where it is known that it is not to be followed there. */
static struct known *find_class(struct function_search *search, const struct place *place)
{
	struct known *class;
	bool added;

	class = know(&search->classes, &(struct place){ .address = place->address }, &added);
	if (!class)
		search->extent.cut = true;
	else if (!added &&
		 (class->paths == PATHS_MAX || class->module != place->owner->module_name))
		return NULL;
	return class;
}

/* The owner that CLASS, with DICT, is of what it has; NULL where it says that it is elsewhere. */
static const struct function_owner *enter_class(struct function_search *search,
						const struct place *place, struct known *class,
						const struct dict *dict, bool is_old)
{
	struct object_reader *reader = &search->reader;
	const struct function_owner *owner;

	class->module = dict__find(reader, dict, "__module__", &search->module_key);
	if (!class->module || class->module != place->owner->module_name || !is_news(search, place))
		return NULL;
	owner = keep(search, function_owner__within(reader, place->owner, place->key,
						    place->address, is_old));
	class->paths += owner != NULL;
	return owner;
}

static void follow_class(struct function_search *search, const struct place *place, bool is_old)
{
	const struct offsets *offsets = search->reader.offsets;
	uint32_t dict_offset = is_old ? offsets->class_dict : offsets->type_dict;
	struct known *class = place->owner ? find_class(search, place) : NULL;
	const struct function_owner *owner = NULL;
	struct dict dict;
	uint64_t own;

	if ((place->owner ? !class : !is_news(search, place)) ||
	    target_memory__read_pointer(search->reader.pid, place->address + dict_offset, &own) ||
	    dict__read(&search->reader, own, &dict))
		return;
	if (class)
		owner = enter_class(search, place, class, &dict, is_old);
	if (owner || !class) {
		search->extent.classes++;
		push_values(search, &dict, owner ? 0 : place->address, owner);
	}
	dict__free(&dict);
}

static void follow_module(struct function_search *search, uint64_t address)
{
	struct object_reader *reader = &search->reader;
	const struct function_owner *owner = NULL;
	struct dict dict;
	uint64_t name;

	search->extent.objects++;
	if (!is_news(search, &(struct place){ .address = address }) ||
	    dict__read_attributes(reader, address, &dict))
		return;
	if (knows_paths(search)) {
		name = dict__find(reader, &dict, "__name__", &search->name_key);
		owner = keep(search, function_owner__of_module(dict.address, name));
	}
	if (owner || !knows_paths(search))
		push_values(search, &dict, 0, owner);
	dict__free(&dict);
}

/* Follows the cells of the tuple at CLOSURE, which the function at PLACE has. */
static void follow_closure(struct function_search *search, const struct place *place,
			   uint64_t closure)
{
	const struct object_reader *reader = &search->reader;
	const struct offsets *offsets = reader->offsets;
	uint64_t count, cells[CELLS_MAX];

	if (target_memory__read_pointer(reader->pid, closure + offsets->varobject_size, &count) ||
	    count > CELLS_MAX ||
	    target_memory__read(reader->pid, closure + offsets->tuple_items, cells,
				count * sizeof(*cells)))
		return;
	for (size_t i = 0; i < count; i++)
		follow(search, place, cells[i], head_bytes(search), 1);
}

static void follow_function(struct function_search *search, const struct place *place,
			    const struct function_object *function)
{
	struct dict dict;
	uint64_t wrapped;

	if (function->closure)
		follow_closure(search, place, function->closure);
	if (!function->dict || dict__read(&search->reader, function->dict, &dict))
		return;
	wrapped = dict__find(&search->reader, &dict, "__wrapped__", &search->wrapped_key);
	push_references(search, place, &wrapped, 1);
	dict__free(&dict);
}

static size_t function_bytes(const struct offsets *offsets)
{
	uint32_t fields[] = { offsets->object_type,	offsets->function_code,
			      offsets->function_name,	offsets->function_qualname,
			      offsets->function_dict,	offsets->function_closure,
			      offsets->function_globals };

	return object__bytes(fields, sizeof(fields) / sizeof(fields[0]));
}

static struct function_object parse_function(const struct offsets *offsets,
					     const struct place *place, const uint8_t *bytes)
{
	return (struct function_object){
		.address = place->address,
		.code = object__word(bytes, offsets->function_code),
		.name = object__word(bytes, offsets->function_name),
		.qualified_name = object__word(bytes, offsets->function_qualname),
		.dict = object__word(bytes, offsets->function_dict),
		.closure = object__word(bytes, offsets->function_closure),
		.globals = object__word(bytes, offsets->function_globals),
		.key = place->key,
		.class = place->class,
		.owner = place->owner,
	};
}

static void look_at_functions(struct function_search *search, const struct place *places,
			      size_t count)
{
	const struct offsets *offsets = search->reader.offsets;
	size_t size = function_bytes(offsets);
	uint8_t *objects = deputy__lend(xcalloc(count, size));
	uint64_t addresses[BATCH] = { 0 };
	bool readable[BATCH];

	for (size_t i = 0; i < count; i++)
		addresses[i] = places[i].address;
	target_memory__read_each(search->reader.pid, addresses, count, objects, size, readable);
	for (size_t i = 0; i < count; i++) {
		struct function_object function =
			parse_function(offsets, &places[i], objects + i * size);

		if (!readable[i])
			continue;
		search->found(search->context, &search->reader, &function);
		if ((function.closure || function.dict) && is_news(search, &places[i]))
			follow_function(search, &places[i], &function);
	}
	free(deputy__take_back(objects));
}

/* Looks at an object that is no function. */
static void look_at_other(struct function_search *search, const struct place *place, enum kind kind)
{
	if (kind == KIND_CLASS || (kind == KIND_OLD_CLASS && place->owner))
		follow_class(search, place, kind == KIND_OLD_CLASS);
	else if ((kind == KIND_WRAPPER || kind == KIND_PROPERTY) && is_news(search, place))
		follow(search, place, place->address, head_bytes(search),
		       kind == KIND_PROPERTY ? REFERENCES_MAX : 1);
}

/* Looks at COUNT objects, at most BATCH. */
static void look_at(struct function_search *search, const struct place *places, size_t count)
{
	const struct object_reader *reader = &search->reader;
	uint64_t addresses[BATCH] = { 0 }, types[BATCH];
	struct place functions[BATCH];
	size_t function_count = 0;
	bool readable[BATCH];

	for (size_t i = 0; i < count; i++)
		addresses[i] = places[i].address + reader->offsets->object_type;
	target_memory__read_each(reader->pid, addresses, count, types, sizeof(*types), readable);
	for (size_t i = 0; i < count; i++) {
		enum kind kind = readable[i] ? kind_of(search, types[i]) : KIND_OTHER;

		/* Each class may have many attributes: the others wait for the next step. */
		if ((kind == KIND_CLASS || kind == KIND_OLD_CLASS) && i &&
		    now_ns() > search->end_ns) {
			for (; i < count; i++)
				push(search, &places[i]);
			break;
		}
		search->extent.objects++;
		if (kind == KIND_FUNCTION)
			functions[function_count++] = places[i];
		else
			look_at_other(search, &places[i], kind);
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
	struct function_owner *owner, *next;

	if (!search)
		return;
	forget(&search->types);
	forget(&search->followed);
	forget(&search->classes);
	for (owner = search->owners; owner; owner = next) {
		next = owner->next;
		free(owner);
	}
	free(search->modules);
	free(search->stack);
	free(search);
}

/* Looks at what is uppermost on the stack. */
static void look_at_some(struct function_search *search)
{
	size_t count = search->stack_count < BATCH ? search->stack_count : BATCH;
	struct place places[BATCH];

	search->stack_count -= count;
	memcpy(places, search->stack + search->stack_count, count * sizeof(*places));
	look_at(search, places, count);
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
	now = parse_function(offsets, &(struct place){ .address = function->address }, bytes);
	return now.code == function->code && now.name == function->name &&
	       now.qualified_name == function->qualified_name && now.dict == function->dict &&
	       now.globals == function->globals;
}

char *function_search__qualified_name(struct object_reader *reader,
				      const struct function_object *function)
{
	if (!function->owner)
		return object__text(reader, function->qualified_name);
	return function->globals == function->owner->globals
		       ? function_owner__qualify(reader, function->owner, function->key,
						 function->name)
		       : NULL;
}
