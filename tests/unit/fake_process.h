/* SPDX-License-Identifier: BSD-2-Clause */
/* A process, in the test's own memory, whose functions are searched. */
#ifndef FAKE_PROCESS_H
#define FAKE_PROCESS_H

#include <stdio.h>
#include <unistd.h>

#include "fake_python.h"
#include "naming/code_identity.h"
#include "naming/qualified_names.h"
#include "naming/thread_names.h"

#define NAMES_MAX 8

/* A bit of tp_flags. */
#define IS_CLASS (1u << 31)

/* This process, as a target with one interpreter and one module. */
struct fake_process {
	struct fake_python python;
	struct target_process target;
	struct profile *profile;
	struct qualified_names *names;
	uint64_t interpreters, function_type, static_method_type, class_type, old_class_type;
	const struct target_process *wanting;
};

/* A built-in type. */
static inline uint64_t make_type(struct fake_python *python, const char *name)
{
	uint64_t type = fake_type(python, 0, 0, 0, 0);
	uint8_t *text = fake_object(python, 32);

	memcpy(text, name, strlen(name));
	fake_put((uint8_t *)type, python->offsets.varobject_size + 8, (uintptr_t)text, 8);
	return type;
}

static inline struct fake_process *make_process_of(struct offsets offsets)
{
	struct fake_process *process = calloc(1, sizeof(*process));
	struct runtime *runtime = &process->target.runtime;

	fake_python__init(&process->python, &offsets);
	runtime->offsets = offsets;
	assert_int_equal(offsets__layout(&runtime->offsets, &runtime->layout), 0);
	runtime->interpreters = (uintptr_t)&process->interpreters;
	process->target.process.pid = getpid();
	process->profile = profile__new();
	process->names = qualified_names__new(process->profile);
	process->wanting = &process->target;
	process->function_type = make_type(&process->python, "function");
	process->static_method_type = make_type(&process->python, "staticmethod");
	process->class_type = fake_type(&process->python, IS_CLASS, 0, 0, 0);
	process->old_class_type = make_type(&process->python, "classobj");
	return process;
}

static inline struct fake_process *make_process(int minor)
{
	return make_process_of(fake_offsets(minor));
}

static inline void free_process(struct fake_process *process)
{
	qualified_names__free(process->names);
	profile__free(process->profile);
	fake_python__free(&process->python);
	free(process);
}

/* A dict of COUNT values under arbitrary keys. */
static inline uint64_t make_dict(struct fake_process *process, const uint64_t *values, size_t count)
{
	uint64_t keys[NAMES_MAX];
	char key[32];

	for (size_t i = 0; i < count; i++) {
		snprintf(key, sizeof(key), "key%zu", i);
		keys[i] = fake_text(&process->python, key);
	}
	return fake_dict(&process->python, keys, values, count, true);
}

/* Gives the interpreter a single module, whose dict is DICT. */
static inline void set_module_dict(struct fake_process *process, uint64_t dict)
{
	struct fake_python *python = &process->python;
	uint64_t module = fake_module(python, dict);
	uint8_t *interpreter = fake_object(python, 2048);

	fake_put(interpreter, python->offsets.interp_modules, make_dict(process, &module, 1), 8);
	process->interpreters = (uintptr_t)interpreter;
}

/* Same, with a dict of these values. */
static inline void set_module(struct fake_process *process, const uint64_t *values, size_t count)
{
	set_module_dict(process, make_dict(process, values, count));
}

/* An empty line table: a zeroed bytes object. */
#define EMPTY_TABLE_BYTES 64

static inline uint64_t make_code(struct fake_process *process, const char *name, uint32_t line)
{
	const struct offsets *offsets = &process->python.offsets;
	uint8_t *object = fake_object(&process->python, 256);
	uint64_t text = fake_text(&process->python, name);

	fake_put(object, offsets->code_name, text, 8);
	if (offsets->code_qualname != OFFSET_ABSENT)
		fake_put(object, offsets->code_qualname, text, 8);
	fake_put(object, offsets->code_filename, fake_text(&process->python, "/file.py"), 8);
	fake_put(object, offsets->code_linetable,
		 (uintptr_t)fake_object(&process->python, EMPTY_TABLE_BYTES), 8);
	fake_put(object, offsets->code_firstlineno, line, 4);
	return (uintptr_t)object;
}

static inline uint64_t make_function(struct fake_process *process, uint64_t code, const char *name,
				     const char *qualified)
{
	const struct offsets *offsets = &process->python.offsets;
	uint8_t *object = fake_object(&process->python, 256);

	fake_put(object, offsets->object_type, process->function_type, 8);
	fake_put(object, offsets->function_code, code, 8);
	fake_put(object, offsets->function_name, fake_text(&process->python, name), 8);
	fake_put(object, offsets->function_qualname, fake_text(&process->python, qualified), 8);
	return (uintptr_t)object;
}

static inline uint64_t make_static_method(struct fake_process *process, uint64_t function)
{
	uint8_t *object = fake_object(&process->python, 64);

	fake_put(object, process->python.offsets.object_type, process->static_method_type, 8);
	fake_put(object, process->python.offsets.object_type + 8, function, 8);
	return (uintptr_t)object;
}

/* Asks for the qualified name of CODE.  Returns its function in the profile.  APART tells that from
 * others with the same name, file and line. */
static inline uint32_t want_apart(struct fake_process *process, uint64_t code, const char *name,
				  const char *filename, uint32_t apart)
{
	struct profile_function function = {
		.name = profile__string(process->profile, name),
		.filename = profile__string(process->profile, filename),
		.first_line = 1,
		.apart = apart,
	};
	struct known_code known = {
		.address = code,
		.identity = code_identity__read(&process->target, code),
		.code = { .name = (char *)name, .filename = (char *)filename },
		.function = profile__function(process->profile, &function),
	};

	qualified_names__want(process->names, process->wanting, &known);
	return known.function;
}

static inline uint32_t want_in(struct fake_process *process, uint64_t code, const char *name,
			       const char *filename)
{
	return want_apart(process, code, name, filename, 0);
}

static inline uint32_t want(struct fake_process *process, uint64_t code, const char *name)
{
	return want_in(process, code, name, "/file.py");
}

static inline void check(const struct fake_process *process, uint32_t function,
			 const char *expected)
{
	const struct profile *profile = process->profile;

	assert_string_equal(profile->strings[profile->functions[function].name], expected);
}

static inline void read_names(struct fake_process *process)
{
	qualified_names__read(process->names, THREAD_NAMES_ALL);
}

/* Overwrites some words of its memory at random. */
static inline void spoil_memory(struct fake_process *process)
{
	struct fake_python *python = &process->python;

	for (int i = 0; i < 20; i++) {
		uint64_t *word = (uint64_t *)python->memory + random() % (python->used / 8);

		*word = random() % 2 ? (uintptr_t)python->memory + random() % python->used
				     : (uint64_t)random() << random() % 33;
	}
}

#endif
