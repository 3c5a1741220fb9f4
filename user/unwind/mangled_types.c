// SPDX-License-Identifier: BSD-2-Clause
/* Types, the arguments of templates, and the expressions in these. */
#include <ctype.h>
#include <string.h>

#include "unwind/mangled.h"

/* By letter, from 'a'; NULL: none. */
/* clang-format off */
static const char *const builtins[26] = {
	"signed char", "bool", "char", "double", "long double", "float", "__float128",
	"unsigned char", "int", "unsigned int", NULL, "long", "unsigned long", "__int128",
	"unsigned __int128", NULL, NULL, NULL, "short", "unsigned short", NULL, "void",
	"wchar_t", "long long", "unsigned long long", "...",
};
/* clang-format on */

/* After 'D'. */
static const struct {
	char code;
	const char *text;
} more_builtins[] = {
	{ 'a', "auto" },       { 'c', "decltype(auto)" },    { 'd', "decimal64" },
	{ 'e', "decimal128" }, { 'f', "decimal32" },	     { 'h', "_Float16" },
	{ 'i', "char32_t" },   { 'n', "decltype(nullptr)" }, { 's', "char16_t" },
	{ 'u', "char8_t" },
};

static void read_expression(struct mangled *in);

/* After 'F', 'Y' for C's. */
static int read_function_type(struct mangled *in)
{
	mangled__take(in, 'Y');
	while (!mangled__take_end(in))
		if ((mangled__peek(in) != 'R' && mangled__peek(in) != 'O') ||
		    mangled__peek_second(in) != 'E')
			mangled__read_type(in);
		else
			in->next++;
	return mangled__add_text(in, MANGLED_NONE, "function");
}

/* After 'A'. */
static int read_array_type(struct mangled *in)
{
	if (isdigit((unsigned char)mangled__peek(in)))
		mangled__skip_digits(in);
	else if (mangled__peek(in) != '_')
		read_expression(in);
	mangled__expect(in, '_');
	return mangled__add_suffix(in, mangled__read_type(in), "[]");
}

/* The types whose first letter is D, which is still there. */
static int read_more_types(struct mangled *in)
{
	char kind = mangled__peek_second(in);
	int node;

	in->next += 2;
	for (size_t i = 0; i < sizeof(more_builtins) / sizeof(more_builtins[0]); i++)
		if (kind == more_builtins[i].code)
			return mangled__add_text(in, MANGLED_NONE, more_builtins[i].text);
	switch (kind) {
	case 'F':
		mangled__skip_digits(in);
		if (!mangled__take(in, 'b') && !mangled__take(in, 'x'))
			mangled__expect(in, '_');
		return mangled__add_text(in, MANGLED_NONE, "_Float");
	case 'p':
		node = mangled__read_type(in);
		break;
	case 't':
	case 'T':
		read_expression(in);
		mangled__expect(in, 'E');
		node = mangled__add_text(in, MANGLED_NONE, "decltype");
		break;
	case 'v':
		mangled__skip_digits(in);
		mangled__expect(in, '_');
		node = mangled__add_suffix(in, mangled__read_type(in), "[]");
		break;
	case 'o':
		mangled__expect(in, 'F');
		node = read_function_type(in);
		break;
	default:
		return mangled__fail(in);
	}
	return mangled__remember(in, node);
}

static int read_qualified_type(struct mangled *in)
{
	bool is_const = false;
	int node;

	while (mangled__peek(in) && strchr("rVK", mangled__peek(in)))
		is_const |= *in->next++ == 'K';
	node = mangled__read_type(in);
	return mangled__remember(in, is_const ? mangled__add_suffix(in, node, " const") : node);
}

/* A type that is referred to, a class of namespace std, or a template of either. */
static int read_type_of_reference(struct mangled *in)
{
	int node;

	if (mangled__peek_second(in) == 't')
		return mangled__remember(in, mangled__read_name(in, MANGLED_NONE));
	in->next++;
	node = mangled__read_reference(in);
	if (mangled__peek(in) != 'I')
		return node;
	mangled__read_arguments(in);
	return mangled__remember(in, node);
}

static int read_template_parameter_type(struct mangled *in)
{
	int node;

	in->next++;
	if (mangled__peek(in) == 's' || mangled__peek(in) == 'u' || mangled__peek(in) == 'e') {
		in->next++;
		return mangled__remember(in, mangled__read_name(in, MANGLED_NONE));
	}
	node = mangled__read_parameter(in);
	if (mangled__peek(in) != 'I')
		return node;
	mangled__read_arguments(in);
	return mangled__remember(in, node);
}

/* A type that is made of the one that follows, or of two. */
static int read_compound_type(struct mangled *in)
{
	switch (*in->next++) {
	case 'P':
		return mangled__remember(in, mangled__add_suffix(in, mangled__read_type(in), "*"));
	case 'R':
		return mangled__remember(in, mangled__add_suffix(in, mangled__read_type(in), "&"));
	case 'O':
		return mangled__remember(in, mangled__add_suffix(in, mangled__read_type(in), "&&"));
	case 'C':
	case 'G':
		return mangled__remember(in, mangled__read_type(in));
	case 'A':
		return mangled__remember(in, read_array_type(in));
	case 'F':
		return mangled__remember(in, read_function_type(in));
	case 'M':
		mangled__read_type(in);
		return mangled__remember(in, mangled__add_suffix(in, mangled__read_type(in), "*"));
	case 'U':
		mangled__read_identifier(in, MANGLED_NONE);
		if (mangled__peek(in) == 'I')
			mangled__read_arguments(in);
		return mangled__remember(in, mangled__read_type(in));
	case 'u':
		return mangled__remember(in, mangled__read_identifier(in, MANGLED_NONE));
	default:
		return mangled__fail(in);
	}
}

static int read_any_type(struct mangled *in)
{
	char first = mangled__peek(in);

	if (first && strchr("rVK", first))
		return read_qualified_type(in);
	if (first >= 'a' && first <= 'z' && builtins[first - 'a']) {
		in->next++;
		return mangled__add_text(in, MANGLED_NONE, builtins[first - 'a']);
	}
	if (isdigit((unsigned char)first) || first == 'N' || first == 'Z')
		return mangled__remember(in, mangled__read_name(in, MANGLED_NONE));
	if (first == 'S')
		return read_type_of_reference(in);
	if (first == 'T')
		return read_template_parameter_type(in);
	if (first == 'D')
		return read_more_types(in);
	return first ? read_compound_type(in) : mangled__fail(in);
}

int mangled__read_type(struct mangled *in)
{
	int node;

	mangled__enter(in);
	node = read_any_type(in);
	mangled__leave(in);
	return node;
}

/* After 'L'. */
static void read_literal(struct mangled *in)
{
	if (mangled__take_two(in, "_Z")) {
		mangled__read_name(in, MANGLED_NONE);
		while (!mangled__take_end(in))
			mangled__read_type(in);
		return;
	}
	mangled__read_type(in);
	while (islower((unsigned char)mangled__peek(in)) ||
	       isdigit((unsigned char)mangled__peek(in)))
		in->next++;
	mangled__expect(in, 'E');
}

static void read_argument(struct mangled *in)
{
	if (mangled__take(in, 'L')) {
		read_literal(in);
	} else if (mangled__take(in, 'X')) {
		read_expression(in);
		mangled__expect(in, 'E');
	} else if (mangled__peek(in) == 'I' || mangled__peek(in) == 'J') {
		mangled__read_arguments(in);
	} else {
		mangled__read_type(in);
	}
}

/* A template's arguments, or a pack of them. */
void mangled__read_arguments(struct mangled *in)
{
	mangled__enter(in);
	if (!mangled__take(in, 'I'))
		mangled__expect(in, 'J');
	while (!mangled__take_end(in))
		read_argument(in);
	mangled__leave(in);
}

/* A name in an expression that may have a template's arguments. */
static void read_simple_name(struct mangled *in)
{
	if (mangled__take_two(in, "on"))
		mangled__read_operator(in, MANGLED_NONE);
	else
		mangled__read_identifier(in, MANGLED_NONE);
	if (mangled__peek(in) == 'I')
		mangled__read_arguments(in);
}

/* After "sr": a name in a type, or in scopes that end with 'E'. */
static void read_scoped_name(struct mangled *in)
{
	if (mangled__take(in, 'N')) {
		mangled__read_type(in);
		while (!mangled__take_end(in))
			read_simple_name(in);
	} else if (isdigit((unsigned char)mangled__peek(in))) {
		while (!mangled__take_end(in))
			read_simple_name(in);
	} else {
		mangled__read_type(in);
	}
	read_simple_name(in);
}

/* After "fp": a parameter of the function. */
static void read_function_parameter(struct mangled *in)
{
	if (mangled__take(in, 'T'))
		return;
	while (mangled__peek(in) && strchr("rVK", mangled__peek(in)))
		in->next++;
	mangled__skip_digits(in);
	mangled__expect(in, '_');
}

static void read_expressions(struct mangled *in)
{
	while (!mangled__take_end(in))
		read_expression(in);
}

/* "cv": one operand, or a list. */
static void read_cast(struct mangled *in)
{
	mangled__read_type(in);
	if (mangled__take(in, '_'))
		read_expressions(in);
	else
		read_expression(in);
}

static void read_operation(struct mangled *in)
{
	const struct mangled_operator *found = mangled__find_operator(in);

	if (!found || !found->operands) {
		mangled__fail(in);
		return;
	}
	in->next += 2;
	if (found->code[0] == found->code[1] && strchr("mp", found->code[0]))
		mangled__take(in, '_');
	for (int i = 0; i < found->operands; i++)
		read_expression(in);
}

static void read_any_expression(struct mangled *in)
{
	mangled__take_two(in, "gs");
	if (mangled__take(in, 'L'))
		read_literal(in);
	else if (mangled__take(in, 'T'))
		mangled__read_parameter(in);
	else if (isdigit((unsigned char)mangled__peek(in)) ||
		 (mangled__peek(in) == 'o' && mangled__peek_second(in) == 'n'))
		read_simple_name(in);
	else if (mangled__take_two(in, "fp"))
		read_function_parameter(in);
	else if (mangled__take_two(in, "sr"))
		read_scoped_name(in);
	else if (mangled__take_two(in, "cl"))
		read_expressions(in);
	else if (mangled__take_two(in, "cv"))
		read_cast(in);
	else if (mangled__take_two(in, "tl")) {
		mangled__read_type(in);
		read_expressions(in);
	} else if (mangled__take_two(in, "il"))
		read_expressions(in);
	else if (mangled__take_two(in, "st") || mangled__take_two(in, "at"))
		mangled__read_type(in);
	else if (mangled__take_two(in, "sc") || mangled__take_two(in, "dc") ||
		 mangled__take_two(in, "cc") || mangled__take_two(in, "rc")) {
		mangled__read_type(in);
		read_expression(in);
	} else if (mangled__take_two(in, "sz") || mangled__take_two(in, "az") ||
		   mangled__take_two(in, "nx") || mangled__take_two(in, "sp") ||
		   mangled__take_two(in, "sZ"))
		read_expression(in);
	else
		read_operation(in);
}

static void read_expression(struct mangled *in)
{
	mangled__enter(in);
	read_any_expression(in);
	mangled__leave(in);
}
