// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake_python.h"
#include "naming/thread_names.h"

#define IDENT	    0x7f00deadb000
#define OTHER_IDENT 0x7f00deadc000
#define NO_TID	    0x7ffffffe
#define FUZZ_ROUNDS 600
#define SECOND_NS   1000000000LL
#define MS_NS	    1000000LL
#define LONG_NAME   400000
#define NAMES_MAX   (64 * 1024 * 1024)

/* The process is the test's own, and its thread is the calling one. */
struct fake_process {
	struct fake_python python;
	struct target_process target;
	struct profile *profile;
	struct thread_names *names;
	uint64_t interpreters;
	uint64_t now_ns;
};

static bool is_2(const struct fake_process *process)
{
	return process->python.offsets.version >> 24 == 2;
}

static bool has_native_ids(const struct fake_process *process)
{
	return process->python.offsets.version >= 0x03080000;
}

static struct fake_process *make_process(const struct offsets *offsets)
{
	struct fake_process *process = calloc(1, sizeof(*process));

	fake_python__init(&process->python, offsets);
	process->target.process.pid = getpid();
	process->target.runtime.offsets = *offsets;
	process->target.runtime.interpreters = (uintptr_t)&process->interpreters;
	process->profile = profile__new();
	process->names = thread_names__new(process->profile, &process->target, NULL);
	return process;
}

static void free_process(struct fake_process *process)
{
	thread_names__free(process->names);
	profile__free(process->profile);
	fake_python__free(&process->python);
	free(process);
}

/* A Thread object; NATIVE_ID 0: it has none. */
static uint64_t make_thread(struct fake_process *process, uint64_t ident, uint64_t native_id,
			    uint64_t name, enum fake_attributes form)
{
	struct fake_python *python = &process->python;
	uint64_t keys[3], values[3];

	keys[0] = fake_text(python, is_2(process) ? "_Thread__name" : "_name");
	values[0] = name;
	keys[1] = fake_text(python, is_2(process) ? "_Thread__ident" : "_ident");
	values[1] = fake_int(python, ident, 0);
	keys[2] = fake_text(python, "_native_id");
	values[2] = native_id ? fake_int(python, native_id, 0) : 0;
	return fake_instance(python, keys, values, has_native_ids(process) ? 3 : 2, form);
}

/* Adds the newest interpreter, in which threading._active is the dict ACTIVE. */
static uint8_t *add_interpreter_of(struct fake_process *process, uint64_t active)
{
	struct fake_python *python = &process->python;
	uint8_t *interpreter = fake_object(python, 16384);
	uint64_t module, modules;
	uint64_t names[] = { fake_text(python, "_limbo"), fake_text(python, "_active") };
	uint64_t module_names[] = { fake_text(python, "sys"), fake_text(python, "threading") };

	module = fake_module(python, fake_dict(python, names, (uint64_t[]){ 1, active }, 2, true));
	modules = fake_dict(python, module_names, (uint64_t[]){ 1, module }, 2, true);
	fake_put(interpreter, python->offsets.interp_modules, modules, 8);
	fake_put(interpreter, python->offsets.interp_next, process->interpreters, 8);
	process->interpreters = (uintptr_t)interpreter;
	return interpreter;
}

/* The same, with THREAD under IDENT in that dict. */
static uint8_t *add_interpreter(struct fake_process *process, uint64_t ident, uint64_t thread)
{
	uint64_t key = fake_int(&process->python, ident, 0);

	return add_interpreter_of(process, fake_dict(&process->python, &key, &thread, 1, false));
}

/* Reports a sample of thread TID; returns whether the thread has its name from Python already. */
static bool see(struct fake_process *process, uint64_t ident, pid_t tid)
{
	struct definition definition = { .thread_id = ident, .tid = tid };
	uint32_t thread = profile__thread(process->profile, 0, tid, 0);

	return thread_names__see(process->names, &definition, thread);
}

static const char *name_of(struct fake_process *process, pid_t tid)
{
	struct profile *profile = process->profile;

	return profile->strings[profile->threads[profile__thread(profile, 0, tid, 0)].name];
}

static void check_name(struct fake_process *process, uint64_t ident, pid_t tid,
		       const char *expected)
{
	see(process, ident, tid);
	thread_names__read(process->names, THREAD_NAMES_ALL, 1);
	assert_string_equal(name_of(process, tid), expected);
	assert_int_equal(see(process, ident, tid), *expected != '\0');
}

static void every_version_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < FAKE_VERSIONS * FAKE_FORMS; i++) {
		struct offsets offsets = fake_version(i / FAKE_FORMS);
		struct fake_process *process = make_process(&offsets);
		uint64_t name = fake_text(&process->python, "a name of more than 15 characters");

		add_interpreter(process, IDENT,
				make_thread(process, IDENT, gettid(), name, i % FAKE_FORMS));
		check_name(process, IDENT, gettid(), "a name of more than 15 characters");
		free_process(process);
	}
}

/* Thread objects that do not match the sampled thread. */
static const struct doubt {
	uint64_t key, ident, native_id; /* native_id 0: our tid */
	uint64_t seen;
} doubts[] = {
	{ OTHER_IDENT, IDENT, 0, IDENT }, { IDENT, OTHER_IDENT, 0, IDENT },
	{ IDENT, IDENT, 0, OTHER_IDENT }, { IDENT, IDENT, 0, 0 },
	{ IDENT, IDENT, NO_TID, IDENT },  { IDENT, IDENT, 1ull << 59, IDENT },
};

static void another_threads_name_is_not_taken(void **state)
{
	(void)state;
	for (size_t i = 0; i < FAKE_VERSIONS * sizeof(doubts) / sizeof(doubts[0]); i++) {
		const struct doubt *doubt = &doubts[i / FAKE_VERSIONS];
		struct offsets offsets = fake_version(i % FAKE_VERSIONS);
		struct fake_process *process = make_process(&offsets);
		uint64_t name = fake_text(&process->python, "wrong");
		uint64_t native_id = doubt->native_id ? doubt->native_id : (uint64_t)gettid();

		if (doubt->native_id && !has_native_ids(process)) {
			free_process(process);
			continue;
		}
		add_interpreter(process, doubt->key,
				make_thread(process, doubt->ident, native_id, name, FAKE_SHARED));
		check_name(process, doubt->seen, gettid(), "");
		free_process(process);
	}
}

/* From 3.8 on, the native ID tells them apart.  Before, the sampled thread must be alive. */
static void an_ended_thread_does_not_get_the_name_of_its_idents_next_owner(void **state)
{
	(void)state;
	for (size_t i = 0; i < FAKE_VERSIONS; i++) {
		struct offsets offsets = fake_version(i);
		struct fake_process *process = make_process(&offsets);
		uint64_t name = fake_text(&process->python, "the next one");

		add_interpreter(process, IDENT,
				make_thread(process, IDENT, gettid(), name, FAKE_SHARED));
		check_name(process, IDENT, NO_TID, "");
		/* Then the living thread is sampled. */
		check_name(process, IDENT, gettid(), "the next one");
		assert_string_equal(name_of(process, NO_TID), "");
		free_process(process);
	}
}

/* An ending thread has no ident any more.  Its old name is better than the kernel's. */
static void an_ending_thread_keeps_its_name(void **state)
{
	struct offsets offsets = fake_offsets(13);
	struct fake_process *process = make_process(&offsets);
	uint64_t name = fake_text(&process->python, "a worker");

	(void)state;
	add_interpreter(process, IDENT, make_thread(process, IDENT, gettid(), name, FAKE_SHARED));
	assert_false(see(process, 0, gettid()));
	check_name(process, IDENT, gettid(), "a worker");
	assert_true(see(process, 0, gettid()));
	/* The next thread with the same TID is another one. */
	assert_false(see(process, OTHER_IDENT, gettid()));
	assert_false(see(process, 0, gettid()));
	free_process(process);
}

static void invalid_names_are_not_taken(void **state)
{
	(void)state;
	for (size_t i = 0; i < FAKE_VERSIONS; i++) {
		struct offsets offsets = fake_version(i);
		struct fake_process *process = make_process(&offsets);
		struct fake_python *python = &process->python;
		uint64_t names[] = { 0, 24, fake_int(python, 7, 0), fake_text(python, ""),
				     python->str_type };

		for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
			add_interpreter(
				process, IDENT,
				make_thread(process, IDENT, gettid(), names[j], FAKE_SHARED));
			check_name(process, IDENT, gettid(), "");
		}
		free_process(process);
	}
}

static void the_latest_name_counts(void **state)
{
	struct offsets offsets = fake_offsets(13);
	struct fake_process *process = make_process(&offsets);
	uint64_t first = fake_text(&process->python, "first");
	uint64_t second = fake_text(&process->python, "second");
	uint64_t third = fake_text(&process->python, "third");

	(void)state;
	add_interpreter(process, IDENT, make_thread(process, IDENT, gettid(), first, FAKE_SHARED));
	assert_false(see(process, IDENT, gettid()));
	thread_names__read(process->names, SECOND_NS, 1);
	assert_string_equal(name_of(process, gettid()), "first");
	assert_true(see(process, IDENT, gettid()));
	process->interpreters = 0;
	add_interpreter(process, IDENT, make_thread(process, IDENT, gettid(), second, FAKE_SHARED));
	/* Names are not read with each drain, but soon again, ... */
	thread_names__read(process->names, 2 * SECOND_NS, 1);
	assert_string_equal(name_of(process, gettid()), "first");
	thread_names__read(process->names, 2 * SECOND_NS + 100 * MS_NS, 1);
	assert_string_equal(name_of(process, gettid()), "second");
	/* ... then once in a while, ... */
	process->interpreters = 0;
	add_interpreter(process, IDENT, make_thread(process, IDENT, gettid(), third, FAKE_SHARED));
	thread_names__read(process->names, 4 * SECOND_NS, 1);
	assert_string_equal(name_of(process, gettid()), "second");
	thread_names__read(process->names, 60 * SECOND_NS, 1);
	assert_string_equal(name_of(process, gettid()), "third");
	/* ... until a new thread comes. */
	process->interpreters = 0;
	add_interpreter(process, IDENT, make_thread(process, IDENT, gettid(), second, FAKE_SHARED));
	see(process, OTHER_IDENT, NO_TID);
	thread_names__read(process->names, 61 * SECOND_NS, 1);
	assert_string_equal(name_of(process, gettid()), "third");
	thread_names__read(process->names, 63 * SECOND_NS, 1);
	assert_string_equal(name_of(process, gettid()), "second");
	/* Nothing is read from a process that has ended, because its PID may be reused. */
	process->interpreters = 0;
	add_interpreter(process, IDENT, make_thread(process, IDENT, gettid(), first, FAKE_SHARED));
	process->target.ended = true;
	thread_names__read(process->names, THREAD_NAMES_ALL, 1);
	assert_string_equal(name_of(process, gettid()), "second");
	free_process(process);
}

/* A name may have any length, but the names of a process take limited memory. */
static void names_are_whole_up_to_a_limit(void **state)
{
	struct offsets offsets = fake_offsets(13);
	struct fake_process *process = make_process(&offsets);
	char *expected = malloc(LONG_NAME + 1), *name;
	uint64_t text;
	int changes = 0;

	(void)state;
	memset(expected, 'x', LONG_NAME);
	memset(expected, 'A', 8);
	expected[LONG_NAME] = '\0';
	text = fake_text(&process->python, expected);
	name = memmem((void *)(uintptr_t)text, LONG_NAME, "AAAAAAAA", 8);
	assert_non_null(name);
	add_interpreter(process, IDENT, make_thread(process, IDENT, gettid(), text, FAKE_SHARED));
	for (; changes <= 2 * NAMES_MAX / LONG_NAME; changes++) {
		memcpy(expected, name, 8);
		see(process, IDENT, gettid());
		thread_names__read(process->names, THREAD_NAMES_ALL, 1);
		if (strcmp(name_of(process, gettid()), expected) != 0)
			break;
		name[changes % 8]++;
	}
	assert_in_range(changes, NAMES_MAX / LONG_NAME, NAMES_MAX / LONG_NAME + 1);
	free(expected);
	free_process(process);
}

/* Most threads are first sampled before they are in threading._active. */
static void a_thread_is_looked_for_until_it_is_found(void **state)
{
	struct offsets offsets = fake_offsets(13);
	struct fake_process *process = make_process(&offsets);
	uint64_t name = fake_text(&process->python, "late"), thread;
	int64_t due_ns = SECOND_NS;

	(void)state;
	thread = make_thread(process, OTHER_IDENT, NO_TID, name, FAKE_SHARED);
	add_interpreter(process, OTHER_IDENT, thread);
	see(process, IDENT, gettid());
	for (int i = 0; i < 5; i++) {
		int64_t now_ns = due_ns;

		due_ns = thread_names__read(process->names, now_ns, 1);
		assert_in_range(due_ns, now_ns + MS_NS, now_ns + 10 * MS_NS);
	}
	/* The thread's interpreter did not exist before, either. */
	due_ns = SECOND_NS + 700 * MS_NS;
	add_interpreter(process, IDENT, make_thread(process, IDENT, gettid(), name, FAKE_SHARED));
	assert_true(thread_names__read(process->names, due_ns, 1) == THREAD_NAMES_NEVER);
	assert_string_equal(name_of(process, gettid()), "late");
	free_process(process);
}

static void a_thread_without_a_name_is_looked_for_a_few_times(void **state)
{
	struct offsets offsets = fake_offsets(13);
	struct fake_process *process = make_process(&offsets);
	uint64_t name = fake_text(&process->python, "another");
	int64_t now_ns = SECOND_NS, due_ns;
	int times = 0;

	(void)state;
	add_interpreter(process, OTHER_IDENT,
			make_thread(process, OTHER_IDENT, NO_TID, name, FAKE_SHARED));
	see(process, IDENT, gettid());
	/* Until all names are read again. */
	for (; now_ns < SECOND_NS + 500 * MS_NS; times++) {
		due_ns = thread_names__read(process->names, now_ns, 1);
		/* In between there is nothing to do. */
		assert_int_equal(thread_names__read(process->names, due_ns - 1, 1), due_ns);
		now_ns = due_ns;
	}
	assert_in_range(times, 8, 20);
	free_process(process);
}

static void many_threads_are_not_read_all_the_time(void **state)
{
	enum { LIVING = 2000 };
	struct offsets offsets = fake_offsets(13);
	struct fake_process *process = make_process(&offsets);
	struct fake_python *python = &process->python;
	uint64_t keys[LIVING], values[LIVING];
	int64_t due_ns;

	(void)state;
	for (uint64_t i = 0; i < LIVING; i++) {
		keys[i] = fake_int(python, OTHER_IDENT + i, 0);
		values[i] = keys[i];
	}
	add_interpreter_of(process, fake_dict(python, keys, values, LIVING, false));
	see(process, IDENT, gettid());
	due_ns = thread_names__read(process->names, SECOND_NS, 1);
	assert_in_range(due_ns, SECOND_NS + 10 * MS_NS, SECOND_NS + 100 * MS_NS);
	/* A further thread does not change that. */
	see(process, IDENT + 8, NO_TID);
	assert_int_equal(thread_names__read(process->names, SECOND_NS + 5 * MS_NS, 1), due_ns);
	free_process(process);
}

static void the_main_interpreters_name_counts(void **state)
{
	struct offsets offsets = fake_offsets(12);
	struct fake_process *process = make_process(&offsets);
	uint64_t worker = fake_text(&process->python, "worker");
	uint64_t dummy = fake_text(&process->python, "MainThread");

	(void)state;
	add_interpreter(process, IDENT, make_thread(process, IDENT, gettid(), worker, FAKE_SHARED));
	add_interpreter(process, IDENT, make_thread(process, IDENT, gettid(), dummy, FAKE_SHARED));
	check_name(process, IDENT, gettid(), "worker");
	free_process(process);
}

static void a_sub_interpreters_thread_is_named(void **state)
{
	struct offsets offsets = fake_offsets(12);
	struct fake_process *process = make_process(&offsets);
	uint64_t other = fake_text(&process->python, "other");
	uint64_t own = fake_text(&process->python, "of a sub-interpreter");

	(void)state;
	add_interpreter(process, OTHER_IDENT,
			make_thread(process, OTHER_IDENT, NO_TID, other, FAKE_SHARED));
	add_interpreter(process, IDENT, make_thread(process, IDENT, gettid(), own, FAKE_SHARED));
	check_name(process, IDENT, gettid(), "of a sub-interpreter");
	free_process(process);
}

static void a_ring_of_interpreters_ends(void **state)
{
	struct offsets offsets = fake_offsets(12);
	struct fake_process *process = make_process(&offsets);
	uint64_t name = fake_text(&process->python, "name");
	uint8_t *interpreter = add_interpreter(
		process, IDENT, make_thread(process, IDENT, gettid(), name, FAKE_SHARED));

	(void)state;
	fake_put(interpreter, offsets.interp_next, (uintptr_t)interpreter, 8);
	check_name(process, IDENT, gettid(), "name");
	free_process(process);
}

static void corrupt_memory_is_safe(void **state)
{
	uint64_t random = 88172645463325252ull;

	(void)state;
	for (size_t i = 0; i < FUZZ_ROUNDS; i++) {
		struct offsets offsets = fake_version(i % FAKE_VERSIONS);
		struct fake_process *process = make_process(&offsets);
		uint64_t name = fake_text(&process->python, "name");

		add_interpreter(process, IDENT,
				make_thread(process, IDENT, gettid(), name,
					    i / FAKE_VERSIONS % FAKE_FORMS));
		for (size_t changes = 0, at; changes < 4; changes++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			at = random % process->python.used;
			while (!process->python.memory[at])
				at = (at + 1) % process->python.used;
			process->python.memory[at] = random >> 40;
		}
		see(process, IDENT, gettid());
		thread_names__read(process->names, THREAD_NAMES_ALL, 1);
		free_process(process);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_version_is_named),
		cmocka_unit_test(another_threads_name_is_not_taken),
		cmocka_unit_test(an_ended_thread_does_not_get_the_name_of_its_idents_next_owner),
		cmocka_unit_test(an_ending_thread_keeps_its_name),
		cmocka_unit_test(invalid_names_are_not_taken),
		cmocka_unit_test(the_latest_name_counts),
		cmocka_unit_test(names_are_whole_up_to_a_limit),
		cmocka_unit_test(a_thread_is_looked_for_until_it_is_found),
		cmocka_unit_test(a_thread_without_a_name_is_looked_for_a_few_times),
		cmocka_unit_test(many_threads_are_not_read_all_the_time),
		cmocka_unit_test(the_main_interpreters_name_counts),
		cmocka_unit_test(a_sub_interpreters_thread_is_named),
		cmocka_unit_test(a_ring_of_interpreters_ends),
		cmocka_unit_test(corrupt_memory_is_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
