// SPDX-License-Identifier: BSD-2-Clause
/* Code objects that are sent with the first stack that contains them, and decoded as in user
 * space. */
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

/* Makes CODE(NUMBER) a code object with a line table of TABLE_BYTES. */
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

/* Asserts that the last code object sent is this one. */
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

static void sends_a_new_code_object_at_the_same_address(void **state)
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
	/* The first one is sent again when it returns, because user space has forgotten it. */
	make_code(image, 0, NAMES);
	kernel__sample();
	assert_int_equal(kernel.code_records, 3);
	assert_sent(image, 0, NAMES);
}

/* All addresses stay the same; only the contents of the line table change. */
static void sends_a_code_object_whose_lines_changed(void **state)
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

/* Two processes have code objects at equal addresses, as forked processes do. */
static void sends_the_code_objects_of_each_process(void **state)
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

static void sends_the_largest_line_table(void **state)
{
	struct image *image = *state;
	size_t most = CODE_PIECE_BYTES - image->layout.bytes_data;

	make_code(image, 0, "name", "file.py", most);
	harness__python_thread(image, image__interp(image), 0, 1);
	kernel__sample();
	assert_sent(image, 0, "name", "file.py", most);
}

/* Moves the object of BYTES in FIELD of CODE(NUMBER) to the end of mapped memory. */
static void move_to_an_end(struct image *image, uint32_t number, uint32_t field, size_t bytes)
{
	uint64_t end = image__island(image, ISLAND_BYTES) + ISLAND_BYTES;
	uint64_t place = (end - bytes) & ~7UL;

	memcpy((void *)place, (void *)image__get(CODE(number), field), bytes);
	image__set(CODE(number), field, place);
}

static void sends_objects_at_the_end_of_mapped_memory(void **state)
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

/* Wider characters take more than one byte each. */
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

/* User space reads these itself. */
static void leaves_out_unreadable_and_oversized_code(void **state)
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
	/* They are sent as soon as there is room. */
	kernel.ring_bytes = 0;
	image__call(image, tstate, CODE(0), 7);
	kernel__sample();
	assert_int_equal(kernel.code_records, 1);
}

/* The rest is sent with later stacks. */
static void limits_the_bytes_copied_with_each_stack(void **state)
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
		CHECK(sends_a_new_code_object_at_the_same_address),
		CHECK_IN(0, LAST_WITHOUT_VERSION, sends_a_code_object_whose_lines_changed),
		CHECK(sends_the_code_objects_of_each_process),
		CHECK(sends_the_largest_line_table),
		CHECK(sends_objects_at_the_end_of_mapped_memory),
		CHECK(sends_names_of_every_width),
		CHECK(leaves_out_unreadable_and_oversized_code),
		CHECK(leaves_the_ring_buffer_to_definitions),
		CHECK(limits_the_bytes_copied_with_each_stack),
	};

	return harness__run(checks, sizeof(checks) / sizeof(checks[0]));
}
