// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake_objects.h"
#include "python/unicode.c"

#define FUZZ_ROUNDS 20000

/* Converts a copy of just this size, so that AddressSanitizer sees a read beyond it. */
static void check_utf8(const void *data, size_t length, unsigned int kind, const char *expected)
{
	void *copy = malloc(length * kind + 1);
	char *text;

	/* At an odd address: a target's string may lie anywhere. */
	memcpy((char *)copy + 1, data, length * kind);
	text = to_utf8((char *)copy + 1, length, kind);
	assert_string_equal(text, expected);
	free(text);
	free(copy);
}

#define CHECK_UTF8(data, expected) \
	check_utf8(data, sizeof(data) / sizeof((data)[0]), sizeof((data)[0]), expected)

static void latin_1(void **state)
{
	static const uint8_t bounds[] = { 1, 'a', 0x7f, 0x80, 0xe9, 0xff };

	(void)state;
	CHECK_UTF8(bounds, "\x01"
			   "a\x7f\xc2\x80\u00e9\u00ff");
	check_utf8("", 0, 1, "");
}

static void ucs_2(void **state)
{
	static const uint16_t bounds[] = { 'a',	   0x7f,   0x80,   0x7ff, 0x800,
					   0xd7ff, 0xe000, 0x20ac, 0xffff };

	(void)state;
	CHECK_UTF8(bounds, "a\x7f\xc2\x80\u07ff\u0800\ud7ff\ue000\u20ac\uffff");
}

static void ucs_4(void **state)
{
	static const uint32_t bounds[] = { 'a', 0x80, 0x800, 0xffff, 0x10000, 0x1f40d, 0x10ffff };

	(void)state;
	CHECK_UTF8(bounds, "a\xc2\x80\u0800\uffff\U00010000\U0001f40d\U0010ffff");
}

static void code_points_that_utf8_lacks_are_escaped(void **state)
{
	static const uint8_t nul[] = { 'a', 0, 'b' };
	/* Two surrogates are two code points in Python, even where they would make a pair. */
	static const uint16_t surrogates[] = { 0xd800, 0xdfff, 0xd83d, 0xde00, 'x', 0xdc80 };
	static const uint32_t wide[] = { 0, 0xdce9, 0x110000, 0xffffffff };

	(void)state;
	CHECK_UTF8(nul, "a\\x00b");
	CHECK_UTF8(surrogates, "\\ud800\\udfff\\ud83d\\ude00x\\udc80");
	CHECK_UTF8(wide, "\\x00\\udce9\\U00110000\\Uffffffff");
}

static void other_kinds_are_refused(void **state)
{
	(void)state;
	for (unsigned int kind = 0; kind < 16; kind++)
		if (kind != 1 && kind != 2 && kind != 4)
			assert_null(to_utf8("abcdefgh", 1, kind));
}

static void check_sanitized(const char *bytes, size_t length, const char *expected)
{
	char *copy = malloc(length ? length : 1);
	char *text;

	memcpy(copy, bytes, length);
	text = unicode__sanitize(copy, length);
	assert_string_equal(text, expected);
	free(text);
	free(copy);
}

#define CHECK_SANITIZED(bytes, expected) check_sanitized(bytes, sizeof(bytes) - 1, expected)

static void valid_utf8_is_kept(void **state)
{
	(void)state;
	CHECK_SANITIZED("", "");
	CHECK_SANITIZED("plain\n\x7f", "plain\n\x7f");
	CHECK_SANITIZED("\xc2\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff",
			"\xc2\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff");
}

static void invalid_utf8_is_escaped(void **state)
{
	(void)state;
	CHECK_SANITIZED("a\0b", "a\\x00b");
	CHECK_SANITIZED("caf\xe9", "caf\\xe9");
	CHECK_SANITIZED("\xe9!", "\\xe9!");
	CHECK_SANITIZED("\x80\xbf", "\\x80\\xbf");
	CHECK_SANITIZED("\xc0\x80", "\\xc0\\x80");
	CHECK_SANITIZED("\xc1\xbf", "\\xc1\\xbf");
	CHECK_SANITIZED("\xe0\x9f\xbf", "\\xe0\\x9f\\xbf");
	CHECK_SANITIZED("\xed\xa0\x80", "\\xed\\xa0\\x80");
	CHECK_SANITIZED("\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf");
	CHECK_SANITIZED("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	CHECK_SANITIZED("\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80");
	CHECK_SANITIZED("\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80");
	CHECK_SANITIZED("\xff", "\\xff");
	CHECK_SANITIZED("\xe2\x82", "\\xe2\\x82");
	CHECK_SANITIZED("\xe2\x82\xe2\x82\xac", "\\xe2\\x82\u20ac");
	CHECK_SANITIZED("\xf0\x9f\x90", "\\xf0\\x9f\\x90");
}

static void sanitized_bytes_are_valid(void **state)
{
	static const uint8_t likely[] = { 0, 'a', 0x80, 0xbf, 0xc2, 0xe0, 0xed, 0xf0, 0xf4, 0xff };
	char bytes[64];

	(void)state;
	srand(8);
	for (int round = 0; round < FUZZ_ROUNDS; round++) {
		size_t length = rand() % sizeof(bytes);
		char *text;

		for (size_t i = 0; i < length; i++)
			bytes[i] = rand() % 4 ? likely[rand() % sizeof(likely)] : rand();
		text = unicode__sanitize(bytes, length);
		check_sanitized(text, strlen(text), text);
		free(text);
	}
}

static void check_read(const struct offsets *offsets, const void *object, const char *expected)
{
	char *text;

	assert_int_equal(unicode__read(getpid(), offsets, (uintptr_t)object, &text), 0);
	assert_string_equal(text, expected);
	free(text);
}

static void check_refused(const struct offsets *offsets, const void *object, int error)
{
	char *text = "untouched";

	assert_int_equal(unicode__read(getpid(), offsets, (uintptr_t)object, &text), error);
	assert_string_equal(text, "untouched");
}

static void every_form_is_read(void **state)
{
	static const uint16_t two[] = { 0x3c0, 0x20ac, 0xdce9 };
	static const uint32_t four[] = { 'f', 0x1f40d };

	(void)state;
	for (int minor = 6; minor <= 15; minor++) {
		struct offsets offsets = fake_offsets(minor);
		uint8_t object[FAKE_STR_BYTES];

		fake_str(&offsets, object, FAKE_ASCII, "abc", 3, 1);
		check_read(&offsets, object, "abc");
		fake_str(&offsets, object, FAKE_ASCII, "", 0, 1);
		check_read(&offsets, object, "");
		fake_str(&offsets, object, FAKE_COMPACT, "caf\xe9", 4, 1);
		check_read(&offsets, object, "caf\u00e9");
		fake_str(&offsets, object, FAKE_COMPACT, two, 3, 2);
		check_read(&offsets, object, "\u03c0\u20ac\\udce9");
		fake_str(&offsets, object, FAKE_COMPACT, four, 2, 4);
		check_read(&offsets, object, "f\U0001f40d");
		fake_str(&offsets, object, FAKE_SEPARATE, two, 3, 2);
		check_read(&offsets, object, "\u03c0\u20ac\\udce9");
		fake_str(&offsets, object, FAKE_SEPARATE, "caf\xe9", 4, 1);
		check_read(&offsets, object, "caf\u00e9");
	}
}

static void invalid_strings_are_refused(void **state)
{
	(void)state;
	for (int minor = 6; minor <= 15; minor++) {
		struct offsets offsets = fake_offsets(minor);
		uint8_t object[FAKE_STR_BYTES];
		uint8_t *bits = object + offsets.unicode_state;

		for (unsigned int kind = 0; kind < 8; kind++) {
			fake_str(&offsets, object, FAKE_COMPACT, "abc", 3, 1);
			*bits = (*bits & ~(7 << 2)) | kind << 2;
			if (kind != 1 && kind != 2 && kind != 4)
				check_refused(&offsets, object, -EINVAL);
		}
		/* ASCII with two bytes per character. */
		fake_str(&offsets, object, FAKE_ASCII, "abc", 3, 1);
		*bits = (*bits & ~(7 << 2)) | 2 << 2;
		check_refused(&offsets, object, -EINVAL);
		/* Before 3.12, this bit says whether the string is ready. */
		fake_str(&offsets, object, FAKE_ASCII, "abc", 3, 1);
		*bits &= 0x7f;
		if (minor < 12)
			check_refused(&offsets, object, -EINVAL);
		else
			check_read(&offsets, object, "abc");
	}
}

static void strings_of_2_7_are_read(void **state)
{
	struct offsets offsets = fake_offsets_2_7();
	uint8_t object[FAKE_STR_BYTES], type[FAKE_TYPE_BYTES];

	(void)state;
	fake_python2_type(&offsets, type, FAKE_STRING_TYPE);
	fake_python2_str(&offsets, object, type, "abc", 3);
	check_read(&offsets, object, "abc");
	fake_python2_str(&offsets, object, type, "", 0);
	check_read(&offsets, object, "");
	fake_python2_str(&offsets, object, type, "caf\xc3\xa9 \xe9 a\0b", 11);
	check_read(&offsets, object, "caf\u00e9 \\xe9 a\\x00b");
}

static void other_objects_of_2_7_are_refused(void **state)
{
	static const uint64_t lengths[] = { UNICODE_BYTES_MAX + 1, UINT64_MAX, 1ULL << 63 };
	struct offsets offsets = fake_offsets_2_7();
	uint8_t object[FAKE_STR_BYTES], type[FAKE_TYPE_BYTES];

	(void)state;
	fake_python2_type(&offsets, type, ~(FAKE_STRING_TYPE | FAKE_UNICODE_TYPE));
	fake_python2_str(&offsets, object, type, "abc", 3);
	check_refused(&offsets, object, -EINVAL);
	fake_python2_type(&offsets, type, FAKE_UNICODE_TYPE);
	fake_python2_str(&offsets, object, type, "abc", 3);
	check_refused(&offsets, object, -EINVAL);
	fake_python2_str(&offsets, object, (void *)8, "abc", 3);
	check_refused(&offsets, object, -EFAULT);
	fake_python2_type(&offsets, type, FAKE_STRING_TYPE);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		fake_python2_str(&offsets, object, type, "abc", 3);
		memcpy(object + offsets.varobject_size, &lengths[i], sizeof(lengths[i]));
		check_refused(&offsets, object, -EINVAL);
	}
}

static void long_strings_are_refused(void **state)
{
	static const uint64_t lengths[] = { UNICODE_BYTES_MAX + 1, UINT64_MAX, 1ULL << 63,
					    1ULL << 62 };
	struct offsets offsets = fake_offsets(12);
	uint8_t object[FAKE_STR_BYTES];
	uint64_t length = UNICODE_BYTES_MAX / 4 + 1;
	char *long_text = calloc(1, UNICODE_BYTES_MAX + 1);
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		fake_str(&offsets, object, FAKE_SEPARATE, "x", 1, 1);
		memcpy(object + offsets.unicode_length, &lengths[i], sizeof(lengths[i]));
		check_refused(&offsets, object, -EINVAL);
	}
	fake_str(&offsets, object, FAKE_SEPARATE, long_text, length, 4);
	check_refused(&offsets, object, -EINVAL);
	memset(long_text, 'x', UNICODE_BYTES_MAX);
	fake_str(&offsets, object, FAKE_SEPARATE, long_text, UNICODE_BYTES_MAX, 1);
	assert_int_equal(unicode__read(getpid(), &offsets, (uintptr_t)object, &text), 0);
	assert_string_equal(text, long_text);
	free(text);
	free(long_text);
}

static void unreadable_memory_is_reported(void **state)
{
	struct offsets offsets = fake_offsets(12);
	size_t page = sysconf(_SC_PAGESIZE);
	uint8_t *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t object[FAKE_STR_BYTES];
	uint64_t nowhere = 8;
	uint8_t *last;

	(void)state;
	assert_ptr_not_equal(pages, MAP_FAILED);
	munmap(pages + page, page);
	check_refused(&offsets, NULL, -EFAULT);
	check_refused(&offsets, (void *)UINTPTR_MAX, -EFAULT);
	check_refused(&offsets, pages + page, -EFAULT);
	fake_str(&offsets, object, FAKE_SEPARATE, "abc", 3, 1);
	memcpy(object + offsets.unicode_data_any, &nowhere, sizeof(nowhere));
	check_refused(&offsets, object, -EFAULT);
	/* A string that ends with the mapping, and one that goes on beyond it. */
	last = pages + page - offsets.unicode_ascii_size - 3;
	fake_str(&offsets, last, FAKE_ASCII, "abc", 3, 1);
	check_read(&offsets, last, "abc");
	last[offsets.unicode_length] = 4;
	check_refused(&offsets, last, -EFAULT);
	munmap(pages, page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latin_1),
		cmocka_unit_test(ucs_2),
		cmocka_unit_test(ucs_4),
		cmocka_unit_test(code_points_that_utf8_lacks_are_escaped),
		cmocka_unit_test(other_kinds_are_refused),
		cmocka_unit_test(valid_utf8_is_kept),
		cmocka_unit_test(invalid_utf8_is_escaped),
		cmocka_unit_test(sanitized_bytes_are_valid),
		cmocka_unit_test(every_form_is_read),
		cmocka_unit_test(invalid_strings_are_refused),
		cmocka_unit_test(strings_of_2_7_are_read),
		cmocka_unit_test(other_objects_of_2_7_are_refused),
		cmocka_unit_test(long_strings_are_refused),
		cmocka_unit_test(unreadable_memory_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
