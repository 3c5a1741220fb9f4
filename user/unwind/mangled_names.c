// SPDX-License-Identifier: BSD-2-Clause
/* Names: identifiers, operators and their scopes. */
#include <ctype.h>
#include <string.h>

#include "unwind/mangled.h"
#include "unwind/symbols.h"

/* What a type of more parts is converted to is not shown. */
#define CONVERSION_PARTS_MAX 16

static const struct mangled_operator operators[] = {
	{ "aN", 2, "operator&=" },	  { "aS", 2, "operator=" },
	{ "aa", 2, "operator&&" },	  { "ad", 1, "operator&" },
	{ "an", 2, "operator&" },	  { "aw", 1, "operator co_await" },
	{ "cl", 0, "operator()" },	  { "cm", 2, "operator," },
	{ "co", 1, "operator~" },	  { "dV", 2, "operator/=" },
	{ "da", 1, "operator delete[]" }, { "de", 1, "operator*" },
	{ "dl", 1, "operator delete" },	  { "ds", 2, "operator.*" },
	{ "dt", 2, "operator." },	  { "dv", 2, "operator/" },
	{ "eO", 2, "operator^=" },	  { "eo", 2, "operator^" },
	{ "eq", 2, "operator==" },	  { "ge", 2, "operator>=" },
	{ "gt", 2, "operator>" },	  { "ix", 2, "operator[]" },
	{ "lS", 2, "operator<<=" },	  { "le", 2, "operator<=" },
	{ "ls", 2, "operator<<" },	  { "lt", 2, "operator<" },
	{ "mI", 2, "operator-=" },	  { "mL", 2, "operator*=" },
	{ "mi", 2, "operator-" },	  { "ml", 2, "operator*" },
	{ "mm", 1, "operator--" },	  { "na", 0, "operator new[]" },
	{ "ne", 2, "operator!=" },	  { "ng", 1, "operator-" },
	{ "nt", 1, "operator!" },	  { "nw", 0, "operator new" },
	{ "oR", 2, "operator|=" },	  { "oo", 2, "operator||" },
	{ "or", 2, "operator|" },	  { "pL", 2, "operator+=" },
	{ "pl", 2, "operator+" },	  { "pm", 2, "operator->*" },
	{ "pp", 1, "operator++" },	  { "ps", 1, "operator+" },
	{ "pt", 2, "operator->" },	  { "qu", 3, "operator?" },
	{ "rM", 2, "operator%=" },	  { "rS", 2, "operator>>=" },
	{ "rm", 2, "operator%" },	  { "rs", 2, "operator>>" },
	{ "ss", 2, "operator<=>" },
};

/* After 'S': templates of namespace std. */
static const struct {
	char code;
	const char *text;
} abbreviations[] = {
	{ 'a', "allocator" },	  { 'b', "basic_string" },  { 's', "basic_string" },
	{ 'i', "basic_istream" }, { 'o', "basic_ostream" }, { 'd', "basic_iostream" },
};

/* A length, and an identifier. */
int mangled__read_identifier(struct mangled *in, int scope)
{
	static const char anonymous[] = "_GLOBAL_";
	int length = mangled__read_number(in);
	const char *text = in->next;

	if (in->failed || !length || in->end - text < length)
		return mangled__fail(in);
	in->next += length;
	if (length > (int)sizeof(anonymous) &&
	    memcmp(text, anonymous, sizeof(anonymous) - 1) == 0 && text[sizeof(anonymous)] == 'N')
		return mangled__add_text(in, scope, "(anonymous namespace)");
	return mangled__add(in, (struct mangled_node){ scope, false, text, length, 0 });
}

const struct mangled_operator *mangled__find_operator(const struct mangled *in)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (mangled__peek(in) == operators[i].code[0] &&
		    mangled__peek_second(in) == operators[i].code[1])
			return &operators[i];
	return NULL;
}

/* "operator TYPE": the type's parts, outermost first, are put behind that. */
static int read_conversion(struct mangled *in, int scope)
{
	int parts[CONVERSION_PARTS_MAX], count = 0, part = mangled__read_type(in);
	int node = mangled__add_text(in, scope, "operator ");

	for (; part != MANGLED_NONE && count < CONVERSION_PARTS_MAX; part = in->nodes[part].scope)
		parts[count++] = part;
	if (part != MANGLED_NONE)
		return mangled__add_suffix(in, node, "...");
	for (int i = count; i-- > 0;) {
		struct mangled_node copy = in->nodes[parts[i]];

		copy.scope = node;
		copy.joined |= i == count - 1;
		node = mangled__add(in, copy);
	}
	return node;
}

int mangled__read_operator(struct mangled *in, int scope)
{
	const struct mangled_operator *found = mangled__find_operator(in);

	if (mangled__take_two(in, "cv"))
		return read_conversion(in, scope);
	if (mangled__take_two(in, "li"))
		return mangled__read_identifier(in, mangled__add_text(in, scope, "operator\"\""));
	if (!found)
		return mangled__fail(in);
	in->next += 2;
	return mangled__add_text(in, scope, found->text);
}

/* A lambda, or a type without a name.  The first has no number, and the others count from 0. */
static int read_unnamed(struct mangled *in, int scope)
{
	bool is_lambda = mangled__peek_second(in) == 'l';
	int node, number = 1;

	in->next += 2;
	while (is_lambda && !mangled__take_end(in))
		mangled__read_type(in);
	if (isdigit((unsigned char)mangled__peek(in)))
		number = mangled__read_number(in) + 2;
	mangled__expect(in, '_');
	node = mangled__add_text(in, scope, is_lambda ? "{lambda#" : "{unnamed type#");
	if (node != MANGLED_NONE)
		in->nodes[node].number = number;
	return node;
}

static bool is_constructor(const struct mangled *in)
{
	char kind = mangled__peek_second(in);

	return (mangled__peek(in) == 'C' && kind >= '1' && kind <= '5') ||
	       (mangled__peek(in) == 'D' && kind >= '0' && kind <= '5');
}

/* Of a class, which is SCOPE: its name once more. */
static int read_constructor(struct mangled *in, int scope)
{
	bool is_destructor = mangled__peek(in) == 'D';
	struct mangled_node class;

	in->next += 2;
	if (scope == MANGLED_NONE)
		return mangled__fail(in);
	class = in->nodes[scope];
	class.joined = is_destructor;
	class.scope = is_destructor ? mangled__add_text(in, scope, "~") : scope;
	return mangled__add(in, class);
}

static int read_unqualified_name(struct mangled *in, int scope)
{
	int node;

	mangled__take(in, 'L'); /* internal linkage */
	if (isdigit((unsigned char)mangled__peek(in)))
		node = mangled__read_identifier(in, scope);
	else if (mangled__peek(in) == 'U' &&
		 (mangled__peek_second(in) == 'l' || mangled__peek_second(in) == 't'))
		node = read_unnamed(in, scope);
	else if (is_constructor(in))
		node = read_constructor(in, scope);
	else
		node = mangled__read_operator(in, scope);
	while (mangled__take(in, 'B')) /* a tag, such as that of GCC's std::string */
		mangled__read_identifier(in, MANGLED_NONE);
	return node;
}

/* After 'S': a node that was remembered, by a number to the base 36, or an abbreviation. */
int mangled__read_reference(struct mangled *in)
{
	int number = 0;

	for (size_t i = 0; i < sizeof(abbreviations) / sizeof(abbreviations[0]); i++)
		if (mangled__take(in, abbreviations[i].code))
			return mangled__add_text(in, mangled__add_text(in, MANGLED_NONE, "std"),
						 abbreviations[i].text);
	if (!mangled__take(in, '_')) {
		for (; !mangled__take(in, '_'); in->next++) {
			char digit = mangled__peek(in);

			if ((!isdigit((unsigned char)digit) && (digit < 'A' || digit > 'Z')) ||
			    number > SYMBOLS_NAME_BYTES_MAX)
				return mangled__fail(in);
			number = number * 36 + (digit <= '9' ? digit - '0' : digit - 'A' + 10);
		}
		number++;
	}
	return number < in->earlier_count ? in->earlier[number] : mangled__fail(in);
}

/* After 'T'. */
int mangled__read_parameter(struct mangled *in)
{
	if (mangled__take(in, 'L')) {
		mangled__skip_digits(in);
		mangled__expect(in, '_');
	}
	mangled__skip_digits(in);
	mangled__expect(in, '_');
	return mangled__remember(in, mangled__add_text(in, MANGLED_NONE, "T"));
}

/* One part of a name in SCOPE, or what the name begins with. */
static int read_part(struct mangled *in, int scope)
{
	if (mangled__take_two(in, "St"))
		return mangled__add_text(in, MANGLED_NONE, "std");
	if (mangled__take(in, 'S'))
		return mangled__read_reference(in);
	if (mangled__peek(in) == 'D' && tolower(mangled__peek_second(in)) == 't')
		return mangled__read_type(in);
	if (mangled__take(in, 'T'))
		return mangled__read_parameter(in);
	if (mangled__peek(in) == 'I' && scope != MANGLED_NONE) {
		mangled__read_arguments(in);
		return scope;
	}
	return read_unqualified_name(in, scope);
}

/* After 'N'. */
static int read_nested_name(struct mangled *in, int scope)
{
	int node = scope;

	while (mangled__peek(in) && strchr("rVKRO", mangled__peek(in)))
		in->next++;
	while (!mangled__take_end(in)) {
		char first = mangled__peek(in), second = mangled__peek_second(in);
		bool known =
			first == 'S' || first == 'T' || (first == 'D' && tolower(second) == 't');

		if (mangled__take(in, 'M')) /* the variable that a lambda initializes */
			continue;
		node = read_part(in, node);
		if (!known && mangled__peek(in) != 'E')
			mangled__remember(in, node);
	}
	return node;
}

/* "_3" or "__12_" tells things of one name in a function apart. */
static void skip_discriminator(struct mangled *in)
{
	if (mangled__take_two(in, "__")) {
		mangled__skip_digits(in);
		mangled__expect(in, '_');
	} else if (mangled__peek(in) == '_' && isdigit((unsigned char)mangled__peek_second(in))) {
		in->next += 2;
	}
}

/* After 'Z': something in a function. */
static int read_local_name(struct mangled *in)
{
	int function = mangled__read_name(in, MANGLED_NONE), node;

	while (!mangled__take_end(in))
		mangled__read_type(in);
	if (mangled__take(in, 's')) {
		skip_discriminator(in);
		return function;
	}
	if (mangled__take(in, 'd')) {
		mangled__skip_digits(in);
		mangled__expect(in, '_');
	}
	node = mangled__read_name(in, function);
	skip_discriminator(in);
	return node;
}

static int read_any_name(struct mangled *in, int scope)
{
	bool known = mangled__peek(in) == 'S' && mangled__peek_second(in) != 't';
	int node;

	if (mangled__take(in, 'N'))
		return read_nested_name(in, scope);
	if (mangled__take(in, 'Z'))
		return read_local_name(in);
	if (mangled__take_two(in, "St"))
		node = read_unqualified_name(in, mangled__add_text(in, MANGLED_NONE, "std"));
	else if (mangled__take(in, 'S'))
		node = mangled__read_reference(in);
	else
		node = read_unqualified_name(in, scope);
	if (mangled__peek(in) == 'I') {
		if (!known)
			mangled__remember(in, node);
		mangled__read_arguments(in);
	}
	return node;
}

int mangled__read_name(struct mangled *in, int scope)
{
	int node;

	mangled__enter(in);
	node = read_any_name(in, scope);
	mangled__leave(in);
	return node;
}
