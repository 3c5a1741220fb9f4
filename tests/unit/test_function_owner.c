// SPDX-License-Identifier: BSD-2-Clause
/* Qualified names in 2.7: the paths by which functions are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fake_process.h"

#define FUZZ_ROUNDS 100

/* A bit of co_flags. */
#define IS_NESTED 0x10

/* An attribute of a module or a class of 2.7. */
struct attribute {
	const char *key;
	uint64_t value;
};

/* A dict of 2.7.  An attribute without a key ends the list. */
static uint64_t make_attributes(struct fake_process *process, const struct attribute *attributes)
{
	uint64_t keys[NAMES_MAX], values[NAMES_MAX];
	size_t count = 0;

	for (; attributes[count].key; count++) {
		keys[count] = fake_text(&process->python, attributes[count].key);
		values[count] = attributes[count].value;
	}
	return fake_dict(&process->python, keys, values, count, true);
}

static uint64_t make_class_2_7(struct fake_process *process, bool is_old, const char *name,
			       const struct attribute *attributes)
{
	const struct offsets *offsets = &process->python.offsets;
	uint8_t *object = fake_object(&process->python, 1024);
	uint64_t dict = make_attributes(process, attributes);
	uint64_t text = fake_text(&process->python, name);

	fake_put(object, offsets->object_type,
		 is_old ? process->old_class_type : process->class_type, 8);
	fake_put(object, is_old ? offsets->class_dict : offsets->type_dict, dict, 8);
	if (is_old)
		fake_put(object, offsets->class_name, text, 8);
	else
		fake_put(object, offsets->varobject_size + 8, text + offsets->bytes_data, 8);
	return (uintptr_t)object;
}

/* A method of 2.7, where it is found, and the expected name.  NULL and 0: as usual. */
struct path_case {
	const char *name, *expected;
	const char *method_key, *class_key, *module; /* __module__ */
	uint32_t flags;
	bool is_foreign; /* its globals are not the module's */
};

static void check_path(const struct path_case *path, bool is_old)
{
	struct fake_process *process = make_process_of(fake_offsets_2_7());
	const struct offsets *offsets = &process->python.offsets;
	uint64_t code = make_code(process, path->name, 1);
	uint64_t method = make_function(process, code, path->name, "");
	uint64_t name = fake_text(&process->python, "module");
	struct attribute of_class[] = {
		{ "__module__", path->module ? fake_text(&process->python, path->module) : name },
		{ path->method_key ? path->method_key : path->name, method },
		{ NULL, 0 },
	};
	struct attribute of_module[] = {
		{ "__name__", name },
		{ path->class_key ? path->class_key : "_C",
		  make_class_2_7(process, is_old, "_C", of_class) },
		{ NULL, 0 },
	};
	uint64_t module = make_attributes(process, of_module);
	uint32_t function;

	fake_put((uint8_t *)code, offsets->code_flags, path->flags, 4);
	fake_put((uint8_t *)method, offsets->function_globals, path->is_foreign ? method : module,
		 8);
	set_module_dict(process, module);
	function = want(process, code, path->name);
	read_names(process);
	check(process, function, path->expected);
	free_process(process);
}

static void a_path_must_be_confirmed(void **state)
{
	static const struct path_case paths[] = {
		{ .name = "f", .expected = "_C.f" },
		{ .name = "__f", .expected = "_C.__f", .method_key = "_C__f" },
		{ .name = "__f__", .expected = "__f__", .method_key = "_C__f__" },
		{ .name = "__f", .expected = "__f", .method_key = "_D__f" },
		{ .name = "f", .expected = "f", .method_key = "g" },
		{ .name = "f", .expected = "f", .method_key = "_Cf" },
		{ .name = "f", .expected = "f", .class_key = "D" },
		{ .name = "f", .expected = "f", .class_key = "_" },
		{ .name = "f", .expected = "f", .module = "other" },
		{ .name = "f", .expected = "f", .is_foreign = true },
		{ .name = "f", .expected = "f", .flags = IS_NESTED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		for (int is_old = 0; is_old <= 1; is_old++)
			check_path(&paths[i], is_old);
}

/* Checks the name of a static method.  KEYS are the module's attributes: "C" is a class with the
 * method, "Outer" and "Other" are classes that contain C, other names are classes like C. */
static void check_names(const char *const *keys, bool is_old, const char *expected)
{
	struct fake_process *process = make_process_of(fake_offsets_2_7());
	uint64_t code = make_code(process, "f", 1), module;
	uint64_t method = make_function(process, code, "f", "");
	struct attribute in = { "__module__", fake_text(&process->python, "module") };
	struct attribute of_class[] = { in, { "f", make_static_method(process, method) }, { 0 } };
	uint64_t class = make_class_2_7(process, is_old, "C", of_class);
	struct attribute of_outer[] = { in, { "C", class }, { 0 } };
	struct attribute of_module[NAMES_MAX] = { { "__name__", in.value } };
	uint32_t function;

	for (size_t i = 0; keys[i]; i++) {
		uint64_t value = strcmp(keys[i], "C") == 0
					 ? class
					 : make_class_2_7(process, is_old, keys[i],
							  *keys[i] == 'O' ? of_outer : of_class);

		of_module[i + 1] = (struct attribute){ keys[i], value };
	}
	module = make_attributes(process, of_module);
	fake_put((uint8_t *)method, process->python.offsets.function_globals, module, 8);
	set_module_dict(process, module);
	function = want(process, code, "f");
	read_names(process);
	check(process, function, expected);
	free_process(process);
}

static void two_paths_give_no_qualified_name(void **state)
{
	static const struct {
		const char *keys[4], *expected;
	} names[] = {
		{ { "C" }, "C.f" },
		{ { "Outer" }, "Outer.C.f" },
		{ { "Outer", "C" }, "f" },
		{ { "C", "Outer" }, "f" },
		{ { "C", "Outer", "Other" }, "f" },
		{ { "C", "D" }, "f" },
		{ { "D" }, "D.f" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (int is_old = 0; is_old <= 1; is_old++)
			check_names(names[i].keys, is_old, names[i].expected);
}

/* The class contains itself, so several paths lead to its method. */
static void cycles_end(void **state)
{
	struct fake_process *process = make_process_of(fake_offsets_2_7());
	const struct offsets *offsets = &process->python.offsets;
	uint64_t code = make_code(process, "f", 1), dict, module;
	uint64_t method = make_function(process, code, "f", "");
	struct attribute of_class[] = { { "__module__", fake_text(&process->python, "module") },
					{ "C", 0 },
					{ "f", method },
					{ 0 } };
	uint64_t class = make_class_2_7(process, false, "C", of_class);
	struct attribute of_module[] = { { "__name__", of_class[0].value }, { "C", class }, { 0 } };
	uint32_t function;

	(void)state;
	of_class[1].value = class;
	dict = make_attributes(process, of_class);
	fake_put((uint8_t *)class, offsets->type_dict, dict, 8);
	module = make_attributes(process, of_module);
	fake_put((uint8_t *)method, offsets->function_globals, module, 8);
	set_module_dict(process, module);
	function = want(process, code, "f");
	read_names(process);
	check(process, function, "f");
	free_process(process);
}

/* Sets a module of 2.7 with METHOD in a nested class. */
static void set_module_2_7(struct fake_process *process, uint64_t method)
{
	struct attribute in = { "__module__", fake_text(&process->python, "module") };
	struct attribute of_class[] = { in, { "f", make_static_method(process, method) }, { 0 } };
	uint64_t class = make_class_2_7(process, true, "C", of_class);
	struct attribute of_outer[] = { in, { "C", class }, { 0 } };
	struct attribute of_module[] = { { "__name__", in.value },
					 { "Outer",
					   make_class_2_7(process, false, "Outer", of_outer) },
					 { 0 } };
	uint64_t module = make_attributes(process, of_module);

	fake_put((uint8_t *)method, process->python.offsets.function_globals, module, 8);
	set_module_dict(process, module);
}

/* The search ends, and uses nothing beyond what it has read. */
static void random_memory_is_safe(void **state)
{
	(void)state;
	srandom(1);
	for (int i = 0; i < FUZZ_ROUNDS; i++) {
		struct fake_process *process = make_process_of(fake_offsets_2_7());
		uint64_t code = make_code(process, "f", 1);

		set_module_2_7(process, make_function(process, code, "f", ""));
		want(process, code, "f");
		spoil_memory(process);
		read_names(process);
		free_process(process);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_must_be_confirmed),
		cmocka_unit_test(two_paths_give_no_qualified_name),
		cmocka_unit_test(cycles_end),
		cmocka_unit_test(random_memory_is_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
