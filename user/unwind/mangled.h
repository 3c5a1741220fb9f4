/* SPDX-License-Identifier: BSD-2-Clause */
/* The grammar of mangled C++ names; demangle.c is its only client. */
#ifndef PYBPFPROF_MANGLED_H
#define PYBPFPROF_MANGLED_H

#include <stdbool.h>

#define MANGLED_NONE (-1)

/* A part of a name.  TEXT points into the mangled name or to a constant. */
struct mangled_node {
	int scope;   /* the node of the scope, or MANGLED_NONE */
	bool joined; /* no "::" before it */
	const char *text;
	int length;
	int number; /* of a lambda or an unnamed type, from 1; 0 otherwise */
};

/* A name that is being read.  Both arrays have room for MOST elements. */
struct mangled {
	const char *next, *end;
	struct mangled_node *nodes;
	int *earlier; /* the nodes that a number can refer to */
	int node_count, earlier_count, most;
	int depth;
	bool failed;
};

/* An expression or a type that begins with one or two letters, CODE. */
struct mangled_form {
	char code[3];
	/* The operands, a letter for each: x expression, l list of expressions, c operand of a
	 * cast, p parameter of a function, s name in scopes; t type, f parameters of a function
	 * type, a size of an array; i identifier, g arguments of a template, # number, _ optional
	 * underscore, and E and F themselves.  NULL: CODE begins no expression. */
	const char *operands;
	/* The name of an operator, or the suffix of a type's last operand.  NULL: none. */
	const char *text;
};

/* The expression, type or builtin type that begins with the letters FIRST and SECOND; NULL: none. A
 * builtin type has two letters if FIRST is 'D', and one otherwise. */
const struct mangled_form *mangled_table__expression(char first, char second);
const struct mangled_form *mangled_table__type(char first, char second);
const char *mangled_table__builtin(char first, char second);

/* The template of namespace std for the letter behind 'S', or NULL. */
const char *mangled_table__abbreviation(char letter);

/* Reads the name from NEXT on, behind "_Z".  Returns the node of its last part; MANGLED_NONE if any
 * part of the name is unknown. */
int mangled__read(struct mangled *in);

#endif
