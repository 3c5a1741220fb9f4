// SPDX-License-Identifier: BSD-2-Clause
/*
 * libiberty parses names of the Itanium C++ ABI.  Its printer is not fit for hostile names: it
 * makes 27 MB of one of 200 bytes, and never ends on some others.  So the tree that it parses is
 * printed here.
 *
 * Only scopes are shown: "std::vector::push_back".  As in pprof, parameters and the arguments of
 * templates are left out.  A name with an unknown part stays mangled.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/xalloc.h"
#include "unwind/symbols.h"

/* A name may refer to the same part again and again. */
#define PARTS_MAX 16384
#define DEPTH_MAX 1024

/* In the type of a conversion operator, the parser reads what follows a parameter twice. */
#define CONVERSION    "cv"
#define READ_TWICE    "_I"
#define DOUBLINGS_MAX 8

#define RUST_HASH_BYTES 17

/* A text that is cut at a bound. */
struct output {
	char text[SYMBOLS_NAME_BYTES_MAX + 1];
	size_t length;
	int parts, depth;
	bool failed;
};

static void put(struct output *output, const char *text, size_t length)
{
	size_t room = sizeof(output->text) - output->length;

	if (length > room)
		length = room;
	memcpy(output->text + output->length, text, length);
	output->length += length;
}

/* How a component with one or two others is shown: the first, SEPARATOR, the second.  Without a
 * separator the second is left out. */
struct form {
	const char *before, *separator, *after;
	bool is_known, is_right; /* only the second is shown */
};

static const struct form forms[] = {
#define FORM(type, ...) [DEMANGLE_COMPONENT_##type] = { .is_known = true, __VA_ARGS__ }
	FORM(QUAL_NAME, .separator = "::"),
	FORM(LOCAL_NAME, .separator = "::"),
	FORM(UNARY, .separator = "::"), /* of a literal: operator""::_km */
	FORM(TYPED_NAME),
	FORM(TEMPLATE),
	FORM(TAGGED_NAME),
	FORM(RESTRICT_THIS),
	FORM(VOLATILE_THIS),
	FORM(CONST_THIS),
	FORM(REFERENCE_THIS),
	FORM(RVALUE_REFERENCE_THIS),
	FORM(THUNK, .before = "thunk to "),
	FORM(VIRTUAL_THUNK, .before = "thunk to "),
	FORM(COVARIANT_THUNK, .before = "thunk to "),
	/* The types of conversion operators. */
	FORM(CONVERSION, .before = "operator "),
	FORM(VENDOR_TYPE),
	FORM(RESTRICT),
	FORM(VOLATILE),
	FORM(CONST, .after = " const"),
	FORM(POINTER, .after = "*"),
	FORM(REFERENCE, .after = "&"),
	FORM(RVALUE_REFERENCE, .after = "&&"),
	FORM(ARRAY_TYPE, .is_right = true, .after = "[]"),
	FORM(VECTOR_TYPE, .is_right = true, .after = "[]"),
	FORM(PTRMEM_TYPE, .is_right = true, .after = "*"),
#undef FORM
};

static void put_string(struct output *output, const char *text)
{
	put(output, text ? text : "", text ? strlen(text) : 0);
}

static void put_numbered(struct output *output, const char *what, long number)
{
	char text[48];
	int length = snprintf(text, sizeof(text), "{%s#%ld}", what, number + 1);

	put(output, text, length);
}

/* Takes what the library prints; its name of operator"" has the first word already. */
static void put_printed(const char *text, size_t length, void *output)
{
	static const char twice[] = "operator operator";
	size_t first = strncmp(text, twice, strlen(twice)) == 0 ? strlen("operator ") : 0;

	put(output, text + first, length - first);
}

static void put_part(struct output *output, struct demangle_component *part);

static void put_form(struct output *output, const struct form *form,
		     const struct demangle_component *part)
{
	put_string(output, form->before);
	if (!form->is_right)
		put_part(output, part->u.s_binary.left);
	put_string(output, form->separator);
	if (form->is_right || form->separator)
		put_part(output, part->u.s_binary.right);
	put_string(output, form->after);
}

/* Shows a part that is not in `forms`. */
static void put_leaf(struct output *output, struct demangle_component *part)
{
	const char *text = part->u.s_string.string;

	switch (part->type) {
	case DEMANGLE_COMPONENT_NAME:
		put(output, part->u.s_name.s, part->u.s_name.len);
		break;
	case DEMANGLE_COMPONENT_SUB_STD: /* with arguments if it is a template */
		put(output, text, strcspn(text, "<"));
		break;
	case DEMANGLE_COMPONENT_DTOR:
		put_string(output, "~");
		put_part(output, part->u.s_dtor.name);
		break;
	case DEMANGLE_COMPONENT_CTOR:
		put_part(output, part->u.s_ctor.name);
		break;
	case DEMANGLE_COMPONENT_LAMBDA:
		put_numbered(output, "lambda", part->u.s_unary_num.num);
		break;
	case DEMANGLE_COMPONENT_UNNAMED_TYPE:
		put_numbered(output, "unnamed type", part->u.s_number.number);
		break;
	case DEMANGLE_COMPONENT_DEFAULT_ARG:
		put_part(output, part->u.s_unary_num.sub);
		break;
	case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
		put_string(output, "T");
		break;
	case DEMANGLE_COMPONENT_FUNCTION_TYPE:
		put_string(output, "function");
		break;
	case DEMANGLE_COMPONENT_DECLTYPE:
		put_string(output, "decltype");
		break;
	case DEMANGLE_COMPONENT_OPERATOR:
	case DEMANGLE_COMPONENT_BUILTIN_TYPE:
		cplus_demangle_print_callback(DMGL_NO_OPTS, part, put_printed, output);
		break;
	default:
		output->failed = true;
	}
}

static void put_part(struct output *output, struct demangle_component *part)
{
	if (!part || ++output->parts > PARTS_MAX || output->depth == DEPTH_MAX)
		output->failed = true;
	if (output->failed)
		return;
	output->depth++;
	if (part->type < sizeof(forms) / sizeof(forms[0]) && forms[part->type].is_known)
		put_form(output, &forms[part->type], part);
	else
		put_leaf(output, part);
	output->depth--;
}

/* Whether PART is the hash that Rust appends. */
static bool is_rust_hash(const struct demangle_component *part)
{
	return part->type == DEMANGLE_COMPONENT_NAME && part->u.s_name.len == RUST_HASH_BYTES &&
	       part->u.s_name.s[0] == 'h' &&
	       strspn(part->u.s_name.s + 1, "0123456789abcdef") >= RUST_HASH_BYTES - 1;
}

/* The length of the longest beginning of TEXT that has at most SYMBOLS_NAME_BYTES_MAX bytes and
 * splits no character. */
static size_t cut_length(const char *text, size_t length)
{
	size_t cut = SYMBOLS_NAME_BYTES_MAX;

	if (length <= cut)
		return length;
	for (int i = 0; i < 3 && (text[cut] & 0xc0) == 0x80; i++)
		cut--;
	return cut;
}

/* Whether the parser would take long for NAME: each of these may double its time. */
static bool is_slow(const char *name)
{
	int doublings = 0;

	for (const char *at = strstr(name, CONVERSION); at && (at = strstr(at, READ_TWICE)); at++)
		doublings++;
	return doublings > DOUBLINGS_MAX;
}

/* The readable form of NAME; NULL if a part of it is unknown. */
static char *demangle(const char *name)
{
	struct output output = { .length = 0 };
	struct demangle_component *part;
	void *memory;

	if (is_slow(name))
		return NULL;
	part = cplus_demangle_v3_components(name, DMGL_VERBOSE, &memory);
	if (!part)
		return NULL;
	if (part->type == DEMANGLE_COMPONENT_QUAL_NAME && is_rust_hash(part->u.s_binary.right))
		part = part->u.s_binary.left;
	put_part(&output, part);
	free(memory);
	return output.failed ? NULL : xstrndup(output.text, cut_length(output.text, output.length));
}

char *symbols__demangle(const char *name)
{
	size_t length = symbols__base_length(name);
	char *base = xstrndup(name, length), *text = NULL;

	if (strncmp(base, "_Z", 2) == 0 && length <= SYMBOLS_NAME_BYTES_MAX)
		text = demangle(base);
	if (!text)
		text = xstrndup(base, cut_length(base, length));
	free(base);
	return text;
}
