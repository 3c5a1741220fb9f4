// SPDX-License-Identifier: BSD-2-Clause
/* Names as they are shown: C++'s and Rust's demangled, without the compiler's suffixes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "unwind/symbols.h"

static void check_shown(const char *name, const char *expected)
{
	char *shown = symbols__demangle(name);

	assert_string_equal(shown, expected);
	free(shown);
}

static void test_shown_names(void **state)
{
	(void)state;
	check_shown("", "");
	check_shown("list_sort", "list_sort");
	check_shown("f.cold", "f");
	check_shown("f.cold.1", "f");
	check_shown("f.part.0", "f");
	check_shown("f.constprop.0.isra.0.cold", "f");
	check_shown("f.llvm.15687231", "f");
	check_shown("f.avx2", "f.avx2");
	check_shown("f.0", "f.0");
	check_shown("f.colder", "f.colder");
	check_shown("f.cold0", "f.cold0");
	check_shown(".cold", ".cold");
	check_shown("cold", "cold");
	check_shown("12", "12");
	check_shown(".", ".");
	check_shown("main.part", "main");
	assert_int_equal(symbols__base_length("f.part.12.cold"), 1);
	assert_int_equal(symbols__base_length(""), 0);
}

static void test_mangled_names(void **state)
{
	(void)state;
	check_shown("_Z3barv", "bar");
	check_shown("_ZL3barv", "bar");
	check_shown("_ZN3foo3barEi", "foo::bar");
	check_shown("_ZNK3foo3barEi.part.0.cold", "foo::bar");
	check_shown("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back");
	check_shown("_ZSt4sortIPiEvT_S1_", "std::sort");
	check_shown("_ZN12_GLOBAL__N_13foo3barEv", "(anonymous namespace)::foo::bar");
	check_shown("_ZN3fooC2ERKS_", "foo::foo");
	check_shown("_ZN1a3fooIiED0Ev", "a::foo::~foo");
	check_shown("_ZNSsC1Ev", "std::basic_string::basic_string");
	check_shown("_ZNSs6appendEPKc", "std::basic_string::append");
	check_shown("_ZN3fooplERKS_", "foo::operator+");
	check_shown("_ZN3foodlEPv", "foo::operator delete");
	check_shown("_ZNK3foocvbEv", "foo::operator bool");
	check_shown("_ZNK3foocvRKNS_3barEEv", "foo::operator foo::bar const&");
	check_shown("_Zli3_kmy", "operator\"\"::_km");
	check_shown("_ZNK3foo3getB5cxx11Ev", "foo::get");
	check_shown("_ZThn16_N3foo3barEv", "thunk to foo::bar");
	check_shown("_ZTv0_n24_N3fooD1Ev", "thunk to foo::~foo");
	check_shown("_ZTch0_v8_n24_N3foo3barEv", "thunk to foo::bar");
}

/* Names inside functions, and names with back references. */
static void test_mangled_scopes(void **state)
{
	(void)state;
	check_shown("_ZZ4mainENKUlvE_clEv", "main::{lambda#1}::operator()");
	check_shown("_ZZN3foo3barEiENKUliE0_clEi", "foo::bar::{lambda#2}::operator()");
	check_shown("_ZZ4mainEN5local3runEv", "main::local::run");
	check_shown("_ZZ4mainEN5local3runEv_0", "main::local::run");
	check_shown("_ZN3fooUt_3barEv", "foo::{unnamed type#1}::bar");
	check_shown("_ZN1aIN1b1cEE3getINS1_1dEEEvS3_", "a::get");
	check_shown("_ZNSt8functionIFvN1a1bEEEC1IRFvS1_EvEEOT_", "std::function::function");
	check_shown("_ZNK1aIN1b1cEEcvNS0_1dEEv", "a::operator b::d");
	check_shown("_ZNK1aIN1b1cEN1e1fEEcvNS2_1gEEv", "a::operator e::g");
	check_shown("_ZNK1aIPKN1b1cEA3_iDnEcvNS0_1dEEv", "a::operator b::d");
	check_shown("_ZN1a1fIXadL_ZN1b1gEvEEEEvv", "a::f");
	check_shown("_ZN1a1fILi3ELb1ELc65EEEvv", "a::f");
	check_shown("_ZN1a1fIiNSt9enable_ifIXsrSt7is_sameIiiE5valueEiE4typeEE1gEv", "a::f::g");
	check_shown("_ZN1a1fIDTclL_Z1gvEEEE1hEv", "a::f::h");
}

static void test_unknown_names(void **state)
{
	static const char *const names[] = {
		"_Z",
		"_Zzzz",
		"_ZN3foo",
		"_Z4foo",
		"_ZNE",
		"_ZNEC1Ev",
		"_ZNS_3fooE",
		"_ZNS9_3fooE",
		"_ZC1v",
		"_ZN1aI",
		"_ZTVN1aE",
		"_ZN1aC9Ev",
		"_ZN1acvD",
		"_ZN1aIUE1bEv",
		"_ZN1aIXzzEE1bEv",
		"i",
		"_RNvC6_123foo3bar",
		"_ZTh",
		"_ZN99999999999999999999a",
		"_Z1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		check_shown(names[i], names[i]);
}

static void test_rust_names(void **state)
{
	(void)state;
	check_shown("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
	check_shown("_ZN4core3fmt5write17h0123456789abcdefE.llvm.123", "core::fmt::write");
	check_shown("_ZN4core3fmt5write17h0123456789abcdeXE",
		    "core::fmt::write::h0123456789abcdeX");
	check_shown("_ZN17h0123456789abcdefE", "h0123456789abcdef");
}

/* Nested types, also deeper than is shown.  In the first name, each argument refers to the one
 * before it twice, so the name would be endless if arguments were shown. */
static void test_deep_names(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[2048] = "_Z1fI1aI1bS0_E", *end = name + strlen(name);

	(void)state;
	for (int i = 1; i < 36; i++)
		end += sprintf(end, "S0_IS%c_S%c_E", digits[i], digits[i]);
	strcpy(end, "Evv");
	check_shown(name, "f");

	strcpy(name, "_Z1fI");
	memset(name + 5, 'P', 1500);
	strcpy(name + 1505, "iEvv");
	check_shown(name, "f");
	strcpy(name, "_ZN1acv");
	memset(name + 7, 'P', 1500);
	strcpy(name + 1507, "iEv");
	check_shown(name, name);
}

/* The parser reads each part of these types twice, so it would read the innermost one for ever. */
static void test_slow_names(void **state)
{
	char name[2048] = "_ZN1acv", *end = name + strlen(name);

	(void)state;
	for (int i = 0; i < 8; i++)
		end += sprintf(end, "T_I");
	strcpy(end, "iEEEEEEEEEv");
	check_shown(name, "a::operator T");
	for (int i = 8; i < 400; i++)
		end += sprintf(end, "T_I");
	*end++ = 'i';
	memset(end, 'E', 401);
	strcpy(end + 401, "v");
	check_shown(name, name);
}

/* A long name is not cut within a character. */
static void test_long_shown_names(void **state)
{
	char name[2 * SYMBOLS_NAME_BYTES_MAX + 1], *shown;

	(void)state;
	for (size_t lead = 0; lead < 3; lead++) {
		memset(name, 'a', lead);
		for (size_t at = lead; at + 3 < sizeof(name); at += 3)
			strcpy(name + at, "\xe2\x82\xac");
		shown = symbols__demangle(name);
		assert_in_range(strlen(shown), SYMBOLS_NAME_BYTES_MAX - 2, SYMBOLS_NAME_BYTES_MAX);
		assert_int_equal((strlen(shown) - lead) % 3, 0);
		free(shown);
	}
	/* Each part is a constructor, which repeats the name of its scope. */
	name[sprintf(name, "_ZN1000%0*d%s", 1000, 0, "C1C1C1C1C1E")] = '\0';
	name[7] = 'x';
	shown = symbols__demangle(name);
	assert_int_equal(strlen(shown), SYMBOLS_NAME_BYTES_MAX);
	free(shown);
	memset(name, 0x80, sizeof(name) - 1);
	shown = symbols__demangle(name);
	assert_in_range(strlen(shown), SYMBOLS_NAME_BYTES_MAX - 3, SYMBOLS_NAME_BYTES_MAX);
	free(shown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shown_names),    cmocka_unit_test(test_mangled_names),
		cmocka_unit_test(test_mangled_scopes), cmocka_unit_test(test_unknown_names),
		cmocka_unit_test(test_rust_names),     cmocka_unit_test(test_deep_names),
		cmocka_unit_test(test_slow_names),     cmocka_unit_test(test_long_shown_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
