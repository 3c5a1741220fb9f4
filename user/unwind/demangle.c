// SPDX-License-Identifier: BSD-2-Clause
/*
 * Mangled names of the Itanium C++ ABI, read in one pass.  libstdc++'s demangler is not fit
 * for hostile names: it makes 27 MB of one of 200 bytes, and loops for ever on some others.
 *
 * Only scopes are shown: "std::vector::push_back".  Parameters and the arguments of templates are
 * left out, as pprof does, but the arguments must be read: later parts of a name refer back to them
 * by number.  A name with anything unknown in it stays mangled.
 *
 * Each name and type is a node that points to its scope, so no text is copied before the end.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "unwind/mangled.h"
#include "unwind/symbols.h"

#define RUST_HASH_BYTES 17

/* After 'T': by how much a thunk moves "this", and perhaps the result. */
static void read_thunk(struct mangled *in)
{
	int count = mangled__take(in, 'c') ? 2 : 1;

	while (count--) {
		int offsets = mangled__peek(in) == 'v' ? 2 : 1;

		if (!mangled__take(in, 'v'))
			mangled__expect(in, 'h');
		while (offsets--) {
			mangled__take(in, 'n');
			mangled__skip_digits(in);
			mangled__expect(in, '_');
		}
	}
}

/* Whether NODE is the hash that Rust adds. */
static bool is_rust_hash(const struct mangled_node *node)
{
	if (node->length != RUST_HASH_BYTES || node->text[0] != 'h' || node->scope == MANGLED_NONE)
		return false;
	for (int i = 1; i < RUST_HASH_BYTES; i++)
		if (!isdigit((unsigned char)node->text[i]) &&
		    (node->text[i] < 'a' || node->text[i] > 'f'))
			return false;
	return true;
}

/* A text that grows up to a bound. */
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
	if (node->scope != MANGLED_NONE && !node->joined)
		put(output, "::", 2);
	put(output, node->text, node->length);
	if (node->number) {
		char number[16];
		int length = snprintf(number, sizeof(number), "%d}", node->number);

		put(output, number, length);
	}
}

/* The length of TEXT's beginning of at most SYMBOLS_NAME_BYTES_MAX bytes that splits no
 * character. */
static size_t cut_length(const char *text, size_t length)
{
	size_t cut = SYMBOLS_NAME_BYTES_MAX;

	if (length <= cut)
		return length;
	for (int i = 0; i < 3 && (text[cut] & 0xc0) == 0x80; i++)
		cut--;
	return cut;
}

/* PREFIX, and NODE with its scopes.  Uses up what can be referred to. */
static char *format(struct mangled *in, const char *prefix, int node)
{
	struct output *output = xmalloc(sizeof(*output));
	char *text;
	int count = 0;

	output->length = 0;
	put(output, prefix, strlen(prefix));
	for (; node != MANGLED_NONE; node = in->nodes[node].scope)
		in->earlier[count++] = node;
	while (count)
		put_node(output, &in->nodes[in->earlier[--count]]);
	text = xstrndup(output->text, cut_length(output->text, output->length));
	free(output);
	return text;
}

/* The readable form of the LENGTH bytes at NAME; NULL if they are no mangled name that is
 * known. */
static char *demangle(const char *name, int length)
{
	struct mangled in = { .next = name + 2, .end = name + length, .most = 2 * length };
	bool is_thunk;
	char *text = NULL;
	int node;

	in.nodes = xreallocarray(NULL, in.most, sizeof(*in.nodes));
	in.earlier = xreallocarray(NULL, in.most, sizeof(*in.earlier));
	is_thunk = mangled__take(&in, 'T');
	if (is_thunk)
		read_thunk(&in);
	node = mangled__read_name(&in, MANGLED_NONE);
	if (!in.failed && node != MANGLED_NONE) {
		if (is_rust_hash(&in.nodes[node]))
			node = in.nodes[node].scope;
		text = format(&in, is_thunk ? "thunk to " : "", node);
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
