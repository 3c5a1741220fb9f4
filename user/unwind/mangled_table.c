// SPDX-License-Identifier: BSD-2-Clause
#include <stddef.h>

#include "unwind/mangled.h"

/* clang-format off */

static const struct mangled_form expressions[] = {
	{ "aN", "ee", "operator&=" },       { "aS", "ee", "operator=" },
	{ "aa", "ee", "operator&&" },       { "ad", "e", "operator&" },
	{ "an", "ee", "operator&" },        { "aw", "e", "operator co_await" },
	{ "cl", "l", "operator()" },        { "cm", "ee", "operator," },
	{ "co", "e", "operator~" },         { "dV", "ee", "operator/=" },
	{ "da", "e", "operator delete[]" }, { "de", "e", "operator*" },
	{ "dl", "e", "operator delete" },   { "ds", "ee", "operator.*" },
	{ "dt", "ee", "operator." },        { "dv", "ee", "operator/" },
	{ "eO", "ee", "operator^=" },       { "eo", "ee", "operator^" },
	{ "eq", "ee", "operator==" },       { "ge", "ee", "operator>=" },
	{ "gt", "ee", "operator>" },        { "ix", "ee", "operator[]" },
	{ "lS", "ee", "operator<<=" },      { "le", "ee", "operator<=" },
	{ "ls", "ee", "operator<<" },       { "lt", "ee", "operator<" },
	{ "mI", "ee", "operator-=" },       { "mL", "ee", "operator*=" },
	{ "mi", "ee", "operator-" },        { "ml", "ee", "operator*" },
	{ "mm", "_e", "operator--" },       { "na", NULL, "operator new[]" },
	{ "ne", "ee", "operator!=" },       { "ng", "e", "operator-" },
	{ "nt", "e", "operator!" },         { "nw", NULL, "operator new" },
	{ "oR", "ee", "operator|=" },       { "oo", "ee", "operator||" },
	{ "or", "ee", "operator|" },        { "pL", "ee", "operator+=" },
	{ "pl", "ee", "operator+" },        { "pm", "ee", "operator->*" },
	{ "pp", "_e", "operator++" },       { "ps", "e", "operator+" },
	{ "pt", "ee", "operator->" },       { "qu", "eee", "operator?" },
	{ "rM", "ee", "operator%=" },       { "rS", "ee", "operator>>=" },
	{ "rm", "ee", "operator%" },        { "rs", "ee", "operator>>" },
	{ "ss", "ee", "operator<=>" },
	/* Those that are no operators. */
	{ "at", "t", NULL },  { "az", "e", NULL },  { "cc", "te", NULL }, { "cv", "tc", NULL },
	{ "dc", "te", NULL }, { "fp", "p", NULL },  { "il", "l", NULL },  { "nx", "e", NULL },
	{ "rc", "te", NULL }, { "sZ", "e", NULL },  { "sc", "te", NULL }, { "sp", "e", NULL },
	{ "sr", "s", NULL },  { "st", "t", NULL },  { "sz", "e", NULL },  { "tl", "tl", NULL },
};

static const struct mangled_form types[] = {
	{ "A", "at", "[]" },  { "C", "t", NULL },   { "F", "f", "function" },  { "G", "t", NULL },
	{ "M", "tt", "*" },   { "O", "t", "&&" },   { "P", "t", "*" },         { "R", "t", "&" },
	{ "Te", "n", NULL },  { "Ts", "n", NULL },  { "Tu", "n", NULL },       { "U", "igt", NULL },
	{ "u", "i", NULL },   { "DT", "eE", "decltype" },  { "Dt", "eE", "decltype" },
	{ "Do", "Ff", "function" },  { "Dp", "t", NULL },  { "Dv", "#t", "[]" },
};

/* Builtin types by their letter, and by the letter behind 'D'. */
static const char *const builtins['z' + 1] = {
	['a'] = "signed char",        ['b'] = "bool",               ['c'] = "char",
	['d'] = "double",             ['e'] = "long double",        ['f'] = "float",
	['g'] = "__float128",         ['h'] = "unsigned char",      ['i'] = "int",
	['j'] = "unsigned int",       ['l'] = "long",               ['m'] = "unsigned long",
	['n'] = "__int128",           ['o'] = "unsigned __int128",  ['s'] = "short",
	['t'] = "unsigned short",     ['v'] = "void",               ['w'] = "wchar_t",
	['x'] = "long long",          ['y'] = "unsigned long long", ['z'] = "...",
};

static const char *const more_builtins['z' + 1] = {
	['a'] = "auto",              ['c'] = "decltype(auto)",    ['d'] = "decimal64",
	['e'] = "decimal128",        ['f'] = "decimal32",         ['h'] = "_Float16",
	['i'] = "char32_t",          ['n'] = "decltype(nullptr)", ['s'] = "char16_t",
	['u'] = "char8_t",
};

/* Templates of namespace std. */
static const char *const abbreviations['z' + 1] = {
	['a'] = "allocator",      ['b'] = "basic_string",   ['d'] = "basic_iostream",
	['i'] = "basic_istream",  ['o'] = "basic_ostream",  ['s'] = "basic_string",
};

/* clang-format on */

static const struct mangled_form *find_form(const struct mangled_form *forms, size_t count,
					    char first, char second)
{
	for (size_t i = 0; i < count; i++)
		if (forms[i].code[0] == first && (!forms[i].code[1] || forms[i].code[1] == second))
			return &forms[i];
	return NULL;
}

const struct mangled_form *mangled_table__expression(char first, char second)
{
	return find_form(expressions, sizeof(expressions) / sizeof(expressions[0]), first, second);
}

const struct mangled_form *mangled_table__type(char first, char second)
{
	return find_form(types, sizeof(types) / sizeof(types[0]), first, second);
}

static const char *find_text(const char *const texts['z' + 1], char letter)
{
	return letter >= 0 && letter <= 'z' ? texts[(int)letter] : NULL;
}

const char *mangled_table__builtin(char first, char second)
{
	return first == 'D' ? find_text(more_builtins, second) : find_text(builtins, first);
}

const char *mangled_table__abbreviation(char letter)
{
	return find_text(abbreviations, letter);
}
