// SPDX-License-Identifier: BSD-2-Clause
/*
 * Mangled names of the Itanium C++ ABI, read in one pass.  libstdc++'s demangler is not fit for
 * hostile names: it makes 27 MB of one of 200 bytes, and never ends on some others.
 *
 * Only scopes are shown: "std::vector::push_back".  As in pprof, parameters and the arguments of
 * templates are left out.  The arguments are still read, because later parts of a name refer back
 * to them by number.  A name with an unknown part stays mangled.
 *
 * Each name and type is a node that points to its scope, so text is only copied at the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "unwind/mangled.h"
#include "unwind/symbols.h"

#define RUST_HASH_BYTES 17

/* Whether NODE is the hash that Rust appends. */
static bool is_rust_hash(const struct mangled_node *node)
{
	static const char digits[] = "0123456789abcdef";

	return node->length == RUST_HASH_BYTES && node->text[0] == 'h' &&
	       node->scope != MANGLED_NONE && strspn(node->text + 1, digits) >= RUST_HASH_BYTES - 1;
}

/* A text that is cut at a bound. */
struct output {
	char text[SYMBOLS_NAME_BYTES_MAX + 1];
	size_t length;
};

static void put(struct output *output, const char *text, size_t length)
{
	size_t room = sizeof(output->text) - output->length;

	if (length > room)
		length = room;
	memcpy(output->text + output->length, text, length);
	output->length += length;
}

static void put_node(struct output *output, const struct mangled_node *node)
{
	char number[16];

	if (node->scope != MANGLED_NONE && !node->joined)
		put(output, "::", 2);
	put(output, node->text, node->length);
	if (node->number)
		put(output, number, snprintf(number, sizeof(number), "%d}", node->number));
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

/* PREFIX, and NODE behind its scopes.  Overwrites the list of earlier nodes. */
static char *format(struct mangled *in, const char *prefix, int node)
{
	struct output output = { .length = 0 };
	int count = 0;

	put(&output, prefix, strlen(prefix));
	for (; node != MANGLED_NONE; node = in->nodes[node].scope)
		in->earlier[count++] = node;
	while (count)
		put_node(&output, &in->nodes[in->earlier[--count]]);
	return xstrndup(output.text, cut_length(output.text, output.length));
}

/* The readable form of the LENGTH bytes at NAME; NULL if a part of them is unknown. */
static char *demangle(const char *name, int length)
{
	struct mangled in = { .next = name + 2, .end = name + length, .most = 2 * length };
	char *text = NULL;
	int node;

	in.nodes = xreallocarray(NULL, in.most, sizeof(*in.nodes));
	in.earlier = xreallocarray(NULL, in.most, sizeof(*in.earlier));
	node = mangled__read(&in);
	if (node != MANGLED_NONE) {
		if (is_rust_hash(&in.nodes[node]))
			node = in.nodes[node].scope;
		text = format(&in, name[2] == 'T' ? "thunk to " : "", node);
	}
	free(in.earlier);
	free(in.nodes);
	return text;
}

char *symbols__demangle(const char *name)
{
	size_t length = symbols__base_length(name);
	char *text = NULL;

	if (strncmp(name, "_Z", 2) == 0 && length <= SYMBOLS_NAME_BYTES_MAX)
		text = demangle(name, length);
	return text ? text : xstrndup(name, cut_length(name, length));
}
