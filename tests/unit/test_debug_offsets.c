// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <libelf.h>

#include "debug_offsets_images.h"
#include "offsets.h"

#define WORDS_MAX	128
#define FUZZ_ROUNDS	20000
#define THREADED	2	   /* the word that says whether the build is free-threaded */
#define CODE_GENERATION 20	   /* the word with its offset, from 3.14 on */
#define TLBC_GENERATION 21	   /* the same, in 3.14t and 3.15t */
#define KEPT		0xaaaaaaaa /* an offset that no version has */
#define RUNTIME_SIZE	3
#define INTERPS_HEAD	5

#define IMAGE_OF(name)                               \
	{                                            \
		name, sizeof(name) / sizeof(name[0]) \
	}

static const struct image {
	const uint64_t *words;
	size_t count;
} images[] = {
	IMAGE_OF(image_3_13_0),	  IMAGE_OF(image_3_14_10),  IMAGE_OF(image_3_15_2),
	IMAGE_OF(image_3_13_18t), IMAGE_OF(image_3_14_10t), IMAGE_OF(image_3_15_2t),
};

#define IMAGE_COUNT (sizeof(images) / sizeof(images[0]))

static struct offsets look_up(const uint64_t *words)
{
	struct offsets offsets;

	assert_int_equal(offsets__lookup(words[1],
					 words[THREADED] ? BUILD_FREE_THREADED : BUILD_WITH_GIL,
					 &offsets),
			 0);
	return offsets;
}

/* The same, with the fields that depend on the architecture, which are only published. */
static struct offsets look_up_all(const uint64_t *words)
{
	struct offsets offsets = look_up(words);

	if (words[1] >> 16 >= 0x030e)
		offsets.interp_code_generation = words[CODE_GENERATION];
	if (words[THREADED] && words[1] >> 16 >= 0x030e)
		offsets.interp_tlbc_generation = words[TLBC_GENERATION];
	return offsets;
}

static int apply(const void *bytes, size_t length, struct offsets *offsets)
{
	/* A copy of just this length, so that AddressSanitizer sees a read beyond it. */
	uint8_t *copy = malloc(length);
	int result;

	memcpy(copy, bytes, length);
	result = debug_offsets__apply(copy, length, offsets);
	free(copy);
	return result;
}

static void releases_agree_with_the_tables(void **state)
{
	(void)state;
	for (size_t i = 0; i < IMAGE_COUNT; i++) {
		struct offsets offsets = look_up(images[i].words);
		struct offsets table = look_up_all(images[i].words);

		assert_int_equal(apply(images[i].words, images[i].count * 8, &offsets), 0);
		assert_memory_equal(&offsets, &table, sizeof(offsets));
	}
}

/* Fields that no version publishes. */
static const size_t unpublished[] = {
#define FIELD(name) offsetof(struct offsets, name)
	FIELD(tstate_frame),
	FIELD(tstate_cframe),
	FIELD(tstate_datastack_top),
	FIELD(tstate_root_cframe),
	FIELD(cframe_current_frame),
	FIELD(cframe_previous),
	FIELD(frame_is_entry),
	FIELD(frame_stacktop),
	FIELD(frame_localsplus),
	FIELD(generator_state),
	FIELD(generator_frame),
	FIELD(code_firsttraceable),
	FIELD(code_version),
	FIELD(tlbc_size),
	FIELD(tlbc_entries),
	FIELD(unicode_kind_bit),
	FIELD(unicode_data_any),
	FIELD(object_dict_before),
	FIELD(object_values_before),
	FIELD(tstate_interp),
	FIELD(gil_last_holder),
	FIELD(gil_locked),
	FIELD(tstate_state),
	FIELD(tstate_gilstate_counter),
	FIELD(dict_mask),
	FIELD(dict_table),
	FIELD(keys_size),
	FIELD(keys_kind),
	FIELD(keys_log2_index_bytes),
	FIELD(keys_nentries),
	FIELD(keys_indices),
	FIELD(values_valid),
	FIELD(values_first),
	FIELD(int_value),
	FIELD(type_dict),
	FIELD(type_qualname),
	FIELD(function_code),
	FIELD(function_name),
	FIELD(function_qualname),
	FIELD(function_dict),
	FIELD(function_closure),
	FIELD(tstate_whence),
	FIELD(tstate_calls_left),
	FIELD(tstate_calls_limit),
	FIELD(tstate_current_executor),
#undef FIELD
};

#define UNPUBLISHED_COUNT (sizeof(unpublished) / sizeof(unpublished[0]))

static uint32_t *field_at(struct offsets *offsets, size_t field)
{
	return (uint32_t *)((uint8_t *)offsets + field);
}

/* Fields that only some builds publish: those of thread-local bytecode, and since 3.15 the size of
 * a str and more of types. */
static const struct sometimes {
	size_t field;
	uint64_t since;
	bool free_threaded;
} sometimes[] = {
#define FIELD(name) offsetof(struct offsets, name)
	{ FIELD(interp_code_generation), 0x030e0000, false },
	{ FIELD(interp_tlbc_generation), 0x030e0000, true },
	{ FIELD(frame_tlbc_index), 0x030e0000, true },
	{ FIELD(code_tlbc), 0x030e0000, true },
	{ FIELD(tstate_base_frame), 0x030f0000, false },
	{ FIELD(tstate_holds_gil), 0x030f0000, false },
	{ FIELD(unicode_compact_size), 0x030f0000, false },
	{ FIELD(type_basicsize), 0x030f0000, false },
	{ FIELD(type_dictoffset), 0x030f0000, false },
	{ FIELD(type_cached_keys), 0x030f0000, false },
#undef FIELD
};

#define SOMETIMES_COUNT (sizeof(sometimes) / sizeof(sometimes[0]))

static bool is_told(const struct sometimes *field, const uint64_t *words)
{
	return words[1] >= field->since && words[THREADED] >= field->free_threaded;
}

/* Published fields are absent and all others KEPT, so that every field that is taken shows. */
static struct offsets unmistakable(const uint64_t *words)
{
	struct offsets offsets = look_up(words);
	uint32_t object_type = offsets.object_type;

#define X(field) offsets.field = OFFSET_ABSENT;
	OFFSET_FIELDS(X)
#undef X
	offsets.object_type = object_type;
	for (size_t i = 0; i < UNPUBLISHED_COUNT; i++)
		*field_at(&offsets, unpublished[i]) = KEPT;
	for (size_t i = 0; i < SOMETIMES_COUNT; i++)
		if (!is_told(&sometimes[i], words))
			*field_at(&offsets, sometimes[i].field) = KEPT;
	return offsets;
}

static void published_fields_are_taken(void **state)
{
	(void)state;
	for (size_t i = 0; i < IMAGE_COUNT; i++) {
		const uint64_t *words = images[i].words;
		struct offsets offsets = unmistakable(words), table = look_up(words);

		assert_int_equal(apply(words, images[i].count * 8, &offsets), 0);
		for (size_t j = 0; j < UNPUBLISHED_COUNT; j++) {
			assert_int_equal(*field_at(&offsets, unpublished[j]), KEPT);
			*field_at(&offsets, unpublished[j]) = *field_at(&table, unpublished[j]);
		}
		for (size_t j = 0; j < SOMETIMES_COUNT; j++) {
			uint32_t *field = field_at(&offsets, sometimes[j].field);

			assert_int_equal(*field == KEPT, !is_told(&sometimes[j], words));
			assert_int_not_equal(*field, OFFSET_ABSENT);
			*field = *field_at(&table, sometimes[j].field);
		}
		assert_memory_equal(&offsets, &table, sizeof(offsets));
	}
}

static void the_patch_release_is_taken(void **state)
{
	struct offsets offsets;

	(void)state;
	assert_int_equal(offsets__lookup(0x030d0000, BUILD_WITH_GIL, &offsets), 0);
	assert_int_equal(apply(image_3_13_0, sizeof(image_3_13_0), &offsets), 0);
	assert_int_equal(offsets.version, 0x030d00f0);
}

static void cut_tables_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < IMAGE_COUNT; i++) {
		bool refused = false;

		for (size_t length = images[i].count * 8; length-- > 0;) {
			struct offsets offsets = unmistakable(images[i].words), before = offsets;
			int result = apply(images[i].words, length, &offsets);

			/* Bytes after the last field that is read may be missing. */
			refused = refused || result;
			assert_int_equal(result, refused ? -EINVAL : 0);
			if (refused)
				assert_memory_equal(&offsets, &before, sizeof(offsets));
		}
		assert_true(refused);
	}
}

/* Applies 3.13's image with its word INDEX replaced; *OFFSETS must be left alone. */
static int apply_changed(size_t index, uint64_t word)
{
	struct offsets offsets = unmistakable(image_3_13_0), before = offsets;
	uint64_t words[WORDS_MAX];
	int result;

	memcpy(words, image_3_13_0, sizeof(image_3_13_0));
	words[index] = word;
	result = apply(words, sizeof(image_3_13_0), &offsets);
	assert_memory_equal(&offsets, &before, result ? sizeof(offsets) : 0);
	return result;
}

static void other_forms_are_refused(void **state)
{
	(void)state;
	assert_int_equal(apply_changed(0, 0), -EINVAL);
	assert_int_equal(apply_changed(0, image_3_13_0[0] + 1), -EINVAL);
	assert_int_equal(apply_changed(1, 0x030c00f0), -EINVAL);
	assert_int_equal(apply_changed(1, 0x031000a1), -EINVAL);
	assert_int_equal(apply_changed(1, 0x040d00f0), -EINVAL);
	assert_int_equal(apply_changed(1, 0x1030d00f0), -EINVAL);
	assert_int_equal(apply_changed(THREADED, 1), -EINVAL);
	assert_int_equal(apply_changed(THREADED, UINT64_MAX), -EINVAL);
}

static void the_free_threaded_flag_is_read(void **state)
{
	uint64_t words[WORDS_MAX];

	(void)state;
	for (size_t i = 0; i < IMAGE_COUNT; i++) {
		const void *bytes = images[i].words;

		assert_int_equal(debug_offsets__free_threaded(bytes, images[i].count * 8),
				 images[i].words[THREADED]);
		assert_int_equal(debug_offsets__free_threaded(bytes, 23), -EINVAL);
	}
	memcpy(words, image_3_13_0, sizeof(image_3_13_0));
	words[THREADED] = 2;
	assert_int_equal(debug_offsets__free_threaded((void *)words, sizeof(words)), -EINVAL);
	words[THREADED] = UINT64_MAX;
	assert_int_equal(debug_offsets__free_threaded((void *)words, sizeof(words)), -EINVAL);
	words[0]++;
	assert_int_equal(debug_offsets__free_threaded((void *)words, sizeof(words)), -EINVAL);
}

static void another_build_is_refused(void **state)
{
	struct offsets offsets = look_up(image_3_15_2), before = offsets;
	uint64_t words[WORDS_MAX];

	(void)state;
	memcpy(words, image_3_15_2t, sizeof(image_3_15_2t));
	assert_int_equal(apply(words, sizeof(image_3_15_2t), &offsets), -EINVAL);
	assert_memory_equal(&offsets, &before, sizeof(offsets));
	/* A build with a GIL that claims to have none: the index of its bytecode copies would be
	 * the code pointer. */
	memcpy(words, image_3_15_2, sizeof(image_3_15_2));
	words[THREADED] = 1;
	offsets = look_up(image_3_15_2t);
	assert_int_equal(apply(words, sizeof(image_3_15_2), &offsets), -EINVAL);
	/* Builds without a GIL that claim to have one. */
	memcpy(words, image_3_15_2t, sizeof(image_3_15_2t));
	words[THREADED] = 0;
	offsets = look_up(image_3_15_2);
	assert_int_equal(apply(words, sizeof(image_3_15_2t), &offsets), -EINVAL);
	memcpy(words, image_3_13_18t, sizeof(image_3_13_18t));
	words[THREADED] = 0;
	offsets = look_up(image_3_13_0);
	assert_int_equal(apply(words, sizeof(image_3_13_18t), &offsets), -EINVAL);
}

/* In 3.13's image, frame_code is 0 and frame_previous is 8. */
static void fields_in_the_same_place_are_refused(void **state)
{
	const size_t frame_previous = 29, frame_code = 30;

	(void)state;
	assert_int_equal(image_3_13_0[frame_previous], 8);
	assert_int_equal(image_3_13_0[frame_code], 0);
	assert_int_equal(apply_changed(frame_code, 8), -EINVAL);
	assert_int_equal(apply_changed(frame_code, 16), 0);
}

/* Applies 3.15's image as if it were 3.16's, with a field moved. */
static void a_newer_version_is_read_in_the_newest_form(void **state)
{
	static const struct image newest[] = { IMAGE_OF(image_3_15_2), IMAGE_OF(image_3_15_2t) };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		uint64_t words[WORDS_MAX], version = 0x031000f0;
		struct offsets offsets, known = look_up_all(newest[i].words);

		memcpy(words, newest[i].words, newest[i].count * 8);
		words[1] = version;
		words[INTERPS_HEAD] += 64;
		assert_int_equal(offsets__lookup(version, i, &offsets), -ENODATA);
		assert_true(offsets__is_newer(&offsets));
		assert_int_equal(apply(words, newest[i].count * 8, &offsets), 0);
		assert_true(offsets__is_newer(&offsets));
		assert_false(offsets__is_newer(&known));
		known.version = version;
		known.runtime_interpreters_head += 64;
		known.moved = 1;
		known.code_firsttraceable = OFFSET_ABSENT;
		known.code_version = OFFSET_ABSENT;
		known.tstate_whence = OFFSET_ABSENT;
		known.tstate_calls_left = OFFSET_ABSENT;
		known.tstate_calls_limit = OFFSET_ABSENT;
		known.tstate_current_executor = OFFSET_ABSENT;
		known.tstate_state = OFFSET_ABSENT;
		assert_memory_equal(&offsets, &known, sizeof(offsets));
	}
}

/* A patch release or a prerelease may have moved published fields. */
static void a_release_with_moved_fields_counts_as_newer(void **state)
{
	(void)state;
	for (size_t i = 0; i < IMAGE_COUNT; i++) {
		uint64_t words[WORDS_MAX];
		struct offsets offsets = look_up(images[i].words);

		memcpy(words, images[i].words, images[i].count * 8);
		words[INTERPS_HEAD] += 64;
		assert_int_equal(apply(words, images[i].count * 8, &offsets), 0);
		assert_true(offsets__is_newer(&offsets));
		assert_int_equal(offsets.tstate_whence, OFFSET_ABSENT);
		assert_int_equal(offsets.code_version, OFFSET_ABSENT);
		/* Published since 3.15. */
		assert_int_equal(offsets.tstate_holds_gil != OFFSET_ABSENT,
				 words[1] >> 16 >= 0x030f);
	}
}

static void another_minor_version_is_refused(void **state)
{
	struct offsets offsets = look_up(image_3_14_10), before = offsets;

	(void)state;
	assert_int_equal(apply(image_3_13_0, sizeof(image_3_13_0), &offsets), -EINVAL);
	assert_memory_equal(&offsets, &before, sizeof(offsets));
}

static void impossible_offsets_are_refused(void **state)
{
	uint64_t size = image_3_13_0[RUNTIME_SIZE];

	(void)state;
	assert_int_equal(apply_changed(INTERPS_HEAD, 0), 0);
	assert_int_equal(apply_changed(INTERPS_HEAD, 4), -EINVAL);
	assert_int_equal(apply_changed(INTERPS_HEAD, 0x10000), -EINVAL);
	assert_int_equal(apply_changed(INTERPS_HEAD, size), -EINVAL);
	assert_int_equal(apply_changed(INTERPS_HEAD, 1ULL << 32), -EINVAL);
	assert_int_equal(apply_changed(INTERPS_HEAD, UINT64_MAX - 7), -EINVAL);
	assert_int_equal(apply_changed(RUNTIME_SIZE, 0), -EINVAL);
	assert_int_equal(apply_changed(RUNTIME_SIZE, 7), -EINVAL);
	assert_int_equal(apply_changed(RUNTIME_SIZE, 632), -EINVAL);
	assert_int_equal(apply_changed(RUNTIME_SIZE, 640), 0);
	assert_int_equal(apply_changed(RUNTIME_SIZE, 1ULL << 40), -EINVAL);
}

static void random_bytes_are_safe(void **state)
{
	static const uint64_t tempting[] = { 0, 1, 7, 8, 0xffff, 0x10000, 1ULL << 32, UINT64_MAX };
	size_t accepted = 0;

	(void)state;
	srand(13);
	for (int round = 0; round < FUZZ_ROUNDS; round++) {
		const struct image *image = &images[round % IMAGE_COUNT];
		struct offsets offsets = look_up(image->words);
		uint64_t words[WORDS_MAX];
		struct layout layout;

		memcpy(words, image->words, image->count * 8);
		for (int change = rand() % 4; change >= 0; change--)
			words[rand() % image->count] =
				rand() % 2 ? tempting[rand() % 8] : (uint64_t)(rand() % 4096);
		if (apply(words, image->count * 8, &offsets))
			continue;
		accepted++;
		if (offsets__layout(&offsets, &layout) == 0)
			assert_true(layout.frame_bytes <= FRAME_FIELD_MAX);
	}
	assert_in_range(accepted, 1, FUZZ_ROUNDS - 1);
	for (int round = 0; round < FUZZ_ROUNDS; round++) {
		struct offsets offsets = look_up(image_3_13_0);
		uint8_t bytes[1024];
		size_t length = rand() % sizeof(bytes);

		for (size_t i = 0; i < length; i++)
			bytes[i] = rand();
		assert_int_not_equal(apply(bytes, length, &offsets), 0);
	}
}

/* Reads the first ROOM bytes of section .PyRuntime of the file at PATH.  Returns ROOM, or 0: there
 * is no such section. */
static size_t read_runtime_section(const char *path, uint8_t *bytes, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	Elf_Scn *section = NULL;
	size_t names, length = 0;

	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	while (!length && (section = elf_nextscn(elf, section))) {
		size_t offset = elf64_getshdr(section)->sh_offset;

		if (strcmp(elf_strptr(elf, names, elf64_getshdr(section)->sh_name), ".PyRuntime"))
			continue;
		assert_int_equal(pread(fd, bytes, room, offset), room);
		length = room;
	}
	elf_end(elf);
	close(fd);
	return length;
}

/* For every Python from 3.13 on that is installed here, its file agrees with our table. */
static void installed_pythons_agree_with_the_tables(void **state)
{
	static const char *const places[] = {
		"~/.pyenv/versions/3.1[3-5].*/lib/libpython3.1[3-5].so.1.0",
		"/usr/lib/*/libpython3.1[3-5].so.1.0",
		"/usr/bin/python3.1[3-5]",
		"/var/cache/pybpfprof-tests/pythons/*/usr/bin/python3.1[3-5]",
	};
	size_t found = 0;

	(void)state;
	elf_version(EV_CURRENT);
	for (size_t place = 0; place < sizeof(places) / sizeof(places[0]); place++) {
		glob_t paths;

		if (glob(places[place], GLOB_TILDE, NULL, &paths))
			continue;
		for (size_t i = 0; i < paths.gl_pathc; i++) {
			uint64_t words[WORDS_MAX];
			size_t length = read_runtime_section(paths.gl_pathv[i], (uint8_t *)words,
							     sizeof(words));
			struct offsets offsets, table;

			if (!length)
				continue;
			offsets = look_up(words);
			table = look_up_all(words);
			assert_int_equal(apply(words, length, &offsets), 0);
			assert_memory_equal(&offsets, &table, sizeof(table));
			found++;
		}
		globfree(&paths);
	}
	if (!found)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(releases_agree_with_the_tables),
		cmocka_unit_test(published_fields_are_taken),
		cmocka_unit_test(the_patch_release_is_taken),
		cmocka_unit_test(cut_tables_are_refused),
		cmocka_unit_test(other_forms_are_refused),
		cmocka_unit_test(the_free_threaded_flag_is_read),
		cmocka_unit_test(another_build_is_refused),
		cmocka_unit_test(fields_in_the_same_place_are_refused),
		cmocka_unit_test(a_newer_version_is_read_in_the_newest_form),
		cmocka_unit_test(a_release_with_moved_fields_counts_as_newer),
		cmocka_unit_test(another_minor_version_is_refused),
		cmocka_unit_test(impossible_offsets_are_refused),
		cmocka_unit_test(random_bytes_are_safe),
		cmocka_unit_test(installed_pythons_agree_with_the_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
