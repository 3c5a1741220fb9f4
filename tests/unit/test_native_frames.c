// SPDX-License-Identifier: BSD-2-Clause
/* Native frames in a stack with Python's and the kernel's, which are functions of this process. */
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

/* What is being defined: Python's frames are "zero", "one", "two", from the leaf on. */
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

/* The names of the stack that is defined, leaf first. */
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

/* No turn is over so far ahead of the clock. */
static void work(void)
{
	unwinder__work(unwinder, INT64_MAX / 2);
}

/* Has native frames named, ALL or without plumbing, of another process than the bench's: what is
 * known already has none. */
static void name_native(struct bench *bench, bool all)
{
	bench->naming.unwinder = unwinder;
	bench->naming.plumbing = all;
	process = calloc(1, sizeof(*process));
	*process = bench->target;
	process->identity.command = strdup("test");
	process->key.serial = NATIVE_SERIAL;
	symbolizer__add_target(bench->symbolizer, process);
	/* Its first sample has what it maps read. */
	begin_definition(bench, NATIVE_SERIAL);
	names(bench);
	work();
}

/* Each behind the Python frames that it called. */
static void native_frames_are_behind_what_they_called(void **state)
{
	struct bench *bench = *state;

	name_native(bench, false);
	begin_definition(bench, NATIVE_SERIAL);
	add_native(inner, 0);
	add_native(middle, 1);
	add_native(outer, 3);
	assert_string_equal(names(bench), INNER "; zero; " MIDDLE "; one; two; " OUTER);
	/* Several beside each other. */
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

/* What is paired from the root has another number; what called no Python stays before all. */
static void shifts_positions(void **state)
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

/* Those that go back have no meaning, but an order. */
static void keeps_the_order_of_frames(void **state)
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

/* The frames of TEXT that are natives', or else Python's. */
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

/* BPF reads a target, whose stack may be anything. */
static void hostile_positions_lose_nothing(void **state)
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

static void is_deep(void **state)
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

static void refuses_what_is_not_sound(void **state)
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

/* The kernel's are the callees of all others, though they are recorded last. */
static void kernel_frames_are_before_native_ones(void **state)
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

/* A function of the C library itself, for which no sanitizer stands in. */
static uint64_t libc_address(const char *name)
{
	void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	uint64_t address = (uintptr_t)dlsym(library, name);

	assert_true(address);
	dlclose(library);
	return address;
}

/* Only where it is not to be shown; it takes no other frame along. */
static void hides_plumbing(void **state)
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

static void shows_plumbing(void **state)
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

/* Behind a call, which may be the function's last instruction. */
static void return_addresses_are_behind_the_call(void **state)
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
	/* The profile has the address as it was. */
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

static void says_what_has_no_name(void **state)
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

/* Whether they are known to be mapped or not, but not what a file is behind. */
static void perf_maps_name_code(void **state)
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

/* Each calls the eval loop for the Python function that it is named for. */
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

static void perf_trampolines_are_shown(void **state)
{
	struct bench *bench = *state;

	write_perf_map("8 8 py::zero:file.py\n");
	name_native(bench, true);
	begin_definition(bench, NATIVE_SERIAL);
	add_frame(8, 1, false);
	assert_string_equal(names(bench), "zero; py::zero:file.py (perf map); one; two");
}

/* A process that was known before native frames were wanted. */
static void nothing_is_known_of_others(void **state)
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

/* Where a walk found none. */
static void has_rows_made_that_were_missed(void **state)
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

/* In a profile that begins anew. */
static void names_anew_what_is_known(void **state)
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
		TEST(native_frames_are_behind_what_they_called),
		TEST(shifts_positions),
		TEST(positions_beyond_the_stack_are_its_end),
		TEST(keeps_the_order_of_frames),
		TEST(hostile_positions_lose_nothing),
		TEST(is_deep),
		TEST(refuses_what_is_not_sound),
		TEST(kernel_frames_are_before_native_ones),
		TEST(hides_plumbing),
		TEST(shows_plumbing),
		TEST(return_addresses_are_behind_the_call),
		TEST(says_what_has_no_name),
		TEST(perf_maps_name_code),
		TEST(perf_trampolines_are_plumbing),
		TEST(perf_trampolines_are_shown),
		TEST(nothing_is_known_of_others),
		TEST(has_rows_made_that_were_missed),
		TEST(names_anew_what_is_known),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
