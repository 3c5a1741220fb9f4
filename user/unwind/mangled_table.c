// SPDX-License-Identifier: BSD-2-Clause
#include <stddef.h>

#include "unwind/mangled.h"

/* clang-format off */

static const struct mangled_form expressions[] = {
	{ "aN", "xx", "operator&=" },       { "aS", "xx", "operator=" },
	{ "aa", "xx", "operator&&" },       { "ad", "x", "operator&" },
	{ "an", "xx", "operator&" },        { "aw", "x", "operator co_await" },
	{ "cl", "l", "operator()" },        { "cm", "xx", "operator," },
	{ "co", "x", "operator~" },         { "dV", "xx", "operator/=" },
	{ "da", "x", "operator delete[]" }, { "de", "x", "operator*" },
	{ "dl", "x", "operator delete" },   { "ds", "xx", "operator.*" },
	{ "dt", "xx", "operator." },        { "dv", "xx", "operator/" },
	{ "eO", "xx", "operator^=" },       { "eo", "xx", "operator^" },
	{ "eq", "xx", "operator==" },       { "ge", "xx", "operator>=" },
	{ "gt", "xx", "operator>" },        { "ix", "xx", "operator[]" },
	{ "lS", "xx", "operator<<=" },      { "le", "xx", "operator<=" },
	{ "ls", "xx", "operator<<" },       { "lt", "xx", "operator<" },
	{ "mI", "xx", "operator-=" },       { "mL", "xx", "operator*=" },
	{ "mi", "xx", "operator-" },        { "ml", "xx", "operator*" },
	{ "mm", "_x", "operator--" },       { "na", NULL, "operator new[]" },
	{ "ne", "xx", "operator!=" },       { "ng", "x", "operator-" },
	{ "nt", "x", "operator!" },         { "nw", NULL, "operator new" },
	{ "oR", "xx", "operator|=" },       { "oo", "xx", "operator||" },
	{ "or", "xx", "operator|" },        { "pL", "xx", "operator+=" },
	{ "pl", "xx", "operator+" },        { "pm", "xx", "operator->*" },
	{ "pp", "_x", "operator++" },       { "ps", "x", "operator+" },
	{ "pt", "xx", "operator->" },       { "qu", "xxx", "operator?" },
	{ "rM", "xx", "operator%=" },       { "rS", "xx", "operator>>=" },
	{ "rm", "xx", "operator%" },        { "rs", "xx", "operator>>" },
	{ "ss", "xx", "operator<=>" },
	/* Those that are no operators. */
	{ "at", "t", NULL },  { "az", "x", NULL },  { "cc", "tx", NULL }, { "cv", "tc", NULL },
	{ "dc", "tx", NULL }, { "fp", "p", NULL },  { "il", "l", NULL },  { "nx", "x", NULL },
	{ "rc", "tx", NULL }, { "sZ", "x", NULL },  { "sc", "tx", NULL }, { "sp", "x", NULL },
	{ "sr", "s", NULL },  { "st", "t", NULL },  { "sz", "x", NULL },  { "tl", "tl", NULL },
};

static const struct mangled_form types[] = {
	{ "A", "at", "[]" },         { "C", "t", NULL },    { "F", "f", "function" },
	{ "G", "t", NULL },          { "M", "tt", "*" },    { "O", "t", "&&" },
	{ "P", "t", "*" },           { "R", "t", "&" },     { "U", "igt", NULL },
	{ "u", "i", NULL },          { "Dp", "t", NULL },   { "DT", "xE", "decltype" },
	{ "Do", "Ff", "function" },  { "Dv", "#t", "[]" },  { "Dt", "xE", "decltype" },
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
