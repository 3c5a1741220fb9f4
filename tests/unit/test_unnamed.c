// SPDX-License-Identifier: BSD-2-Clause
/* A fake program in this process's memory.  It has the data and the interpreters of a Python that
 * its file does not name, and data that only looks like them. */
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "architecture/architecture.h"
#include "fake_objects.h"
#include "python/object.h"
#include "python/unnamed.h"

#define DATA_WORDS  32768 /* takes several reads */
#define CODE_BYTES  4096
#define STATE_WORDS 512

/* The places of variables in the data. */
#define AT   20001 /* interpreters.head, or interp_head */
#define AUTO 20003 /* autoInterpreterState */

#define V2_7  0x020712f0
#define V3_6  0x03060ff0
#define V3_7  0x030710f0
#define V3_8  0x030812f0
#define V3_9  0x030912f0
#define SINCE 0x03070000 /* the first version with _PyRuntime */

struct program {
	uint64_t *data;
	uint8_t *code;
	uint64_t data_bytes; /* as the file says */
	struct offsets offsets;
	uint64_t interpreters[2][STATE_WORDS], threads[2][STATE_WORDS];
	uint64_t modules[STATE_WORDS], dict[STATE_WORDS], type[STATE_WORDS];
};

static void put(uint64_t *words, uint32_t offset, uint64_t word)
{
	memcpy((uint8_t *)words + offset, &word, sizeof(word));
}

static uint64_t address_of(const void *what)
{
	return (uintptr_t)what;
}

/* Gives interpreter INDEX a thread state, for the calling thread, and the next interpreter NEXT. */
static void make_interpreter(struct program *program, int index, uint64_t next)
{
	const struct offsets *offsets = &program->offsets;
	uint64_t *interpreter = program->interpreters[index], *thread = program->threads[index];

	put(interpreter, offsets->interp_next, next);
	put(interpreter, offsets->interp_tstate_head, address_of(thread));
	put(interpreter, offsets->interp_modules, address_of(program->modules));
	put(thread, offsets->tstate_interp, address_of(interpreter));
	put(thread, offsets->tstate_thread_id, pthread_self());
}

/* Makes the list begin with interpreter INDEX.  Interpreter 0 is the main one. */
static void make_list(struct program *program, int index)
{
	program->data[AT] = address_of(program->interpreters[index]);
	if (program->offsets.version >= SINCE) {
		program->data[AT + 1] = address_of(program->interpreters[0]);
		program->data[AT + 2] = index + 1;
	} else {
		program->data[AUTO] = address_of(program->interpreters[0]);
	}
}

static struct program *make(uint32_t version, enum build build)
{
	struct program *program = calloc(1, sizeof(*program));
	const struct offsets *offsets = &program->offsets;

	program->data_bytes = DATA_WORDS * sizeof(uint64_t);
	program->data = mmap(NULL, program->data_bytes + CODE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(program->data, MAP_FAILED);
	program->code = (uint8_t *)(program->data + DATA_WORDS);
	assert_int_equal(offsets__lookup(version, build, &program->offsets), 0);
	put(program->modules, offsets->object_type, address_of(program->dict));
	put(program->dict, offsets->object_type, address_of(program->type));
	put(program->dict, offsets->type_flags, TYPE_IS_DICT);
	put(program->type, offsets->object_type, address_of(program->type));
	make_interpreter(program, 0, 0);
	make_list(program, 0);
	/* Pointers into the data, as a Python has many, and pointers that a program may keep. */
	for (int i = 0; i < 5000; i++)
		program->data[i] = address_of(program->data + i);
	program->data[5001] = address_of(program->interpreters[0]);
	program->data[5002] = address_of(program->threads[0]);
	program->data[5003] = address_of(program->modules);
	program->data[5004] = 0x7ffffffff000;
	return program;
}

static void add_second(struct program *program)
{
	make_interpreter(program, 1, address_of(program->interpreters[0]));
	make_list(program, 1);
}

/* Adds a function that returns the word at INDEX.  NEXT: another one like PyInterpreterState_Next
 * follows, as it follows PyInterpreterState_Head. */
static void add_function(struct program *program, size_t at, size_t index, bool next)
{
	uint8_t *code = program->code + at;
	int64_t distance = address_of(program->data + index) - address_of(code);

	if (ARCHITECTURE.machine == EM_X86_64) {
		static const uint8_t load[] = { 0x48, 0x8b, 0x05 };
		static const uint8_t first[] = { 0x48, 0x8b, 0x07, 0xc3 };
		int32_t from_next = distance - 7;

		memcpy(code, load, sizeof(load));
		memcpy(code + 3, &from_next, sizeof(from_next));
		code[7] = 0xc3;
		if (next)
			memcpy(code + 16, first, sizeof(first));
	} else {
		uint64_t variable = address_of(program->data + index);
		int64_t pages = (int64_t)(variable >> 12) - (int64_t)(address_of(code) >> 12);
		uint32_t words[] = {
			0x90000000 | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5,
			0xf9400000 | (variable & 4095) / 8 << 10,
			0xd65f03c0,
			0xd503201f,
			next ? 0xf9400000 : 0xd503201f,
			0xd65f03c0,
		};

		memcpy(code, words, sizeof(words));
	}
}

/* A file with the program headers of PROGRAM. */
static struct elf_image *open_file(const struct program *program, struct elf_budget *budget)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segments[2];
	} file = { 0 };
	int fd = memfd_create("program", MFD_CLOEXEC);

	memcpy(file.header.e_ident, ELFMAG, SELFMAG);
	file.header.e_ident[EI_CLASS] = ELFCLASS64;
	file.header.e_ident[EI_DATA] = ELFDATA2LSB;
	file.header.e_machine = ARCHITECTURE.machine;
	file.header.e_type = ET_EXEC;
	file.header.e_phoff = offsetof(typeof(file), segments);
	file.header.e_phnum = 2;
	file.header.e_phentsize = sizeof(Elf64_Phdr);
	file.segments[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
					 .p_flags = PF_R | PF_W,
					 .p_vaddr = address_of(program->data),
					 .p_memsz = program->data_bytes };
	file.segments[1] = (Elf64_Phdr){ .p_type = PT_LOAD,
					 .p_flags = PF_R | PF_X,
					 .p_vaddr = address_of(program->code),
					 .p_memsz = CODE_BYTES };
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &file, sizeof(file)), sizeof(file));
	return elf_image__open(fd, budget);
}

/* Calls unnamed__find() for PROGRAM, and frees it. */
static int find(struct program *program, struct runtime *runtime)
{
	struct elf_budget budget = { .pid = getpid(), .bytes = 1 << 20 };
	struct elf_image *image = open_file(program, &budget);
	int error;

	assert_non_null(image);
	memset(runtime, 0, sizeof(*runtime));
	error = unnamed__find(getpid(), image, 0, program->offsets.version, runtime);
	elf_image__close(image);
	munmap(program->data, DATA_WORDS * sizeof(uint64_t) + CODE_BYTES);
	free(program);
	return error;
}

static void expect_found(struct program *program, size_t index)
{
	uint64_t expected = address_of(program->data + index);
	uint32_t object_type = program->offsets.object_type;
	struct runtime runtime;

	assert_int_equal(find(program, &runtime), 0);
	assert_int_equal(runtime.interpreters, expected);
	assert_int_equal(runtime.offsets.object_type, object_type);
	assert_null(runtime.objection);
}

static void expect_objection(struct program *program, int error, const char *words)
{
	struct runtime runtime;

	assert_int_equal(find(program, &runtime), error);
	assert_int_equal(runtime.interpreters, 0);
	assert_non_null(strstr(runtime.objection, words));
}

static void expect_error(struct program *program, int error)
{
	expect_objection(program, error, "stripped: ");
}

static const uint32_t with_runtime[] = { V3_7, V3_8, V3_9 }, without_runtime[] = { V2_7, V3_6 };

static void the_runtime_is_recognized_by_the_words_after_its_list(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct program *two = make(with_runtime[i], BUILD_WITH_GIL);

		expect_found(make(with_runtime[i], BUILD_WITH_GIL), AT);
		add_second(two);
		expect_found(two, AT);
	}
}

static void two_interpreters_tell_the_newest_from_the_main_one(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct program *two = make(without_runtime[i], BUILD_WITH_GIL);

		add_second(two);
		expect_found(two, AT);
	}
}

static void with_one_interpreter_the_code_decides(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct program *program = make(without_runtime[i], BUILD_WITH_GIL);

		add_function(program, 256, AUTO, false);
		add_function(program, 512, AT, true);
		expect_found(program, AT);
	}
}

static void nothing_is_guessed_if_the_code_does_not_decide(void **state)
{
	struct program *none = make(V3_6, BUILD_WITH_GIL), *both = make(V3_6, BUILD_WITH_GIL),
		       *alone = make(V2_7, BUILD_WITH_GIL);

	(void)state;
	expect_error(none, -ENOTSUP);
	add_function(both, 256, AUTO, true);
	add_function(both, 512, AT, true);
	expect_error(both, -ENOTSUP);
	add_function(alone, 256, AT, false);
	expect_error(alone, -ENOTSUP);
}

static void a_build_that_traces_references_is_recognized(void **state)
{
	struct program *program = make(V3_6, BUILD_TRACING);

	(void)state;
	add_function(program, 512, AT, true);
	expect_found(program, AT);
	expect_found(make(V3_7, BUILD_TRACING), AT);
}

static void a_python_that_has_not_begun_is_retried(void **state)
{
	struct program *program = make(V3_8, BUILD_WITH_GIL);

	(void)state;
	memset(program->data, 0, program->data_bytes);
	expect_error(program, -EAGAIN);
	program = make(V3_8, BUILD_WITH_GIL);
	put(program->interpreters[0], program->offsets.interp_tstate_head, 0);
	expect_error(program, -EAGAIN);
}

/* Each case breaks a valid program in one place. */
static void inconsistent_data_is_not_trusted(void **state)
{
	struct offsets offsets;

	(void)state;
	assert_int_equal(offsets__lookup(V3_8, BUILD_WITH_GIL, &offsets), 0);
	for (int lie = 0; lie < 13; lie++) {
		struct program *program = make(V3_8, BUILD_WITH_GIL);
		uint64_t *interpreter = program->interpreters[0], *thread = program->threads[0];

		switch (lie) {
		case 0:
			put(interpreter, offsets.interp_next, address_of(interpreter));
			break;
		case 1:
			put(interpreter, offsets.interp_next, 8);
			break;
		case 2:
			put(thread, offsets.tstate_next, address_of(thread));
			break;
		case 3:
			make_interpreter(program, 1, 0);
			put(thread, offsets.tstate_next, address_of(program->threads[1]));
			break;
		case 4:
			put(thread, offsets.tstate_thread_id, 0);
			break;
		case 5:
			put(thread, offsets.tstate_thread_id, 16);
			break;
		case 6:
			put(thread, offsets.tstate_interp, address_of(program->interpreters[1]));
			break;
		case 7:
			put(program->dict, offsets.type_flags, 0);
			break;
		case 8:
			put(program->dict, offsets.object_type, address_of(program->dict));
			break;
		case 9:
			put(program->type, offsets.object_type, address_of(program->dict));
			break;
		case 10:
			program->data[AT + 1]++;
			break;
		case 11:
			make_interpreter(program, 1, 0);
			put(program->threads[1], offsets.tstate_interp, address_of(interpreter));
			put(program->threads[1], offsets.tstate_thread_id, 0);
			put(thread, offsets.tstate_next, address_of(program->threads[1]));
			break;
		default:
			program->data[AT + 2] = 0;
		}
		expect_error(program, -EAGAIN);
	}
}

static void a_cycle_of_interpreters_is_not_a_list(void **state)
{
	struct program *program = make(V2_7, BUILD_WITH_GIL);

	(void)state;
	add_second(program);
	put(program->interpreters[0], program->offsets.interp_next,
	    address_of(program->interpreters[1]));
	add_function(program, 512, AT, true);
	expect_error(program, -EAGAIN);
}

static void many_pointers_to_themselves_end_the_search(void **state)
{
	struct program *program = make(V3_9, BUILD_WITH_GIL);

	(void)state;
	for (size_t i = 0; i < STATE_WORDS; i++)
		program->interpreters[1][i] = address_of(program->interpreters[1]);
	for (size_t i = 6000; i < DATA_WORDS; i++)
		program->data[i] = address_of(program->interpreters[1]);
	expect_error(program, -ENOTSUP);
}

static void two_possible_lists_are_refused(void **state)
{
	struct program *runtimes = make(V3_8, BUILD_WITH_GIL), *heads = make(V2_7, BUILD_WITH_GIL);

	(void)state;
	make_interpreter(runtimes, 1, 0);
	runtimes->data[100] = runtimes->data[101] = address_of(runtimes->interpreters[1]);
	runtimes->data[102] = 1;
	expect_error(runtimes, -ENOTSUP);
	make_interpreter(heads, 1, 0);
	heads->data[100] = address_of(heads->interpreters[1]);
	add_function(heads, 512, AT, true);
	expect_error(heads, -ENOTSUP);
}

static void too_much_data_is_not_searched(void **state)
{
	struct program *large = make(V3_8, BUILD_WITH_GIL);
	struct program *endless = make(V3_8, BUILD_WITH_GIL);

	(void)state;
	large->data_bytes = (64 << 20) + 1;
	expect_objection(large, -ENOTSUP, "too large");
	endless->data_bytes = UINT64_MAX;
	expect_objection(endless, -ENOTSUP, "too large");
}

static void other_versions_are_refused(void **state)
{
	struct program *program = make(V3_8, BUILD_WITH_GIL);
	struct runtime runtime;

	(void)state;
	program->offsets.version = 0x030500f0;
	assert_int_equal(find(program, &runtime), -ENOTSUP);
	assert_null(runtime.objection);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_runtime_is_recognized_by_the_words_after_its_list),
		cmocka_unit_test(two_interpreters_tell_the_newest_from_the_main_one),
		cmocka_unit_test(with_one_interpreter_the_code_decides),
		cmocka_unit_test(nothing_is_guessed_if_the_code_does_not_decide),
		cmocka_unit_test(a_build_that_traces_references_is_recognized),
		cmocka_unit_test(a_python_that_has_not_begun_is_retried),
		cmocka_unit_test(inconsistent_data_is_not_trusted),
		cmocka_unit_test(a_cycle_of_interpreters_is_not_a_list),
		cmocka_unit_test(many_pointers_to_themselves_end_the_search),
		cmocka_unit_test(two_possible_lists_are_refused),
		cmocka_unit_test(too_much_data_is_not_searched),
		cmocka_unit_test(other_versions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
