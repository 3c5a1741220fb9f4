// SPDX-License-Identifier: BSD-2-Clause
/* Native frames in stacks with Python and kernel frames.  The functions are this process's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>

#include "code_bench.h"
#include "base/xalloc.h"
#include "fake_symbols.h"
#include "own_mappings.h"
#include "unwind_maps.h"

#define NATIVE_SERIAL (SERIAL + 1)
#define MEMORY	      (16ULL << 20)
#define TEXT_BYTES    8192
#define PYTHON_DEPTH  3

#define INNER  "inner (test_native_frames)"
#define MIDDLE "middle (test_native_frames)"
#define OUTER  "outer (test_native_frames)"

__attribute__((noinline)) static void inner(void)
{
	__asm__ volatile("nop");
}

__attribute__((noinline)) static void middle(void)
{
	__asm__ volatile("nop\n\tnop");
}

__attribute__((noinline)) static void outer(void)
{
	__asm__ volatile("nop\n\tnop\n\tnop");
}

static struct unwinder *unwinder;
static struct target_process *process;
static struct kernel_symbols *kernel;

/* The stack being defined.  Its Python frames are "zero", "one" and "two", leaf first. */
static struct definition definition;

static int set_up_native(void **state)
{
	static const struct unwinder_maps maps = { CHUNKS_FD, FILES_FD, RULES_FD, TABLES_FD };

	unwinder = unwinder__new(&maps, MEMORY);
	kernel = NULL;
	return set_up(state);
}

static void remove_perf_map(void)
{
	char *path = xasprintf("/tmp/perf-%d.map", getpid());

	unlink(path);
	free(path);
}

static int tear_down_native(void **state)
{
	struct bench *bench = *state;
	int error;

	if (process)
		symbolizer__end_target(bench->symbolizer, process);
	process = NULL;
	error = tear_down(state);
	unwinder__free(unwinder);
	kernel_symbols__free(kernel);
	unwind_maps__clear();
	remove_perf_map();
	return error;
}

static void begin_definition(const struct bench *bench, uint64_t serial)
{
	memset(&definition, 0, sizeof(definition));
	definition.serial = serial;
	definition.tgid = definition.tid = getpid();
	for (int i = 0; i < PYTHON_DEPTH; i++)
		definition.frames[definition.depth++] =
			(struct frame){ .kind = FRAME_PYTHON,
					.address = (uintptr_t)bench->codes[i].object };
}

static void add_frame(uint64_t address, int32_t position, bool is_return)
{
	uint32_t at = definition.depth + definition.native_depth++;

	definition.frames[at] = (struct frame){
		.kind = FRAME_NATIVE, .address = address, .position = position, .detail = is_return
	};
}

static void add_native(void (*function)(void), int32_t position)
{
	add_frame((uintptr_t)function, position, false);
}

static void add_kernel(uint64_t address)
{
	uint32_t at = definition.depth + definition.native_depth + definition.kernel_depth++;

	definition.frames[at] = (struct frame){ .kind = FRAME_KERNEL, .address = address };
}

/* Defines the stack.  Returns the names of its frames, leaf first. */
static const char *names(struct bench *bench)
{
	static char text[TEXT_BYTES];
	const struct profile *profile = bench->profile;
	const struct profile_stack *frames;
	uint32_t thread, stack;
	size_t used = 0;

	assert_true(symbolizer__define(bench->symbolizer, &definition, &thread, &stack));
	frames = &profile->stacks[stack];
	text[0] = '\0';
	for (uint32_t i = 0; i < frames->depth; i++) {
		uint32_t function = profile->locations[frames->locations[i]].function;
		const char *name = profile->strings[profile->functions[function].name];

		used += snprintf(text + used, sizeof(text) - used, "%s%s", i ? "; " : "", name);
		assert_in_range(used, 0, sizeof(text) - 1);
	}
	return text;
}

/* Work ends when the clock is some time past NOW.  This NOW is never reached. */
static void work(void)
{
	unwinder__work(unwinder, INT64_MAX / 2);
}

/* Turns on native frames, ALL or without plumbing, and adds a process that has them.  The bench's
 * own process was added before and has none. */
static void name_native(struct bench *bench, bool all)
{
	bench->naming.unwinder = unwinder;
	bench->naming.plumbing = all;
	process = calloc(1, sizeof(*process));
	*process = bench->target;
	process->identity.command = strdup("test");
	process->key.serial = NATIVE_SERIAL;
	symbolizer__add_target(bench->symbolizer, process);
	/* Its mappings are read at its first sample. */
	begin_definition(bench, NATIVE_SERIAL);
	names(bench);
	work();
}

/* The position of a native frame is the number of Python frames that it called. */
static void native_frames_follow_the_python_frames_they_called(void **state)
{
	struct bench *bench = *state;

	name_native(bench, false);
	begin_definition(bench, NATIVE_SERIAL);
	add_native(inner, 0);
	add_native(middle, 1);
	add_native(outer, 3);
	assert_string_equal(names(bench), INNER "; zero; " MIDDLE "; one; two; " OUTER);
	/* Several native frames in a row. */
	begin_definition(bench, NATIVE_SERIAL);
	add_native(inner, 0);
	add_native(middle, 0);
	add_native(outer, 2);
	add_native(inner, 2);
	assert_string_equal(names(bench),
			    INNER "; " MIDDLE "; zero; one; " OUTER "; " INNER "; two");
	begin_definition(bench, NATIVE_SERIAL);
	assert_string_equal(names(bench), "zero; one; two");
}

/* native_shift moves native frames.  Those at position 0 called no Python and stay in front. */
static void native_shift_moves_native_frames(void **state)
{
	struct bench *bench = *state;

	name_native(bench, false);
	begin_definition(bench, NATIVE_SERIAL);
	add_native(inner, 0);
	add_native(middle, 1);
	add_native(outer, 2);
	definition.native_shift = 1;
	assert_string_equal(names(bench), INNER "; zero; one; " MIDDLE "; two; " OUTER);
	definition.native_shift = -1;
	assert_string_equal(names(bench), INNER "; " MIDDLE "; zero; " OUTER "; one; two");
	definition.native_shift = -2;
	assert_string_equal(names(bench), INNER "; " MIDDLE "; " OUTER "; zero; one; two");
}

static void positions_beyond_the_stack_are_its_end(void **state)
{
	struct bench *bench = *state;

	name_native(bench, false);
	begin_definition(bench, NATIVE_SERIAL);
	add_native(inner, 1);
	add_native(middle, PYTHON_DEPTH + 1);
	add_native(outer, INT32_MAX);
	assert_string_equal(names(bench), "zero; " INNER "; one; two; " MIDDLE "; " OUTER);
}

/* Positions that decrease make no sense, but the frames keep their order. */
static void native_frames_keep_their_order(void **state)
{
	struct bench *bench = *state;

	name_native(bench, false);
	begin_definition(bench, NATIVE_SERIAL);
	add_native(inner, 2);
	add_native(middle, 1);
	add_native(outer, -1);
	add_native(inner, INT32_MIN);
	assert_string_equal(names(bench),
			    "zero; one; " INNER "; " MIDDLE "; " OUTER "; " INNER "; two");
}

/* TEXT must have all Python frames, and native ones with the initials NATIVES, in this order. */
static void assert_parts(const char *text, const char *natives)
{
	static const char *const python[] = { "zero", "one", "two" };
	char copy[TEXT_BYTES], native[TEXT_BYTES] = "";
	char *rest = copy, *name;
	int count = 0;

	strcpy(copy, text);
	while ((name = strsep(&rest, ";"))) {
		name += *name == ' ';
		if (strstr(name, "(test_native_frames)")) {
			strncat(native, name, 1);
		} else {
			assert_in_range(count, 0, PYTHON_DEPTH - 1);
			assert_string_equal(name, python[count++]);
		}
	}
	assert_int_equal(count, PYTHON_DEPTH);
	assert_string_equal(native, natives);
}

/* BPF reads positions from the target's stack, which may have any content. */
static void hostile_positions_lose_no_frame(void **state)
{
	static void (*const functions[])(void) = { inner, middle, outer };
	static const char letters[] = "imo";
	static const int32_t edges[] = { INT32_MIN, INT32_MIN + 1, -1,	     0,
					 1,	    INT32_MAX - 1, INT32_MAX };
	struct bench *bench = *state;
	uint32_t random = 1;

	name_native(bench, false);
	for (int round = 0; round < 500; round++) {
		char natives[32] = "";

		begin_definition(bench, NATIVE_SERIAL);
		random = random * 1664525 + 1013904223;
		definition.native_shift =
			random & 1 << 20 ? edges[(random >> 8) % 7] : (int32_t)random;
		for (int i = 0; i < 9; i++) {
			uint32_t which = (random >> 10) % 3;

			random = random * 1664525 + 1013904223;
			add_native(functions[which], random & 1 << 21 ? edges[(random >> 8) % 7]
								      : (int32_t)random >> 28);
			natives[i] = letters[which];
		}
		assert_parts(names(bench), natives);
	}
}

static void the_deepest_native_stack_is_complete(void **state)
{
	struct bench *bench = *state;
	uint32_t thread, stack, depth = NATIVE_FRAMES_MAX;

	name_native(bench, false);
	begin_definition(bench, NATIVE_SERIAL);
	for (uint32_t i = 0; i < depth; i++)
		add_native(outer, 1);
	assert_true(symbolizer__define(bench->symbolizer, &definition, &thread, &stack));
	assert_int_equal(bench->profile->stacks[stack].depth, depth + PYTHON_DEPTH);
}

static void invalid_definitions_are_refused(void **state)
{
	struct bench *bench = *state;
	uint32_t thread, stack;

	name_native(bench, false);
	begin_definition(bench, NATIVE_SERIAL);
	definition.native_depth = NATIVE_FRAMES_MAX + 1;
	assert_false(symbolizer__define(bench->symbolizer, &definition, &thread, &stack));
	definition.native_depth = UINT32_MAX;
	assert_false(symbolizer__define(bench->symbolizer, &definition, &thread, &stack));
	begin_definition(bench, NATIVE_SERIAL);
	add_native(inner, 0);
	definition.frames[PYTHON_DEPTH].detail = 2;
	assert_false(symbolizer__define(bench->symbolizer, &definition, &thread, &stack));
	definition.frames[PYTHON_DEPTH].detail = 0;
	definition.frames[PYTHON_DEPTH].kind = 0;
	assert_false(symbolizer__define(bench->symbolizer, &definition, &thread, &stack));
}

/* Kernel frames are the callees of all others, although they are recorded last. */
static void kernel_frames_come_before_native_ones(void **state)
{
	struct bench *bench = *state;

	name_native(bench, false);
	kernel = symbols_of("ffffffff81001000 T vfs_read\nffffffff81002000 T ksys_read\n");
	begin_definition(bench, NATIVE_SERIAL);
	add_native(inner, 0);
	add_native(outer, 2);
	add_kernel(0xffffffff81001000);
	add_kernel(0xffffffff81002000);
	assert_string_equal(names(bench), "[kernel]; " INNER "; zero; one; " OUTER "; two");
	bench->naming.kernel = kernel;
	assert_string_equal(names(bench),
			    "vfs_read_[k]; ksys_read_[k]; " INNER "; zero; one; " OUTER "; two");
}

/* The address of a function in the C library itself, not of a sanitizer's interceptor. */
static uint64_t libc_address(const char *name)
{
	void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	uint64_t address = (uintptr_t)dlsym(library, name);

	assert_true(address);
	dlclose(library);
	return address;
}

/* Hiding plumbing hides no other frame. */
static void plumbing_is_hidden(void **state)
{
	struct bench *bench = *state;

	name_native(bench, false);
	begin_definition(bench, NATIVE_SERIAL);
	add_frame(libc_address("__libc_start_main"), 0, false);
	add_frame(libc_address("lfind"), 1, false);
	add_frame(libc_address("__libc_start_main"), 2, false);
	add_native(outer, 2);
	assert_string_equal(names(bench), "zero; lfind (libc.so.6); one; " OUTER "; two");
}

static void plumbing_is_shown_on_request(void **state)
{
	struct bench *bench = *state;
	const char *text;

	name_native(bench, true);
	begin_definition(bench, NATIVE_SERIAL);
	add_frame(libc_address("__libc_start_main"), 2, false);
	text = names(bench);
	assert_int_equal(strncmp(text, "zero; one; __libc_start_main", 28), 0);
	assert_non_null(strstr(text, "(libc.so.6); two"));
}

/* A return address follows its call, which may be the function's last instruction. */
static void a_return_address_belongs_to_its_call(void **state)
{
	struct bench *bench = *state;
	uint64_t before, after;

	name_native(bench, false);
	begin_definition(bench, NATIVE_SERIAL);
	add_frame((uintptr_t)outer + 1, 3, true);
	assert_string_equal(names(bench), "zero; one; two; " OUTER);
	begin_definition(bench, NATIVE_SERIAL);
	add_frame((uintptr_t)outer, 3, true);
	assert_null(strstr(names(bench), OUTER));
	/* The profile keeps the address unchanged. */
	begin_definition(bench, NATIVE_SERIAL);
	add_frame((uintptr_t)outer + 2, 3, true);
	names(bench);
	after = bench->profile->locations[bench->profile->location_count - 1].address;
	begin_definition(bench, NATIVE_SERIAL);
	add_frame((uintptr_t)outer, 3, false);
	names(bench);
	before = bench->profile->locations[bench->profile->location_count - 1].address;
	assert_int_equal(after, before + 2);
}

static void code_without_a_name_has_a_placeholder(void **state)
{
	struct bench *bench = *state;
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	name_native(bench, false);
	begin_definition(bench, NATIVE_SERIAL);
	add_frame((uintptr_t)code + 8, 0, false);
	add_frame(0, 1, true);
	add_frame(8, 2, true);
	add_frame(UINT64_MAX, 3, true);
	assert_string_equal(names(bench),
			    "[anonymous]; zero; ?; one; [unknown code]; two; [unknown code]");
	begin_definition(bench, NATIVE_SERIAL);
	add_frame((uintptr_t)code + 8, 0, false);
	add_frame(8, 1, true);
	definition.frames[PYTHON_DEPTH].kind = definition.frames[PYTHON_DEPTH + 1].kind = FRAME_JIT;
	assert_string_equal(names(bench), "[JIT]; zero; [JIT]; one; two");
	munmap(code, 4096);
}

static void write_perf_map(const char *format, ...)
{
	char *path = xasprintf("/tmp/perf-%d.map", getpid());
	FILE *file = fopen(path, "w");
	va_list arguments;

	assert_non_null(file);
	va_start(arguments, format);
	vfprintf(file, format, arguments);
	va_end(arguments);
	fclose(file);
	free(path);
}

/* They name code in anonymous memory and at unmapped addresses, but no code of a file. */
static void perf_maps_name_code_without_a_file(void **state)
{
	struct bench *bench = *state;
	char *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	write_perf_map("%lx 10 made; code\n8 8 low\n%lx 100 not inner\n", (uintptr_t)code,
		       (uintptr_t)inner);
	name_native(bench, false);
	begin_definition(bench, NATIVE_SERIAL);
	add_frame((uintptr_t)code, 0, false);
	add_frame((uintptr_t)code + 0x10, 1, true);
	add_frame((uintptr_t)code + 0x10, 2, false);
	add_frame(8, 2, false);
	add_native(inner, 3);
	assert_string_equal(names(bench),
			    "made; code (perf map); zero; made; code (perf map); one; [anonymous]; "
			    "low (perf map); two; " INNER);
	for (size_t i = 0; i < bench->profile->location_count; i++) {
		const struct profile_location *location = &bench->profile->locations[i];
		const struct profile_function *function =
			&bench->profile->functions[location->function];

		if (!strstr(bench->profile->strings[function->name], "(perf map)"))
			continue;
		assert_int_equal(function->kind, FRAME_NATIVE);
		assert_int_equal(location->mapping, 0);
		assert_int_equal(location->address, 0);
	}
	munmap(code, 4096);
}

/* A trampoline calls the eval loop for the Python function in its name. */
static void perf_trampolines_are_plumbing(void **state)
{
	struct bench *bench = *state;

	write_perf_map("8 8 py::zero:file.py\n10 8 py:not\n");
	name_native(bench, false);
	begin_definition(bench, NATIVE_SERIAL);
	add_frame(8, 1, false);
	add_frame(0x10, 2, false);
	assert_string_equal(names(bench), "zero; one; py:not (perf map); two");
}

static void perf_trampolines_are_shown_on_request(void **state)
{
	struct bench *bench = *state;

	write_perf_map("8 8 py::zero:file.py\n");
	name_native(bench, true);
	begin_definition(bench, NATIVE_SERIAL);
	add_frame(8, 1, false);
	assert_string_equal(names(bench), "zero; py::zero:file.py (perf map); one; two");
}

/* A process that was added before native frames were turned on. */
static void native_code_of_an_earlier_process_is_unknown(void **state)
{
	struct bench *bench = *state;

	begin_definition(bench, SERIAL);
	add_native(inner, 0);
	add_native(outer, 2);
	assert_string_equal(names(bench), "zero; one; two");
	name_native(bench, false);
	begin_definition(bench, SERIAL);
	add_native(inner, 0);
	add_native(outer, 2);
	assert_string_equal(names(bench), "[unknown code]; zero; one; [unknown code]; two");
}

/* lacks_rows is an address for which a walk found no rows. */
static void rows_that_a_walk_lacked_are_made(void **state)
{
	struct bench *bench = *state;
	uint32_t file = 0;
	struct code_place place;

	name_native(bench, false);
	begin_definition(bench, NATIVE_SERIAL);
	add_native(outer, 0);
	names(bench);
	place = unwinder__place(unwinder, NATIVE_SERIAL, (uintptr_t)outer);
	file = place.file->number;
	assert_int_equal(unwind_maps.files[file].pages, 0);
	definition.lacks_rows = (uintptr_t)outer;
	names(bench);
	work();
	assert_int_not_equal(unwind_maps.files[file].pages, 0);
}

static void known_frames_are_named_again_in_a_new_profile(void **state)
{
	struct bench *bench = *state;

	name_native(bench, false);
	begin_definition(bench, NATIVE_SERIAL);
	add_native(inner, 0);
	add_native(outer, 3);
	names(bench);
	profile__free(profile__retire(bench->profile));
	symbolizer__begin_anew(bench->symbolizer);
	assert_string_equal(names(bench), INNER "; zero; one; two; " OUTER);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_native, tear_down_native)
	const struct CMUnitTest tests[] = {
		TEST(native_frames_follow_the_python_frames_they_called),
		TEST(native_shift_moves_native_frames),
		TEST(positions_beyond_the_stack_are_its_end),
		TEST(native_frames_keep_their_order),
		TEST(hostile_positions_lose_no_frame),
		TEST(the_deepest_native_stack_is_complete),
		TEST(invalid_definitions_are_refused),
		TEST(kernel_frames_come_before_native_ones),
		TEST(plumbing_is_hidden),
		TEST(plumbing_is_shown_on_request),
		TEST(a_return_address_belongs_to_its_call),
		TEST(code_without_a_name_has_a_placeholder),
		TEST(perf_maps_name_code_without_a_file),
		TEST(perf_trampolines_are_plumbing),
		TEST(perf_trampolines_are_shown_on_request),
		TEST(native_code_of_an_earlier_process_is_unknown),
		TEST(rows_that_a_walk_lacked_are_made),
		TEST(known_frames_are_named_again_in_a_new_profile),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
