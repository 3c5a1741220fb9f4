// SPDX-License-Identifier: BSD-2-Clause
/* Code objects that are sent with the first stack that has them, as user space understands them. */
#include <string.h>

#include "harness.h"
#include "python/code.h"

#define OBJECT_BYTES 256
#define ISLAND_BYTES 4096 /* whole pages */
#define FIRST_LINE   42
#define NAMES	     "name", "dir/file.py", 5
#define NOT_HASHED   UINT64_MAX

#define LAST_WITHOUT_VERSION 0x030b0000

static const char table[CODE_PIECE_BYTES] = { 1, 2, 3, 4, 5 };

/* Makes CODE(NUMBER) a code object; its line table has so many bytes. */
static void make_code(struct image *image, uint32_t number, const char *name, const char *file,
		      size_t table_bytes)
{
	const struct offsets *offsets = &image->offsets;
	uint64_t code = CODE(number), text = image__text(image, name);
	uint32_t first_line = FIRST_LINE;

	memset((void *)code, 0, 0x100);
	image__set(code, offsets->object_type, IMAGE_CODE_TYPE);
	image__set(code, offsets->code_name, text);
	if (offsets->code_qualname != OFFSET_ABSENT)
		image__set(code, offsets->code_qualname, text);
	image__set(code, offsets->code_filename, image__text(image, file));
	image__set(code, offsets->code_linetable,
		   image__object(image, offsets->bytes_data, table, table_bytes));
	memcpy((void *)(code + offsets->code_firstlineno), &first_line, sizeof(first_line));
}

/* The last one that was sent. */
static void assert_sent(const struct image *image, uint32_t number, const char *name,
			const char *file, size_t table_bytes)
{
	const struct code_record *record = &kernel.code_record;
	struct code code;

	assert_int_equal(record->serial, TGID);
	assert_int_equal(record->address, CODE(number));
	assert_int_not_equal(record->identity, 0);
	assert_int_equal(code__decode(&image->offsets, IMAGE_CODE_TYPE, record,
				      kernel.code_record_size, &code),
			 0);
	assert_string_equal(code.name, name);
	assert_string_equal(code.filename, file);
	assert_int_equal(code.first_line, FIRST_LINE);
	assert_int_equal(code.line_table_length, table_bytes);
	assert_memory_equal(code.line_table, table, table_bytes);
	code__free(&code);
}

static void sends_a_code_object_once(void **state)
{
	struct image *image = *state;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);

	make_code(image, 0, "outer", "a.py", 3);
	make_code(image, 1, NAMES);
	image__call(image, tstate, CODE(0), 1);
	kernel__sample();
	assert_int_equal(kernel.code_records, 1);
	assert_sent(image, 0, "outer", "a.py", 3);
	image__call(image, tstate, CODE(1), 1);
	kernel__sample();
	assert_int_equal(kernel.code_records, 2);
	assert_sent(image, 1, NAMES);
	image__call(image, tstate, CODE(1), 2);
	kernel__sample();
	assert_int_equal(kernel.definition_count, 3);
	assert_int_equal(kernel.code_records, 2);
}

static void sends_another_at_the_same_address(void **state)
{
	struct image *image = *state;

	make_code(image, 0, NAMES);
	harness__python_thread(image, image__interp(image), 0, 1);
	kernel__identify(TGID, IDENTIFIED_WHOLLY);
	kernel__sample();
	make_code(image, 0, "another", "b.py", 0);
	kernel__sample();
	assert_int_equal(kernel.code_records, 2);
	assert_sent(image, 0, "another", "b.py", 0);
	/* And the first one when it comes again, for user space has forgotten it. */
	make_code(image, 0, NAMES);
	kernel__sample();
	assert_int_equal(kernel.code_records, 3);
	assert_sent(image, 0, NAMES);
}

/* All of it lies at the same addresses. */
static void sends_another_that_has_other_lines(void **state)
{
	struct image *image = *state;
	const uint8_t other[] = { 1, 2, 3, 4, 9 };
	struct code code;
	uint64_t lines;

	make_code(image, 0, NAMES);
	lines = image__get(CODE(0), image->layout.code_line_table);
	image__set(lines, image->layout.object_size + sizeof(uint64_t), NOT_HASHED);
	harness__python_thread(image, image__interp(image), 0, 1);
	kernel__identify(TGID, IDENTIFIED_WHOLLY);
	kernel__sample();
	assert_sent(image, 0, NAMES);
	memcpy((void *)(lines + image->offsets.bytes_data), other, sizeof(other));
	kernel__sample();
	assert_int_equal(kernel.code_records, 2);
	assert_int_equal(code__decode(&image->offsets, IMAGE_CODE_TYPE, &kernel.code_record,
				      kernel.code_record_size, &code),
			 0);
	assert_memory_equal(code.line_table, other, sizeof(other));
	code__free(&code);
}

/* Of processes with equal addresses, as forked ones have. */
static void sends_those_of_each_process(void **state)
{
	struct image *image = *state;

	make_code(image, 0, NAMES);
	harness__python_thread(image, image__interp(image), 0, 1);
	kernel__sample();
	kernel__add_target(TGID + 1, image->interpreters, 0, IMAGE_CODE_TYPE);
	kernel.tgid = TGID + 1;
	kernel__sample();
	assert_int_equal(kernel.code_records, 2);
	assert_int_equal(kernel.code_record.serial, TGID + 1);
}

static void sends_what_is_as_large_as_can_be(void **state)
{
	struct image *image = *state;
	size_t most = CODE_PIECE_BYTES - image->layout.bytes_data;

	make_code(image, 0, "name", "file.py", most);
	harness__python_thread(image, image__interp(image), 0, 1);
	kernel__sample();
	assert_sent(image, 0, "name", "file.py", most);
}

/* Moves the object of BYTES that CODE(NUMBER) has at FIELD to where nothing is behind it. */
static void move_to_an_end(struct image *image, uint32_t number, uint32_t field, size_t bytes)
{
	uint64_t end = image__island(image, ISLAND_BYTES) + ISLAND_BYTES;
	uint64_t place = (end - bytes) & ~7UL;

	memcpy((void *)place, (void *)image__get(CODE(number), field), bytes);
	image__set(CODE(number), field, place);
}

static void sends_what_ends_where_memory_does(void **state)
{
	struct image *image = *state;
	const struct layout *layout = &image->layout;

	make_code(image, 0, NAMES);
	move_to_an_end(image, 0, layout->code_shown_name, layout->text_ascii + strlen("name"));
	move_to_an_end(image, 0, layout->code_filename, layout->text_ascii + strlen("dir/file.py"));
	move_to_an_end(image, 0, layout->code_line_table, layout->bytes_data + 5);
	harness__python_thread(image, image__interp(image), 0, 1);
	kernel__sample();
	assert_sent(image, 0, NAMES);
}

/* Wider characters take more than their number. */
static void sends_names_of_every_width(void **state)
{
	struct image *image = *state;
	const struct offsets *offsets = &image->offsets;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	struct code code;

	if (offsets->unicode_state == OFFSET_ABSENT)
		return;
	for (uint32_t width = 2; width <= 4; width += 2) {
		const uint16_t two[] = u"\u51fd\u6570";
		const uint32_t four[] = U"\u51fd\u6570";
		const void *data = width == 2 ? (const void *)two : (const void *)four;
		uint32_t bits = (width | 1 << 3 | 1 << 5) << offsets->unicode_kind_bit;
		uint64_t text = image__allocate(image, OBJECT_BYTES);

		image__set(text, offsets->unicode_length, 2);
		memcpy((void *)(text + offsets->unicode_state), &bits, sizeof(bits));
		memcpy((void *)(text + offsets->unicode_compact_size), data, 2 * width);
		make_code(image, width, NAMES);
		image__set(CODE(width), image->layout.code_shown_name, text);
		image__call(image, tstate, CODE(width), 1);
		kernel__sample();
		assert_int_equal(code__decode(offsets, IMAGE_CODE_TYPE, &kernel.code_record,
					      kernel.code_record_size, &code),
				 0);
		assert_string_equal(code.name, "\u51fd\u6570");
		code__free(&code);
	}
}

/* User space still reads it. */
static void leaves_out_what_it_cannot_copy(void **state)
{
	struct image *image = *state;
	const uint32_t fields[] = { image->layout.code_shown_name, image->layout.code_filename,
				    image->layout.code_line_table };
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);

	for (uint32_t i = 0; i < 3; i++) {
		make_code(image, i, NAMES);
		image__set(CODE(i), fields[i], image__nowhere(image));
		image__call(image, tstate, CODE(i), 1);
	}
	make_code(image, 3, "name", "file.py", CODE_PIECE_BYTES - image->layout.bytes_data + 1);
	image__call(image, tstate, CODE(3), 1);
	kernel__sample();
	assert_int_equal(kernel.definition_count, 1);
	assert_int_equal(kernel.definitions[0]->depth, 4);
	assert_int_equal(kernel.code_records, 0);
}

static void leaves_the_ring_buffer_to_definitions(void **state)
{
	struct image *image = *state;
	uint64_t tstate = harness__python_thread(image, image__interp(image), 0, 1);

	make_code(image, 0, NAMES);
	kernel.ring_bytes = RING_BYTES / 2 + 1;
	kernel__sample();
	assert_int_equal(kernel.definition_count, 1);
	assert_int_equal(kernel.code_records, 0);
	/* As soon as there is room. */
	kernel.ring_bytes = 0;
	image__call(image, tstate, CODE(0), 7);
	kernel__sample();
	assert_int_equal(kernel.code_records, 1);
}

/* The rest comes with other stacks. */
static void copies_only_so_much_at_once(void **state)
{
	struct image *image = *state;
	uint64_t tstate = harness__python_thread(image, image__interp(image), 0, 40);
	size_t large = 6000;

	for (uint32_t i = 0; i < 40; i++)
		make_code(image, i, "name", "file.py", large);
	kernel__sample();
	assert_in_range(kernel.code_records, 15, CODES_BYTES_A_STACK / large);
	image__call(image, tstate, CODE(0), 1);
	kernel__sample();
	assert_in_range(kernel.code_records, 30, 2 * CODES_BYTES_A_STACK / large);
	assert_in_range(kernel.reads, 1, READS_MAX);
}

int main(void)
{
	const struct check checks[] = {
		CHECK(sends_a_code_object_once),
		CHECK(sends_another_at_the_same_address),
		CHECK_IN(0, LAST_WITHOUT_VERSION, sends_another_that_has_other_lines),
		CHECK(sends_those_of_each_process),
		CHECK(sends_what_is_as_large_as_can_be),
		CHECK(sends_what_ends_where_memory_does),
		CHECK(sends_names_of_every_width),
		CHECK(leaves_out_what_it_cannot_copy),
		CHECK(leaves_the_ring_buffer_to_definitions),
		CHECK(copies_only_so_much_at_once),
	};

	return harness__run(checks, sizeof(checks) / sizeof(checks[0]));
}
