/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of demangle.c, for nobody else: a mangled C++ name that is being read. */
#ifndef PYBPFPROF_MANGLED_H
#define PYBPFPROF_MANGLED_H

#include <stdbool.h>
#include <stdint.h>

#define MANGLED_NONE (-1)

/* A part of a name; its text lies in the name, or is a constant. */
struct mangled_node {
	int scope;   /* or MANGLED_NONE */
	bool joined; /* no "::" before it */
	const char *text;
	int length;
	int number; /* of a lambda, from 1; else 0 */
};

struct mangled {
	const char *next, *end;
	struct mangled_node *nodes;
	int *earlier; /* nodes that can be referred to by number */
	int node_count, earlier_count, most;
	int depth;
	bool failed; /* nothing follows then */
};

struct mangled_operator {
	char code[3];
	uint8_t operands; /* in an expression that is read like others; else 0 */
	const char *text;
};

/* The name is not one that is known.  MANGLED_NONE, as from all functions below that give nodes. */
int mangled__fail(struct mangled *in);

/* The next byte and the one after it; 0 at the end. */
char mangled__peek(const struct mangled *in);
char mangled__peek_second(const struct mangled *in);

/* Takes the next byte, or two, if they are WANTED; returns whether.  expect: fails if not. */
bool mangled__take(struct mangled *in, char wanted);
bool mangled__take_two(struct mangled *in, const char *wanted);
void mangled__expect(struct mangled *in, char wanted);

/* Takes the 'E' that ends a list.  True also at the end of the name, which fails then. */
bool mangled__take_end(struct mangled *in);

/* Around what may contain its like: fails beyond a depth. */
void mangled__enter(struct mangled *in);
void mangled__leave(struct mangled *in);

/* Adds a node, in SCOPE or as a suffix of it; returns its index. */
int mangled__add(struct mangled *in, struct mangled_node node);
int mangled__add_text(struct mangled *in, int scope, const char *text);
int mangled__add_suffix(struct mangled *in, int scope, const char *text);

/* From now on NODE can be referred to.  Returns it. */
int mangled__remember(struct mangled *in, int node);

int mangled__read_number(struct mangled *in);
void mangled__skip_digits(struct mangled *in);

/* mangled_names.c: a name in SCOPE, with the arguments of templates; a length and an identifier; an
 * operator's name. */
int mangled__read_name(struct mangled *in, int scope);
int mangled__read_identifier(struct mangled *in, int scope);
int mangled__read_operator(struct mangled *in, int scope);

/* The operator that follows, which is not taken; or NULL. */
const struct mangled_operator *mangled__find_operator(const struct mangled *in);

/* After 'S': what was remembered, or an abbreviation.  After 'T': a parameter of a template. */
int mangled__read_reference(struct mangled *in);
int mangled__read_parameter(struct mangled *in);

/* mangled_types.c: a type; the arguments of a template, from 'I' on. */
int mangled__read_type(struct mangled *in);
void mangled__read_arguments(struct mangled *in);

#endif
