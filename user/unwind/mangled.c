// SPDX-License-Identifier: BSD-2-Clause
/*
 * A recursive descent: a function reads one construct of the grammar.  It returns the node if a
 * name can show the construct.  A failure moves to the end of the name, which ends every loop.
 */
#include <ctype.h>
#include <string.h>

#include "unwind/mangled.h"
#include "unwind/symbols.h"

/* A template within a template takes three levels. */
#define DEPTH_MAX 512

/* A conversion to a type of more parts is shown as "operator ...". */
#define CONVERSION_PARTS_MAX 16

static int read_name(struct mangled *in, int scope);
static int read_type(struct mangled *in);
static void read_expression(struct mangled *in);
static int read_form(struct mangled *in, const struct mangled_form *form);

static int fail(struct mangled *in)
{
	in->failed = true;
	in->next = in->end;
	return MANGLED_NONE;
}

/* The next byte and the one after it; 0 at the end. */
static char peek(const struct mangled *in)
{
	return in->next < in->end ? in->next[0] : 0;
}

static char peek_second(const struct mangled *in)
{
	return in->end - in->next > 1 ? in->next[1] : 0;
}

static bool next_is_one_of(const struct mangled *in, const char *letters)
{
	return peek(in) && strchr(letters, peek(in));
}

/* Whether FIRST is next, and then one of SECONDS. */
static bool next_two_are(const struct mangled *in, char first, const char *seconds)
{
	return peek(in) == first && peek_second(in) && strchr(seconds, peek_second(in));
}

static bool next_is_digit(const struct mangled *in)
{
	return next_is_one_of(in, "0123456789");
}

static bool take(struct mangled *in, char wanted)
{
	if (peek(in) != wanted)
		return false;
	in->next++;
	return true;
}

static bool take_two(struct mangled *in, const char *wanted)
{
	if (!next_two_are(in, wanted[0], wanted + 1))
		return false;
	in->next += 2;
	return true;
}

static void expect(struct mangled *in, char wanted)
{
	if (!take(in, wanted))
		fail(in);
}

/* Takes the 'E' that ends a list.  Also true at the end of the name, which fails. */
static bool take_end(struct mangled *in)
{
	if (in->next == in->end)
		fail(in);
	return in->failed || take(in, 'E');
}

/* Counts a level of recursion. */
static void enter(struct mangled *in)
{
	if (++in->depth > DEPTH_MAX)
		fail(in);
}

static int add(struct mangled *in, struct mangled_node node)
{
	if (in->failed || in->node_count == in->most)
		return fail(in);
	in->nodes[in->node_count] = node;
	return in->node_count++;
}

static int add_text(struct mangled *in, int scope, const char *text)
{
	return add(in, (struct mangled_node){ scope, false, text, strlen(text), 0 });
}

static int add_suffix(struct mangled *in, int scope, const char *text)
{
	return add(in, (struct mangled_node){ scope, true, text, strlen(text), 0 });
}

/* Lets later parts of the name refer to NODE, which it returns. */
static int remember(struct mangled *in, int node)
{
	if (in->failed || in->earlier_count == in->most)
		return fail(in);
	in->earlier[in->earlier_count++] = node;
	return node;
}

static void skip_digits(struct mangled *in)
{
	while (next_is_digit(in))
		in->next++;
}

/* "12_" or "_". */
static void skip_number(struct mangled *in)
{
	skip_digits(in);
	expect(in, '_');
}

static int read_number(struct mangled *in)
{
	int number = 0;

	if (!next_is_digit(in))
		fail(in);
	while (next_is_digit(in)) {
		number = number * 10 + (*in->next++ - '0');
		if (number > SYMBOLS_NAME_BYTES_MAX)
			fail(in);
	}
	return number;
}

/* A length, and as many bytes. */
static int read_identifier(struct mangled *in, int scope)
{
	static const char anonymous[] = "_GLOBAL_";
	int length = read_number(in);
	const char *text = in->next;

	if (in->failed || !length || in->end - text < length)
		return fail(in);
	in->next += length;
	if (length > (int)sizeof(anonymous) &&
	    memcmp(text, anonymous, sizeof(anonymous) - 1) == 0 && text[sizeof(anonymous)] == 'N')
		return add_text(in, scope, "(anonymous namespace)");
	return add(in, (struct mangled_node){ scope, false, text, length, 0 });
}

/* After 'S': an abbreviation, or a remembered node: "_" is the first one, "0_" the second one. */
static int read_reference(struct mangled *in)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *abbreviation = mangled_table__abbreviation(peek(in));
	int number = 0, first = peek(in) == '_' ? 0 : 1;

	if (abbreviation) {
		in->next++;
		return add_text(in, add_text(in, MANGLED_NONE, "std"), abbreviation);
	}
	while (!take(in, '_')) {
		if (!next_is_one_of(in, digits) || number > SYMBOLS_NAME_BYTES_MAX)
			return fail(in);
		number = number * 36 + (int)(strchr(digits, *in->next++) - digits);
	}
	number += first;
	return number < in->earlier_count ? in->earlier[number] : fail(in);
}

/* After 'T': a parameter of a template. */
static int read_parameter(struct mangled *in)
{
	if (take(in, 'L'))
		skip_number(in);
	skip_number(in);
	return remember(in, add_text(in, MANGLED_NONE, "T"));
}

/* After 'L'. */
static void read_literal(struct mangled *in)
{
	if (take_two(in, "_Z")) {
		read_name(in, MANGLED_NONE);
		while (!take_end(in))
			read_type(in);
		return;
	}
	read_type(in);
	while (islower((unsigned char)peek(in)) || next_is_digit(in))
		in->next++;
	expect(in, 'E');
}

/* After 'I' or, for a pack, 'J'. */
static void read_arguments(struct mangled *in)
{
	enter(in);
	while (!take_end(in))
		if (take(in, 'L')) {
			read_literal(in);
		} else if (take(in, 'X')) {
			read_expression(in);
			expect(in, 'E');
		} else if (take(in, 'I') || take(in, 'J')) {
			read_arguments(in);
		} else {
			read_type(in);
		}
	in->depth--;
}

/* Takes the arguments of a template if they follow; returns whether. */
static bool take_arguments(struct mangled *in)
{
	if (!take(in, 'I'))
		return false;
	read_arguments(in);
	return true;
}

/* "operator TYPE": copies of the type's parts follow, outermost scope first. */
static int read_conversion(struct mangled *in, int scope)
{
	int parts[CONVERSION_PARTS_MAX], count = 0, part = read_type(in);
	int node = add_text(in, scope, "operator ");

	for (; part != MANGLED_NONE && count < CONVERSION_PARTS_MAX; part = in->nodes[part].scope)
		parts[count++] = part;
	if (part != MANGLED_NONE)
		return add_suffix(in, node, "...");
	for (int i = count; i-- > 0;) {
		struct mangled_node copy = in->nodes[parts[i]];

		copy.scope = node;
		copy.joined |= i == count - 1;
		node = add(in, copy);
	}
	return node;
}

static int read_operator(struct mangled *in, int scope)
{
	const struct mangled_form *form = mangled_table__expression(peek(in), peek_second(in));

	if (take_two(in, "cv"))
		return read_conversion(in, scope);
	if (take_two(in, "li"))
		return read_identifier(in, add_text(in, scope, "operator\"\""));
	if (!form || !form->text)
		return fail(in);
	in->next += 2;
	return add_text(in, scope, form->text);
}

/* A lambda or an unnamed type.  The first one has no number; the others count from 0. */
static int read_unnamed(struct mangled *in, int scope)
{
	bool is_lambda = peek_second(in) == 'l';
	const char *text = is_lambda ? "{lambda#" : "{unnamed type#";
	int number = 1;

	in->next += 2;
	while (is_lambda && !take_end(in))
		read_type(in);
	if (next_is_digit(in))
		number = read_number(in) + 2;
	expect(in, '_');
	return add(in, (struct mangled_node){ scope, false, text, strlen(text), number });
}

/* The constructor or destructor of class SCOPE repeats its name. */
static int read_constructor(struct mangled *in, int scope)
{
	bool is_destructor = peek(in) == 'D';
	struct mangled_node class;

	in->next += 2;
	if (scope == MANGLED_NONE)
		return fail(in);
	class = in->nodes[scope];
	class.joined = is_destructor;
	class.scope = is_destructor ? add_text(in, scope, "~") : scope;
	return add(in, class);
}

static int read_unqualified_name(struct mangled *in, int scope)
{
	int node;

	take(in, 'L'); /* internal linkage */
	if (next_is_digit(in))
		node = read_identifier(in, scope);
	else if (next_two_are(in, 'U', "lt"))
		node = read_unnamed(in, scope);
	else if (next_two_are(in, 'C', "12345") || next_two_are(in, 'D', "012345"))
		node = read_constructor(in, scope);
	else
		node = read_operator(in, scope);
	while (take(in, 'B')) /* an ABI tag, such as that of GCC's std::string */
		read_identifier(in, MANGLED_NONE);
	return node;
}

/* One part of a nested name; SCOPE is the name before it. */
static int read_part(struct mangled *in, int scope)
{
	if (take_two(in, "St"))
		return add_text(in, MANGLED_NONE, "std");
	if (take(in, 'S'))
		return read_reference(in);
	if (take(in, 'T'))
		return read_parameter(in);
	if (next_two_are(in, 'D', "tT"))
		return read_type(in);
	if (scope == MANGLED_NONE || !take_arguments(in))
		scope = read_unqualified_name(in, scope);
	/* The caller remembers the whole name if it is a type. */
	return peek(in) == 'E' ? scope : remember(in, scope);
}

/* After 'N'. */
static int read_nested_name(struct mangled *in, int scope)
{
	while (next_is_one_of(in, "rVKRO"))
		in->next++;
	while (!take_end(in))
		if (!take(in, 'M')) /* the variable that a lambda initializes */
			scope = read_part(in, scope);
	return scope;
}

/* "_3" or "__12_" distinguishes things of one name in a function. */
static void skip_discriminator(struct mangled *in)
{
	if (take_two(in, "__"))
		skip_number(in);
	else if (next_two_are(in, '_', "0123456789"))
		in->next += 2;
}

/* After 'Z': something in a function. */
static int read_local_name(struct mangled *in)
{
	int node = read_name(in, MANGLED_NONE);

	while (!take_end(in))
		read_type(in);
	if (!take(in, 's')) {	   /* no string literal */
		if (take(in, 'd')) /* a default argument */
			skip_number(in);
		node = read_name(in, node);
	}
	skip_discriminator(in);
	return node;
}

static int read_unscoped_name(struct mangled *in, int scope)
{
	bool is_known = peek(in) == 'S' && !next_two_are(in, 'S', "t");
	int node;

	if (take_two(in, "St"))
		node = read_unqualified_name(in, add_text(in, MANGLED_NONE, "std"));
	else if (take(in, 'S'))
		node = read_reference(in);
	else
		node = read_unqualified_name(in, scope);
	if (peek(in) == 'I' && !is_known)
		remember(in, node);
	take_arguments(in);
	return node;
}

static int read_name(struct mangled *in, int scope)
{
	int node;

	enter(in);
	if (take(in, 'N'))
		node = read_nested_name(in, scope);
	else if (take(in, 'Z'))
		node = read_local_name(in);
	else
		node = read_unscoped_name(in, scope);
	in->depth--;
	return node;
}

static int read_qualified_type(struct mangled *in)
{
	bool is_const = false;
	int node;

	while (next_is_one_of(in, "rVK"))
		is_const |= *in->next++ == 'K';
	node = read_type(in);
	return is_const ? add_suffix(in, node, " const") : node;
}

/* A type that can be referred to from here on. */
static int read_new_type(struct mangled *in)
{
	const struct mangled_form *form = mangled_table__type(peek(in), peek_second(in));
	bool is_elaborated = next_two_are(in, 'T', "sue"); /* struct, union, enum */
	int node;

	in->next += is_elaborated ? 2 : 0;
	if (is_elaborated || next_is_digit(in) || next_is_one_of(in, "NZS"))
		return read_name(in, MANGLED_NONE);
	if (next_is_one_of(in, "rVK"))
		return read_qualified_type(in);
	if (!form)
		return fail(in);
	node = read_form(in, form);
	return form->text ? add_suffix(in, node, form->text) : node;
}

static int read_any_type(struct mangled *in)
{
	const char *builtin = mangled_table__builtin(peek(in), peek_second(in));
	int node;

	if (builtin) {
		in->next += peek(in) == 'D' ? 2 : 1;
		return add_text(in, MANGLED_NONE, builtin);
	}
	if (take_two(in, "DF")) {
		skip_digits(in);
		if (!take(in, 'b') && !take(in, 'x'))
			expect(in, '_');
		return add_text(in, MANGLED_NONE, "_Float");
	}
	if ((peek(in) != 'S' || next_two_are(in, 'S', "t")) &&
	    (peek(in) != 'T' || next_two_are(in, 'T', "sue")))
		return remember(in, read_new_type(in));
	node = *in->next++ == 'S' ? read_reference(in) : read_parameter(in);
	return take_arguments(in) ? remember(in, node) : node;
}

static int read_type(struct mangled *in)
{
	int node;

	enter(in);
	node = read_any_type(in);
	in->depth--;
	return node;
}

/* A name in an expression. */
static void read_simple_name(struct mangled *in)
{
	if (take_two(in, "on"))
		read_operator(in, MANGLED_NONE);
	else
		read_identifier(in, MANGLED_NONE);
	take_arguments(in);
}

/* After "sr": a name in a type, or in scopes that end with 'E'. */
static void read_scoped_name(struct mangled *in)
{
	bool has_scopes = next_is_digit(in) || peek(in) == 'N';

	if (take(in, 'N') || !has_scopes)
		read_type(in);
	while (has_scopes && !take_end(in))
		read_simple_name(in);
	read_simple_name(in);
}

/* After "fp". */
static void read_function_parameter(struct mangled *in)
{
	if (take(in, 'T'))
		return;
	while (next_is_one_of(in, "rVK"))
		in->next++;
	skip_number(in);
}

/* After 'F'; 'Y' is a function of C, and "RE" and "OE" end a method's parameters. */
static void read_function_type(struct mangled *in)
{
	take(in, 'Y');
	while (!take_two(in, "RE") && !take_two(in, "OE") && !take_end(in))
		read_type(in);
}

/* After 'A'. */
static void read_array_size(struct mangled *in)
{
	if (next_is_digit(in))
		skip_digits(in);
	else if (peek(in) != '_')
		read_expression(in);
	expect(in, '_');
}

/* Reads the operand that LETTER stands for in struct mangled_form.  Returns its node, if any. */
static int read_operand(struct mangled *in, char letter)
{
	if (letter == 't')
		return read_type(in);
	if (letter == 'i')
		return read_identifier(in, MANGLED_NONE);
	if (letter == 'a')
		read_array_size(in);
	else if (letter == 'f')
		read_function_type(in);
	else if (letter == 'g')
		take_arguments(in);
	else if (letter == 'p')
		read_function_parameter(in);
	else if (letter == 's')
		read_scoped_name(in);
	else if (letter == '#')
		skip_number(in);
	else if (letter == '_')
		take(in, '_');
	else if (letter == 'l' || (letter == 'c' && take(in, '_')))
		while (!take_end(in))
			read_expression(in);
	else if (letter == 'c' || letter == 'x')
		read_expression(in);
	else
		expect(in, letter);
	return MANGLED_NONE;
}

/* Reads an expression or type in FORM.  Returns the node of its last operand. */
static int read_form(struct mangled *in, const struct mangled_form *form)
{
	int node = MANGLED_NONE;

	in->next += strlen(form->code);
	for (const char *letter = form->operands; *letter; letter++)
		node = read_operand(in, *letter);
	return node;
}

static void read_expression(struct mangled *in)
{
	const struct mangled_form *form;

	enter(in);
	take_two(in, "gs");
	form = mangled_table__expression(peek(in), peek_second(in));
	if (take(in, 'L'))
		read_literal(in);
	else if (take(in, 'T'))
		read_parameter(in);
	else if (next_is_digit(in) || next_two_are(in, 'o', "n"))
		read_simple_name(in);
	else if (form && form->operands)
		read_form(in, form);
	else
		fail(in);
	in->depth--;
}

/* After 'T': by how much a thunk moves `this`, and perhaps the result. */
static void skip_adjustments(struct mangled *in)
{
	for (int count = take(in, 'c') ? 2 : 1; count; count--) {
		int offsets = take(in, 'v') ? 2 : 1;

		if (offsets == 1)
			expect(in, 'h');
		for (; offsets; offsets--) {
			take(in, 'n');
			skip_number(in);
		}
	}
}

int mangled__read(struct mangled *in)
{
	int node;

	if (take(in, 'T'))
		skip_adjustments(in);
	node = read_name(in, MANGLED_NONE);
	return in->failed ? MANGLED_NONE : node;
}
