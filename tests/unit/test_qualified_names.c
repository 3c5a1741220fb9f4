// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fake_process.h"
#include "python/function_search.h"

#define OLDEST	      6
#define NEWEST	      10
/* After NEWEST, only generated functions are looked for: code objects have qualified names. */
#define NEWEST_OF_ALL 15
/* A bit of tp_flags. */
#define IS_HEAP	      (1u << 9)
#define FUZZ_ROUNDS   300
#define NS_PER_S      1000000000LL

static uint64_t make_class(struct fake_process *process, const uint64_t *values, size_t count)
{
	const struct offsets *offsets = &process->python.offsets;
	uint8_t *object = fake_object(&process->python, 1024);

	fake_put(object, offsets->object_type, process->class_type, 8);
	fake_put(object, offsets->type_dict, make_dict(process, values, count), 8);
	return (uintptr_t)object;
}

static void methods_are_named_with_their_class(void **state)
{
	(void)state;
	for (int minor = OLDEST; minor <= NEWEST; minor++) {
		struct fake_process *process = make_process(minor);
		uint64_t codes[] = { make_code(process, "f", 1), make_code(process, "g", 1),
				     make_code(process, "h", 1), make_code(process, "i", 1) };
		uint64_t method = make_function(process, codes[0], "f", "C.f");
		uint64_t hidden = make_function(process, codes[1], "g", "C.D.g");
		uint64_t inner_values[] = { make_static_method(process, hidden) };
		uint64_t outer_values[] = { 0, make_class(process, inner_values, 1), 24, method };
		uint64_t values[] = { make_class(process, outer_values, 4),
				      make_function(process, codes[2], "h", "h") };
		const char *names[] = { "C.f", "C.D.g", "h", "i" };

		set_module(process, values, 2);
		for (size_t i = 0; i < 4; i++) {
			const char bare[] = { names[i][strlen(names[i]) - 1], 0 };
			uint32_t function = want(process, codes[i], bare);

			check(process, function, bare);
			read_names(process);
			check(process, function, names[i]);
		}
		free_process(process);
	}
}

/* Makes COUNT functions of one code object, each with a name and a qualified name, and checks which
 * name the code object gets. */
static void check_functions(const char *(*functions)[2], size_t count, const char *expected)
{
	struct fake_process *process = make_process(NEWEST);
	uint64_t code = make_code(process, "f", 1), values[NAMES_MAX];
	uint32_t function;

	for (size_t i = 0; i < count; i++)
		values[i] = make_function(process, code, functions[i][0], functions[i][1]);
	set_module(process, values, count);
	function = want(process, code, "f");
	read_names(process);
	check(process, function, expected);
	free_process(process);
}

static void ambiguous_and_mismatched_names_are_not_taken(void **state)
{
	const char *same[][2] = { { "f", "C.f" }, { "f", "C.f" } };
	const char *differing[][2] = { { "f", "C.f" }, { "f", "D.f" } };
	const char *half[][2] = { { "g", "D.g" }, { "f", "C.f" }, { "f", "C.g" }, { "f", "Cf" } };

	(void)state;
	check_functions(same, 2, "C.f");
	check_functions(differing, 2, "f");
	check_functions(half, 1, "f");
	check_functions(half, 2, "C.f");
	check_functions(half + 2, 1, "f");
	check_functions(half + 3, 1, "f");
}

static void the_wrapped_function_is_named_and_its_wrapper_is_not(void **state)
{
	struct fake_process *process = make_process(NEWEST);
	const struct offsets *offsets = &process->python.offsets;
	uint64_t wrapping = make_code(process, "f", 1), wrapped = make_code(process, "f", 2);
	uint64_t function = make_function(process, wrapping, "f", "C.f");
	uint64_t inner = make_function(process, wrapped, "f", "D.f");
	uint64_t key = fake_text(&process->python, "__wrapped__");
	uint32_t first, second;

	(void)state;
	fake_put((uint8_t *)function, offsets->function_dict,
		 fake_dict(&process->python, &key, &inner, 1, true), 8);
	set_module(process, &function, 1);
	first = want(process, wrapping, "f");
	second = want_in(process, wrapped, "f", "/other.py");
	read_names(process);
	check(process, first, "f");
	check(process, second, "D.f");
	free_process(process);
}

static void all_code_objects_of_a_function_must_agree(void **state)
{
	struct fake_process *process = make_process(NEWEST);
	uint64_t codes[] = { make_code(process, "f", 1), make_code(process, "f", 2),
			     make_code(process, "f", 3) };
	uint64_t values[] = { make_function(process, codes[0], "f", "C.f"),
			      make_function(process, codes[1], "f", "C.f"),
			      make_function(process, codes[2], "f", "D.f") };
	uint32_t function;

	(void)state;
	set_module(process, values, 1);
	function = want(process, codes[0], "f");
	read_names(process);
	check(process, function, "C.f");
	/* Another code object has the same file, name and line.  The name is in doubt until its
	 * function is found. */
	assert_int_equal(want(process, codes[1], "f"), function);
	check(process, function, "f");
	set_module(process, values, 2);
	read_names(process);
	check(process, function, "C.f");
	want(process, codes[2], "f");
	set_module(process, values, 3);
	read_names(process);
	check(process, function, "f");
	free_process(process);
}

/* Looks for the name of CODE on behalf of a forked CHILD of PROCESS, which has no interpreters to
 * search. */
static uint32_t want_in_child(struct fake_process *process, struct target_process *child,
			      uint64_t serial, uint64_t code)
{
	uint32_t function;

	*child = process->target;
	child->key.serial = serial;
	child->runtime.interpreters = 0;
	process->wanting = child;
	function = want(process, code, "f");
	process->wanting = &process->target;
	return function;
}

/* One search serves the parent and its children, also children that ask later.  A child's own code
 * object at another address is not covered. */
static void forked_processes_share_names_with_their_parent(void **state)
{
	struct fake_process *process = make_process(NEWEST);
	struct target_process children[3];
	uint64_t codes[] = { make_code(process, "f", 1), make_code(process, "f", 1) };
	uint64_t value = make_function(process, codes[0], "f", "C.f");
	uint32_t function = want_in_child(process, &children[0], 1, codes[0]);

	(void)state;
	set_module(process, &value, 1);
	assert_int_equal(want(process, codes[0], "f"), function);
	read_names(process);
	check(process, function, "C.f");
	want_in_child(process, &children[1], 2, codes[0]);
	read_names(process);
	check(process, function, "C.f");
	want_in_child(process, &children[2], 3, codes[1]);
	read_names(process);
	check(process, function, "f");
	free_process(process);
}

/* The memory of a process goes before its end is reported. */
static void a_search_does_not_count_if_the_process_ends_during_it(void **state)
{
	struct fake_process *process = make_process(NEWEST);
	struct target_process ended;
	uint64_t codes[] = { make_code(process, "f", 1), make_code(process, "f", 1) };
	uint64_t value = make_function(process, codes[0], "f", "C.f");
	uint32_t function = want_in_child(process, &ended, 1, codes[1]);

	(void)state;
	read_names(process);
	qualified_names__forget(process->names, &ended);
	set_module(process, &value, 1);
	assert_int_equal(want(process, codes[0], "f"), function);
	read_names(process);
	check(process, function, "C.f");
	free_process(process);
}

static void another_code_object_is_not_named(void **state)
{
	struct fake_process *process = make_process(NEWEST);
	uint64_t code = make_code(process, "f", 1);
	uint64_t value = make_function(process, code, "f", "C.f");
	uint32_t function, again;

	(void)state;
	set_module(process, &value, 1);
	function = want(process, code, "f");
	fake_put((uint8_t *)code, process->python.offsets.code_firstlineno, 7, 4);
	read_names(process);
	check(process, function, "f");
	/* Code without a file is not looked for. */
	again = want_in(process, code, "f", "<string>");
	read_names(process);
	check(process, again, "f");
	free_process(process);
}

/* A function may be replaced while the search runs. */
static void a_function_that_changed_is_noticed(void **state)
{
	struct fake_process *process = make_process(NEWEST);
	const struct offsets *offsets = &process->python.offsets;
	uint64_t address = make_function(process, 24, "f", "C.f");
	uint32_t fields[] = { offsets->function_code, offsets->function_name,
			      offsets->function_qualname, offsets->function_dict };
	struct object_reader reader;

	(void)state;
	object_reader__init(&reader, getpid(), offsets);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint64_t *field = (uint64_t *)(address + fields[i]);
		struct function_object function = {
			.address = address,
			.code = *(uint64_t *)(address + offsets->function_code),
			.name = *(uint64_t *)(address + offsets->function_name),
			.qualified_name = *(uint64_t *)(address + offsets->function_qualname),
		};

		assert_true(function_object__is_same(&reader, &function));
		*field ^= 8;
		assert_false(function_object__is_same(&reader, &function));
		*field ^= 8;
		function.address = 24;
		assert_false(function_object__is_same(&reader, &function));
	}
	free_process(process);
}

/* Searches at each of three moments, and checks the name.  The function appears just before the
 * search with index FIRST. */
static void check_moments(const int64_t *moments, size_t first, const char *expected)
{
	struct fake_process *process = make_process(NEWEST);
	uint64_t code = make_code(process, "f", 1);
	uint64_t value = make_function(process, code, "f", "C.f");
	uint32_t function = want(process, code, "f");

	set_module(process, NULL, 0);
	for (size_t i = 0; i < 3; i++) {
		if (i == first)
			set_module(process, &value, 1);
		/* The scheduler may cut searches short, but not this often. */
		for (int j = 0; j < 50; j++)
			qualified_names__read(process->names, moments[i]);
	}
	check(process, function, expected);
	free_process(process);
}

static void a_missing_function_is_looked_for_again_but_not_for_ever(void **state)
{
	const int64_t slow[] = { 0, 60 * NS_PER_S, 120 * NS_PER_S }, fast[] = { 0, 1, 2 };

	(void)state;
	check_moments(slow, 0, "C.f");
	check_moments(slow, 1, "C.f");
	check_moments(slow, 2, "f");
	check_moments(fast, 1, "f");
}

/* A class made by Python code, with FUNCTION under KEY in its dict. */
static uint64_t make_named_class(struct fake_process *process, const char *name, const char *key,
				 uint64_t function)
{
	const struct offsets *offsets = &process->python.offsets;
	uint8_t *object = fake_object(&process->python, 1024);
	uint64_t text = fake_text(&process->python, key);

	fake_put(object, offsets->object_type, process->class_type, 8);
	fake_put(object, offsets->type_flags, IS_HEAP, 8);
	fake_put(object, offsets->type_dict, fake_dict(&process->python, &text, &function, 1, true),
		 8);
	fake_put(object, offsets->type_qualname, fake_text(&process->python, name), 8);
	return (uintptr_t)object;
}

/* Their own names do not tell which class they belong to.  The second one is a static method. */
static void generated_functions_have_the_name_of_their_class(void **state)
{
	(void)state;
	for (int minor = OLDEST; minor <= NEWEST_OF_ALL; minor++) {
		struct fake_process *process = make_process(minor);
		uint64_t codes[] = { make_code(process, "make.<locals>.f", 1),
				     make_code(process, "<lambda>", 1) };
		uint64_t f = make_function(process, codes[0], "f", "make.<locals>.f");
		uint64_t new = make_function(process, codes[1], "__new__", "<lambda>");
		uint64_t values[] = {
			make_named_class(process, "Outer.Order", "f", f),
			make_named_class(process, "Point", "__new__",
					 make_static_method(process, new)),
		};
		uint32_t functions[] = {
			want_apart(process, codes[0], "make.<locals>.f", "<string>", 1),
			want_apart(process, codes[1], "<lambda>", "<string>", 2),
		};

		set_module(process, values, 2);
		read_names(process);
		check(process, functions[0], "Outer.Order.f");
		check(process, functions[1], "Point.__new__");
		free_process(process);
	}
}

static void generated_functions_without_a_clear_class_are_not_named(void **state)
{
	struct fake_process *process = make_process(NEWEST_OF_ALL);
	uint64_t codes[] = { make_code(process, "f", 1), make_code(process, "f", 1),
			     make_code(process, "f", 1), make_code(process, "f", 1) };
	uint64_t shared = make_function(process, codes[0], "f", "f");
	uint64_t values[] = {
		make_named_class(process, "A", "f", shared),
		make_named_class(process, "B", "f", shared),
		/* The class has it under another name. */
		make_named_class(process, "C", "g", make_function(process, codes[1], "f", "f")),
		/* No class has it. */
		make_function(process, codes[2], "f", "f"),
		make_named_class(process, "D", "f", make_function(process, codes[3], "f", "f")),
	};
	uint32_t functions[4];

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		functions[i] = want_apart(process, codes[i], "f", "<string>", i + 1);
	/* Without IS_HEAP, D is a built-in class. */
	fake_put((uint8_t *)values[4], process->python.offsets.type_flags, 0, 8);
	set_module(process, values, 5);
	read_names(process);
	for (uint32_t i = 0; i < 4; i++)
		check(process, functions[i], "f");
	free_process(process);
}

/* After the profile begins anew, a found name is still known, and a missing one is not looked for
 * again. */
static void results_are_kept_when_the_profile_begins_anew(void **state)
{
	struct fake_process *process = make_process(NEWEST_OF_ALL);
	uint64_t codes[] = { make_code(process, "f", 1), make_code(process, "g", 1) };
	uint64_t class =
		make_named_class(process, "A", "f", make_function(process, codes[0], "f", "f"));

	(void)state;
	set_module(process, &class, 1);
	for (int i = 0; i < 2; i++) {
		uint32_t found = want_apart(process, codes[0], "f", "<string>", 1);
		uint32_t missed = want_apart(process, codes[1], "g", "<string>", 2);

		read_names(process);
		/* A missing function is looked for twice. */
		read_names(process);
		check(process, found, "A.f");
		check(process, missed, "g");
		qualified_names__begin_anew(process->names);
		profile__free(profile__retire(process->profile));
		/* From now on a search would find the second function, but not the first one. */
		class = make_named_class(process, "B", "g",
					 make_function(process, codes[1], "g", "g"));
		set_module(process, &class, 1);
	}
	free_process(process);
}

/* Workers get the names that an ended sibling had found.  The last worker has other ancestors, and
 * only looks the same. */
static void names_found_by_an_ended_sibling_are_known(void **state)
{
	struct fake_process *process = make_process(NEWEST_OF_ALL);
	uint64_t code = make_code(process, "f", 1);
	uint64_t class =
		make_named_class(process, "A", "f", make_function(process, code, "f", "f"));
	static const uint64_t ancestors[] = { 9, 9, 0 };
	static const char *const names[] = { "A.f", "A.f", "f" };

	(void)state;
	set_module(process, &class, 1);
	for (uint64_t i = 0; i < 3; i++) {
		struct target_process worker = process->target;
		uint32_t function;

		worker.key.serial = i + 1;
		worker.ancestor = ancestors[i];
		process->wanting = &worker;
		function = want_apart(process, code, "f", "<string>", 1);
		read_names(process);
		check(process, function, names[i]);
		qualified_names__forget(process->names, &worker);
		qualified_names__begin_anew(process->names);
		profile__free(profile__retire(process->profile));
		/* From now on a search would not find the function. */
		set_module(process, &class, 0);
	}
	free_process(process);
}

static void cycles_end(void **state)
{
	struct fake_process *process = make_process(NEWEST);
	const struct offsets *offsets = &process->python.offsets;
	uint64_t code = make_code(process, "f", 1);
	uint64_t values[] = { 0, make_function(process, code, "f", "C.f"), 0 };
	uint64_t class = make_class(process, values, 0), loop = make_static_method(process, 0);
	uint32_t function;

	(void)state;
	values[0] = class;
	values[2] = loop;
	fake_put((uint8_t *)loop, offsets->object_type + 8, loop, 8);
	fake_put((uint8_t *)class, offsets->type_dict, make_dict(process, values, 3), 8);
	set_module(process, &class, 1);
	function = want(process, code, "f");
	read_names(process);
	check(process, function, "C.f");
	free_process(process);
}

/* With any memory contents, the search ends and does not read out of bounds. */
static void corrupt_memory_is_safe(void **state)
{
	(void)state;
	srandom(1);
	for (int i = 0; i < FUZZ_ROUNDS; i++) {
		struct fake_process *process = make_process(OLDEST + i % (NEWEST - OLDEST + 1));
		uint64_t code = make_code(process, "f", 1);
		uint64_t method = make_function(process, code, "f", "C.f");
		uint64_t values[] = { make_class(process, &method, 1),
				      make_static_method(process, method) };

		set_module(process, values, 2);
		want(process, code, "f");
		spoil_memory(process);
		read_names(process);
		free_process(process);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods_are_named_with_their_class),
		cmocka_unit_test(ambiguous_and_mismatched_names_are_not_taken),
		cmocka_unit_test(the_wrapped_function_is_named_and_its_wrapper_is_not),
		cmocka_unit_test(all_code_objects_of_a_function_must_agree),
		cmocka_unit_test(forked_processes_share_names_with_their_parent),
		cmocka_unit_test(a_search_does_not_count_if_the_process_ends_during_it),
		cmocka_unit_test(another_code_object_is_not_named),
		cmocka_unit_test(a_function_that_changed_is_noticed),
		cmocka_unit_test(a_missing_function_is_looked_for_again_but_not_for_ever),
		cmocka_unit_test(generated_functions_have_the_name_of_their_class),
		cmocka_unit_test(generated_functions_without_a_clear_class_are_not_named),
		cmocka_unit_test(results_are_kept_when_the_profile_begins_anew),
		cmocka_unit_test(names_found_by_an_ended_sibling_are_known),
		cmocka_unit_test(cycles_end),
		cmocka_unit_test(corrupt_memory_is_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
