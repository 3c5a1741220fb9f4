// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions are reached from the modules of their interpreter:
 *
 * 	modules -> module -> function
 * 	                  -> class -> function, class, ...
 *
 * A class may refer to a function through a staticmethod, a classmethod or a property.
 * A decorated function is in the __wrapped__ or in a cell of the function that replaced
 * it.
 *
 * Objects to be looked at wait on a stack of addresses.  As many as one system call can
 * read are looked at together.  An object that refers to others is followed once, so
 * that cycles end.  In 2.7 the path to a function is its name (function_object.c), so an
 * object is followed once for each path.  A class may contain itself: it is followed by
 * two paths at most, as two paths contradict each other anyway.
 *
 * Everything that is read may be forged.  An invalid address is not readable, a type is
 * what its flags and its name say, and the numbers of objects are limited.
 *
 * A search of many modules takes long, and stacks wait meanwhile.  So it works in steps,
 * and continues from the stack.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "python/dict.h"
#include "python/function_search.h"
#include "python/interpreters.h"
#include "reading/reader.h"
#include "reading/target_memory.h"

#define MODULES_MAX (64 * 1024)
#define STACK_MAX   (1024 * 1024)
#define OBJECTS_MAX (8 * 1024 * 1024)
#define KNOWN_MAX   (256 * 1024)
#define OWNERS_MAX  (128 * 1024)
#define CELLS_MAX   16

/* Paths by which a class is followed. */
#define PATHS_MAX 2

/* Objects that are looked at together. */
#define BATCH 256

/* A bit of tp_flags. */
#define TYPE_IS_TYPE (1ULL << 31)

/* The kind of an object, by its type. */
enum kind {
	KIND_OTHER,
	KIND_CLASS,
	KIND_OLD_CLASS, /* 2.7 */
	KIND_FUNCTION,
	KIND_WRAPPER,  /* refers to one object right behind its head */
	KIND_PROPERTY, /* refers to three objects */
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

/* An object and its owner: in 2.7 OWNER, in later versions the class at CLASS.  The owner refers to
 * the object, or to one that wraps it, by the str at KEY. */
struct place {
	uint64_t address, key, class;
	const struct function_owner *owner;
};

/* A type whose kind is known, a place that was followed, or a class of 2.7. */
struct known {
	struct place place; /* the hash key; for types and classes only its address is set */
	enum kind kind;
	uint64_t module;    /* __module__ */
	unsigned int paths; /* by which the class was followed */
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
	uint64_t *modules; /* not yet followed */
	size_t module_count, module_capacity;
	struct place *stack;
	size_t stack_count, stack_capacity;
	uint64_t wrapped_key, name_key, module_key;
	int64_t end_ns; /* of the current step */
};

/* The entry of PLACE in TABLE; *ADDED: it is new.  NULL if the table is full. */
static struct known *know(struct known **table, const struct place *place, bool *added)
{
	struct known *known = HASH_GET(hh, *table, place);

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

/* Whether PLACE, which refers to other objects, was not followed before. */
static bool is_news(struct function_search *search, const struct place *place)
{
	const struct place object = { .address = place->address };
	bool added;

	if (know(&search->followed, knows_paths(search) ? place : &object, &added))
		return added;
	search->extent.cut = true;
	return false;
}

/* Adds OWNER, which may be NULL, to the search's list. */
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

/* Pushes the objects at ADDRESSES, which FROM refers to. */
static void push_references(struct function_search *search, const struct place *from,
			    const uint64_t *addresses, size_t count)
{
	for (size_t i = 0; i < count; i++)
		push(search, &(struct place){ addresses[i], from->key, from->class, from->owner });
}

/* Pushes the values of DICT, which belongs to the class at CLASS or, in 2.7, to OWNER. */
static void push_values(struct function_search *search, const struct dict *dict, uint64_t class,
			const struct function_owner *owner)
{
	for (size_t i = 0; i < dict->count; i++)
		push(search, &(struct place){ dict->values[i], dict->keys[i], class, owner });
}

/* Reads the kind of the type at TYPE.  Only built-in types are recognized by name. */
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

/* Pushes the COUNT objects that the words from OFFSET on of the object at ADDRESS refer to. */
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

/* 2.7: the entry of the class at PLACE; NULL if the class is known not to be followed there. */
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

/* The owner that CLASS, with DICT, is for its functions; NULL if it belongs to another path. */
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

/* Follows the cells of the tuple at CLOSURE, for the function at PLACE. */
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

static void look_at_functions(struct function_search *search, const struct place *places,
			      size_t count)
{
	const struct offsets *offsets = search->reader.offsets;
	size_t size = function_object__bytes(offsets);
	uint8_t *objects = reader__lend(xcalloc(count, size));
	uint64_t addresses[BATCH] = { 0 };
	bool readable[BATCH];

	for (size_t i = 0; i < count; i++)
		addresses[i] = places[i].address;
	target_memory__read_each(search->reader.pid, addresses, count, objects, size, readable);
	for (size_t i = 0; i < count; i++) {
		struct function_object function =
			function_object__parse(offsets, objects + i * size);

		if (!readable[i])
			continue;
		function.address = places[i].address;
		function.key = places[i].key;
		function.class = places[i].class;
		function.owner = places[i].owner;
		search->found(search->context, &search->reader, &function);
		if ((function.closure || function.dict) && is_news(search, &places[i]))
			follow_function(search, &places[i], &function);
	}
	free(reader__take_back(objects));
}

/* Follows an object that is not a function. */
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

		/* Each class may have many attributes.  When the time is up, the rest waits for the
		 * next step. */
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
	HASH_EMPTY(search->types, free);
	HASH_EMPTY(search->followed, free);
	HASH_EMPTY(search->classes, free);
	for (owner = search->owners; owner; owner = next) {
		next = owner->next;
		free(owner);
	}
	free(search->modules);
	free(search->stack);
	free(search);
}

/* Looks at the top of the stack. */
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
