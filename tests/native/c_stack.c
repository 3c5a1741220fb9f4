// SPDX-License-Identifier: BSD-2-Clause
#include "c_stack.h"

/* The text's address in the file. */
#define FILE_TEXT 0x1000

/* Places in the chunks: the rows are in the first chunk, the mappings in the second, neither at
 * its beginning. */
#define DIRECTORY     10
#define ROWS	      1000
#define FIRST_MAPPING (CHUNK_MAPPINGS + 5)

#define ROWS_A_FUNCTION 2

/* The size of an activation in image.c. */
#define ACTIVATION_BYTES ((EVAL_WORDS - 1) * sizeof(uint64_t))

/* Values of a frame's variables, which are no addresses. */
#define GARBAGE 0xf00dfacecafe0000ULL

static void set_directory(enum function function, uint32_t count)
{
	kernel__chunk(0)[DIRECTORY + function] =
		DIRECTORY_WORD(1 + ROWS_A_FUNCTION * function, count);
}

void c_stack__set_row(enum function function, uint32_t row)
{
	kernel__chunk(0)[ROWS + 1 + ROWS_A_FUNCTION * function] = row;
	set_directory(function, 1);
}

void c_stack__split_row(enum function function, uint32_t low, uint32_t row)
{
	kernel__chunk(0)[ROWS + 2 + ROWS_A_FUNCTION * function] = row | low;
	set_directory(function, 2);
}

static void map_code(uint32_t *count, uint64_t start, uint64_t bias, uint32_t file)
{
	struct unwind_mapping *chunk =
		(struct unwind_mapping *)kernel__chunk(FIRST_MAPPING / CHUNK_MAPPINGS);

	chunk[FIRST_MAPPING % CHUNK_MAPPINGS + (*count)++] = (struct unwind_mapping){
		.start = start,
		.end = start + MAPPED_BYTES,
		.bias = bias,
		.file = file,
		.row = file == UNWIND_TRAMPOLINES ? ROW(ROW_SP, 2, 2) : 0,
	};
}

static void map_all(void)
{
	struct unwind_table table = { .first = FIRST_MAPPING, .interpreter = INTERPRETER };

	map_code(&table.count, TEXT, TEXT - FILE_TEXT, INTERPRETER);
	map_code(&table.count, UNREAD_TEXT, UNREAD_TEXT, UNREAD_FILE);
	map_code(&table.count, ANONYMOUS_TEXT, ANONYMOUS_TEXT, UNWIND_NO_FILE);
	map_code(&table.count, TRAMPOLINE_TEXT, TRAMPOLINE_TEXT, UNWIND_TRAMPOLINES);
	kernel__set_table(TGID, &table);
	*kernel__unwind_file(INTERPRETER) = (struct unwind_file){
		.base = FILE_TEXT, .pages = FUNCTIONS, .directory = DIRECTORY, .rows = ROWS
	};
	for (int function = 0; function < FUNCTIONS; function++)
		c_stack__set_row(function, ROW_NUMBERED(ROW_NONE, ROW_NO_CODE));
	c_stack__set_row(START, ROW_NUMBERED(ROW_END, 0));
	c_stack__set_row(MAIN, ROW(ROW_SP, MAIN_WORDS, 0));
	c_stack__set_row(EVAL, ROW(ROW_SP, EVAL_WORDS, 0) | EVAL_MARKS);
	c_stack__set_row(WORK, ROW(ROW_SP, WORK_WORDS, 0));
	c_stack__set_row(LEAF, ROW(ROW_SP, LEAF_WORDS, 0));
}

struct c_stack c_stack__begin(struct image *image, bool all)
{
	struct c_stack stack = { .image = image };

	kernel__walk_native(all);
	map_all();
	stack.tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	return stack;
}

uint64_t c_stack__first(enum function function)
{
	return TEXT + UNWIND_TEXT_PAGE * (uint64_t)function;
}

uint64_t c_stack__pc(enum function function)
{
	return c_stack__first(function) + 0x40;
}

uint64_t c_stack__call_from(struct c_stack *stack, uint64_t pc, uint32_t words)
{
	uint64_t cfa = stack->image->c_stack;

	image__set(cfa - sizeof(uint64_t), 0, pc);
	stack->image->c_stack -= words * sizeof(uint64_t);
	for (uint32_t i = 0; i + 1 < words; i++)
		image__set(stack->image->c_stack, i * sizeof(uint64_t), GARBAGE + i);
	return cfa;
}

uint64_t c_stack__call(struct c_stack *stack, enum function from, uint32_t words)
{
	return c_stack__call_from(stack, c_stack__pc(from), words);
}

void c_stack__run(struct c_stack *stack)
{
	image__call(stack->image, stack->tstate, CODE(stack->python), stack->python);
	stack->python++;
}

uint64_t c_stack__enter(struct c_stack *stack, enum function from)
{
	struct image *image = stack->image;
	uint64_t cfa = c_stack__call(stack, from, 1), before = image->c_stack;

	if (stack->python && image->offsets.version >= DATA_STACK_SINCE)
		image__enter(image, stack->tstate);
	c_stack__run(stack);
	if (image->c_stack == before)
		image->c_stack -= ACTIVATION_BYTES;
	assert_int_equal(cfa - image->c_stack, EVAL_WORDS * sizeof(uint64_t));
	return cfa;
}

struct last_sample c_stack__sample_at(const struct c_stack *stack, uint64_t pc)
{
	kernel.registers.ip = pc;
	kernel.registers.sp = stack->image->c_stack;
	return kernel__sample();
}

struct last_sample c_stack__sample(const struct c_stack *stack, enum function leaf)
{
	return c_stack__sample_at(stack, c_stack__pc(leaf));
}

struct c_stack c_stack__call_twice(struct image *image, bool all)
{
	struct c_stack stack = c_stack__begin(image, all);

	c_stack__call(&stack, START, MAIN_WORDS);
	c_stack__enter(&stack, MAIN);
	c_stack__call(&stack, EVAL, WORK_WORDS);
	c_stack__enter(&stack, WORK);
	return stack;
}

void c_stack__assert_frame(struct last_sample sample, uint32_t i, enum function function,
			   int32_t position)
{
	const struct frame *frame = &sample.frames[sample.depth + i];

	assert_true(i < sample.native_depth);
	assert_int_equal(frame->kind, FRAME_NATIVE);
	assert_int_equal((frame->address - TEXT) / UNWIND_TEXT_PAGE, function);
	assert_int_equal(frame->position, position);
	assert_int_equal(frame->detail, i > 0);
}

void c_stack__assert_native(const struct c_stack *stack, struct last_sample sample,
			    enum native_outcome outcome, const struct called *called, size_t count)
{
	assert_int_equal(sample.native_outcome, outcome);
	harness__assert_stack(sample, stack->python);
	assert_int_equal(sample.native_depth, count);
	for (size_t i = 0; i < count; i++)
		c_stack__assert_frame(sample, i, called[i].function, called[i].position);
}

void c_stack__assert_passed(const struct c_stack *stack, struct last_sample sample)
{
	const struct layout *layout = &stack->image->layout;
	bool has_entries = layout->tstate_cframe != OFFSET_ABSENT || layout->in_blocks;

	harness__assert_stack(sample, stack->python);
	assert_int_equal(sample.native_outcome, has_entries ? NATIVE_CONVICTED : NATIVE_FAULT);
	if (has_entries)
		assert_int_equal(sample.native_depth, 0);
}

void c_stack__assert_nothing(const struct c_stack *stack, struct last_sample sample,
			     enum native_outcome outcome)
{
	c_stack__assert_native(stack, sample, outcome, NULL, 0);
}
