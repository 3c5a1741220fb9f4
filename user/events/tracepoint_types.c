// SPDX-License-Identifier: BSD-2-Clause
/*
 * For each tracepoint BTF has a typedef btf_trace_NAME of the function that is called there.  Its
 * first argument is the tracepoint's own.  The arguments have names only in the function
 * __traceiter_NAME, of the same type.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>

#include "base/near.h"
#include "base/xalloc.h"
#include "events/tracepoint_types.h"

#define TYPEDEF_PREFIX	"btf_trace_"
#define ITERATOR_PREFIX "__traceiter_"

/* Structs within structs, and a bound for a BTF that is not sound. */
#define DEPTH_MAX 4

#define NEAR_MAX 6

struct walk_fields {
	const struct btf *btf;
	bool (*visit)(void *context, const char *path, const char *type,
		      const struct tracepoint_field *field);
	void *context;
	uint32_t argument;
	bool ended;
};

/* The type ID without typedefs and qualifiers; NULL: none. */
static const struct btf_type *plain_type(const struct btf *btf, uint32_t id)
{
	int plain = btf__resolve_type(btf, id);

	return plain < 0 ? NULL : btf__type_by_id(btf, plain);
}

/* Fills FIELD's place in the bits from START of what holds it, a number of TYPE; whether it is a
 * number.  BITS: of a bit field; 0: it is none. */
static bool place_number(const struct btf_type *type, uint32_t start, uint32_t bits,
			 struct tracepoint_field *field)
{
	bool is_signed;

	if (btf_is_int(type))
		is_signed = btf_int_encoding(type) & BTF_INT_SIGNED;
	else if (btf_is_any_enum(type))
		is_signed = btf_kflag(type);
	else
		return false;
	if (!bits)
		bits = type->size * 8;
	field->offset = start / 8;
	start %= 8;
	field->bytes = (start + bits + 7) / 8;
	if (!bits || field->bytes > sizeof(uint64_t))
		return false;
	field->left = 64 - start - bits;
	field->right = 64 - bits;
	field->is_signed = is_signed;
	return true;
}

/* The name of the type ID as C has it; the caller frees. */
static char *type_name(const struct btf *btf, uint32_t id, uint32_t bits)
{
	const struct btf_type *type = btf__type_by_id(btf, id);
	const char *name, *word;

	while (type && (btf_is_const(type) || btf_is_volatile(type)))
		type = btf__type_by_id(btf, type->type);
	name = type ? btf__name_by_offset(btf, type->name_off) : NULL;
	word = type && btf_is_any_enum(type) ? "enum " : "";
	return bits ? xasprintf("%s%s:%u", word, name ?: "", bits)
		    : xasprintf("%s%s", word, name ?: "");
}

static void visit_number(struct walk_fields *walk, const char *path, uint32_t id, uint32_t start,
			 uint32_t bits, bool is_member)
{
	struct tracepoint_field field = { .argument = walk->argument, .is_member = is_member };
	const struct btf_type *type = plain_type(walk->btf, id);
	char *name;

	if (!type || !place_number(type, start, bits, &field))
		return;
	name = type_name(walk->btf, id, bits);
	walk->ended = !walk->visit(walk->context, path, name, &field);
	free(name);
}

/* Visits the members of TYPE, a struct or union that begins at the bit START. */
static void visit_members(struct walk_fields *walk, const char *path, const struct btf_type *type,
			  uint32_t start, unsigned int depth)
{
	const struct btf_member *members = btf_members(type);

	for (uint16_t i = 0; i < btf_vlen(type) && !walk->ended && depth < DEPTH_MAX; i++) {
		const struct btf_type *inner = plain_type(walk->btf, members[i].type);
		const char *name = btf__name_by_offset(walk->btf, members[i].name_off);
		uint32_t at = start + btf_member_bit_offset(type, i);
		char *longer = name && *name ? xasprintf("%s.%s", path, name) : xstrdup(path);

		if (inner && btf_is_composite(inner))
			visit_members(walk, longer, inner, at, depth + 1);
		else if (name && *name)
			visit_number(walk, longer, members[i].type, at,
				     btf_member_bitfield_size(type, i), true);
		free(longer);
	}
}

/* The prototype of the function with the type ID, or that it points to; NULL: it is none. */
static const struct btf_type *prototype_of(const struct btf *btf, int id)
{
	const struct btf_type *type = id < 0 ? NULL : btf__type_by_id(btf, id);

	if (type && btf_is_func(type))
		type = btf__type_by_id(btf, type->type);
	else if (type && (type = plain_type(btf, id)) && btf_is_ptr(type))
		type = plain_type(btf, type->type);
	return type && btf_is_func_proto(type) ? type : NULL;
}

static const struct btf_type *find_prototype(const struct btf *btf, const char *prefix,
					     const char *name, uint32_t kind)
{
	char *whole = xasprintf("%s%s", prefix, name);
	int id = btf__find_by_name_kind(btf, whole, kind);

	free(whole);
	return prototype_of(btf, id);
}

bool tracepoint_types__have(const struct btf *btf, const char *name)
{
	return find_prototype(btf, TYPEDEF_PREFIX, name, BTF_KIND_TYPEDEF);
}

void tracepoint_types__each_field(const struct btf *btf, const char *name,
				  bool (*visit)(void *context, const char *path, const char *type,
						const struct tracepoint_field *field),
				  void *context)
{
	struct walk_fields walk = { .btf = btf, .visit = visit, .context = context };
	const struct btf_type *type = find_prototype(btf, TYPEDEF_PREFIX, name, BTF_KIND_TYPEDEF);
	const struct btf_type *named = find_prototype(btf, ITERATOR_PREFIX, name, BTF_KIND_FUNC);

	if (named && type && btf_vlen(named) == btf_vlen(type))
		type = named;
	for (uint16_t i = 1; type && i < btf_vlen(type) && !walk.ended; i++) {
		const struct btf_param *argument = &btf_params(type)[i];
		const struct btf_type *pointer = plain_type(btf, argument->type), *target;
		const char *own = btf__name_by_offset(btf, argument->name_off);
		char *path = own && *own ? xstrdup(own) : xasprintf("arg%u", i - 1);

		walk.argument = i - 1;
		target = pointer && btf_is_ptr(pointer) ? plain_type(btf, pointer->type) : NULL;
		if (target && btf_is_composite(target))
			visit_members(&walk, path, target, 0, 0);
		else
			visit_number(&walk, path, argument->type, 0, 0, false);
		free(path);
	}
}

/* What a field is looked for by, and found. */
struct sought {
	const char *path;
	struct tracepoint_field *field;
	bool found;
	unsigned int errors; /* typing errors that a name that is listed may have */
	char *names;	     /* a list */
	unsigned int count;
};

/* PATH without the argument's name. */
static const char *member_of(const char *path)
{
	const char *dot = strchr(path, '.');

	return dot ? dot + 1 : path;
}

static bool compare(void *context, const char *path, const char *type,
		    const struct tracepoint_field *field)
{
	struct sought *sought = context;
	char number[16];

	(void)type;
	snprintf(number, sizeof(number), "arg%u", field->argument);
	sought->found = strcmp(path, sought->path) == 0 ||
			strcmp(member_of(path), sought->path) == 0 ||
			(!field->is_member && strcmp(number, sought->path) == 0);
	if (sought->found)
		*sought->field = *field;
	return !sought->found;
}

static void add_name(struct sought *sought, const char *name)
{
	sought->names = xappend(sought->names ?: xstrdup(""), ", ", name);
	sought->count++;
}

static bool list_near(void *context, const char *path, const char *type,
		      const struct tracepoint_field *field)
{
	struct sought *sought = context;

	(void)type;
	(void)field;
	if (near__is(sought->path, member_of(path), sought->errors))
		add_name(sought, path);
	return sought->count < NEAR_MAX;
}

static bool list_all(void *context, const char *path, const char *type,
		     const struct tracepoint_field *field)
{
	struct sought *sought = context;

	(void)type;
	(void)field;
	if (sought->count < NEAR_MAX)
		add_name(sought, path);
	else
		sought->count++;
	return true;
}

static char *refuse_field(const struct btf *btf, const char *name, const char *path)
{
	struct sought sought = { .path = path };
	char *wrong;

	for (sought.errors = 1; sought.errors <= NEAR_ERRORS_MAX && !sought.names; sought.errors++)
		tracepoint_types__each_field(btf, name, list_near, &sought);
	if (sought.names) {
		wrong = xasprintf("%s has no field '%s': did you mean %s?", name, path,
				  sought.names);
	} else {
		tracepoint_types__each_field(btf, name, list_all, &sought);
		wrong = sought.names ? xasprintf("%s has no field '%s'; it has %s%s", name, path,
						 sought.names,
						 sought.count > NEAR_MAX ? " and more" : "")
				     : xasprintf("%s has no fields", name);
	}
	free(sought.names);
	return wrong;
}

char *tracepoint_types__find_field(const struct btf *btf, const char *name, const char *path,
				   struct tracepoint_field *field)
{
	struct sought sought = { .path = path, .field = field };

	tracepoint_types__each_field(btf, name, compare, &sought);
	return sought.found ? NULL : refuse_field(btf, name, path);
}

/* Adds the tracepoints that differ from the sought one by that many errors, or have it in them. */
static void list_tracepoints(const struct btf *btf, struct sought *sought, bool parts)
{
	size_t prefix = strlen(TYPEDEF_PREFIX);

	for (uint32_t id = 1; id < btf__type_cnt(btf) && sought->count < NEAR_MAX; id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);
		const char *name = btf__name_by_offset(btf, type->name_off);

		if (!btf_is_typedef(type) || !name || strncmp(name, TYPEDEF_PREFIX, prefix) != 0)
			continue;
		if (parts ? strstr(name + prefix, sought->path) != NULL
			  : near__is(sought->path, name + prefix, sought->errors))
			add_name(sought, name + prefix);
	}
}

char *tracepoint_types__near(const struct btf *btf, const char *name)
{
	struct sought sought = { .path = name };

	for (sought.errors = 1; sought.errors <= NEAR_ERRORS_MAX && !sought.names; sought.errors++)
		list_tracepoints(btf, &sought, false);
	if (!sought.names)
		list_tracepoints(btf, &sought, true);
	return sought.names ?: xstrdup("");
}
