// SPDX-License-Identifier: BSD-2-Clause
/* Which code objects are named, also after they were replaced or their process has ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "code_bench.h"
#include "fake_symbols.h"

/* A copy of the target, for the symbolizer to free. */
static struct target_process *copy_of(const struct target_process *target)
{
	struct target_process *copy = malloc(sizeof(*copy));

	*copy = *target;
	copy->identity.command = strdup("test");
	return copy;
}

/* After an exec, code objects are read again even if they look the same. */
static void code_objects_are_read_again_after_an_exec(void **state)
{
	struct bench *bench = *state;
	uint64_t identity = identity_of(bench, 0, 42);
	struct target_process *before = copy_of(&bench->target);

	before->key.serial = SERIAL + 1;
	symbolizer__add_target(bench->symbolizer, before);
	assert_string_equal(leaf_of(bench, define_in(bench, SERIAL + 1, 0, 0, identity)), "zero");
	rename_code(bench, 0, "after");
	symbolizer__end_target(bench->symbolizer, before);
	identity = identity_of(bench, 0, 42);
	assert_string_equal(leaf_of(bench, define(bench, 0, 0, identity)), "after");
}

/* Stacks under way when their process ended are defined.  After that, nothing is kept of it. */
static void an_ended_process_is_kept_for_a_while(void **state)
{
	struct bench *bench = *state;
	struct target_process *ended = copy_of(&bench->target);
	struct definition definition = { .serial = SERIAL + 1, .tid = 1 };
	struct ledger ledger;
	uint32_t thread, stack;

	ended->key.serial = SERIAL + 1;
	symbolizer__add_target(bench->symbolizer, ended);
	define_in(bench, SERIAL + 1, 0, 0, 0);
	symbolizer__end_target(bench->symbolizer, ended);
	symbolizer__settle(bench->symbolizer);
	assert_true(symbolizer__define(bench->symbolizer, &definition, &thread, &stack));
	symbolizer__settle(bench->symbolizer);
	assert_false(symbolizer__define(bench->symbolizer, &definition, &thread, &stack));
	symbolizer__account(bench->symbolizer, &ledger);
	assert_int_equal(ledger.code_objects, 1);
}

/* A code object that has replaced the sampled one does not give its name. */
static void a_replaced_code_object_is_not_named(void **state)
{
	struct bench *bench = *state;
	struct ledger ledger;

	assert_string_equal(leaf_of(bench, define(bench, 0, 0, identity_of(bench, 0, 42))), "zero");
	assert_string_equal(leaf_of(bench, define(bench, 1, 1, identity_of(bench, 1, 7))),
			    "[code object gone before it was read]");
	assert_false(profile__lacks_names(bench->profile, define(bench, 0, 0, 0)));
	assert_true(profile__lacks_names(bench->profile, define(bench, 0, 1, 0)));
	symbolizer__account(bench->symbolizer, &ledger);
	assert_int_equal(ledger.code_objects, 2);
	assert_int_equal(ledger.unnamed_code_objects, 1);
}

/* BPF sends a copy of code object NUMBER of the process with SERIAL, made while it had
 * FIRST_LINE. */
static void learn(struct bench *bench, uint64_t serial, int number, uint32_t first_line)
{
	const struct fake_code *fake = &bench->codes[number];
	const uint8_t *pieces[CODE_PIECES] = { fake->object, fake->qualname, fake->filename,
					       fake->table };
	static struct code_record record;
	size_t at = 0;

	record = (struct code_record){
		.kind = RECORD_CODE,
		.serial = serial,
		.address = (uintptr_t)fake->object,
		.identity = identity_of(bench, number, first_line),
		.bytes = { FAKE_CODE_BYTES, FAKE_STR_BYTES, FAKE_STR_BYTES, FAKE_TABLE_BYTES },
	};
	for (int i = 0; i < CODE_PIECES; at += record.bytes[i++])
		memcpy((uint8_t *)record.words + at, pieces[i], record.bytes[i]);
	symbolizer__learn(bench->symbolizer, &record, CODE_RECORD_HEADER_BYTES + at);
}

/* The code object is gone when its definition comes. */
static void a_code_object_that_is_gone_is_named_by_its_copy(void **state)
{
	struct bench *bench = *state;
	struct fake_code *fake = &bench->codes[0];
	struct ledger ledger;
	uint64_t identity;

	fake_str(&fake->offsets, fake->filename, FAKE_ASCII, "a.py", 4, 1);
	identity = identity_of(bench, 0, 42);
	learn(bench, SERIAL, 0, 42);
	learn(bench, SERIAL + 1, 1, 42); /* not a target */
	memset(fake->object, 0, FAKE_CODE_BYTES);
	memset(fake->qualname, 0, FAKE_STR_BYTES);
	assert_string_equal(leaf_of(bench, define(bench, 0, 0, identity)), "zero");
	symbolizer__account(bench->symbolizer, &ledger);
	assert_int_equal(ledger.code_objects, 1);
	assert_int_equal(ledger.unnamed_code_objects, 0);
}

static void a_copy_names_a_new_code_object_at_its_address(void **state)
{
	struct bench *bench = *state;
	struct fake_code *fake = &bench->codes[0];
	uint32_t before;

	fake_str(&fake->offsets, fake->filename, FAKE_ASCII, "a.py", 4, 1);
	before = define(bench, 0, 0, identity_of(bench, 0, 42));
	replace_code(bench, 0, 7);
	rename_code(bench, 0, "another");
	learn(bench, SERIAL, 0, 7);
	replace_code(bench, 0, 9);
	assert_string_equal(leaf_of(bench, before), "zero");
	assert_string_equal(leaf_of(bench, define(bench, 0, 0, identity_of(bench, 0, 7))),
			    "another");
	/* The same copy again changes nothing.  Then a code object whose names could not be
	 * read. */
	learn(bench, SERIAL, 0, 7);
	assert_string_equal(leaf_of(bench, define(bench, 1, 1, identity_of(bench, 1, 7))),
			    "[code object gone before it was read]");
	fake = &bench->codes[1];
	fake_str(&fake->offsets, fake->filename, FAKE_ASCII, "a.py", 4, 1);
	replace_code(bench, 1, 7);
	learn(bench, SERIAL, 1, 7);
	assert_string_equal(leaf_of(bench, define(bench, 1, 1, identity_of(bench, 1, 7))), "one");
}

/* Adds a process forked by the target.  symbolizer__end_target frees it. */
static struct target_process *add_forked(struct bench *bench)
{
	struct target_process *forked = calloc(1, sizeof(*forked));

	*forked = bench->target;
	forked->identity.command = NULL;
	forked->key.serial = SERIAL + 1;
	forked->parent = SERIAL;
	symbolizer__add_target(bench->symbolizer, forked);
	return forked;
}

/* Most short-lived processes are not sampled.  They leave nothing behind. */
static void an_unsampled_process_leaves_nothing_behind(void **state)
{
	struct bench *bench = *state;
	size_t processes = bench->profile->process_count;
	struct target_process *brief = add_forked(bench);

	assert_int_equal(bench->profile->process_count, processes);
	symbolizer__end_target(bench->symbolizer, brief);
	symbolizer__settle(bench->symbolizer);
	symbolizer__settle(bench->symbolizer);
	assert_int_equal(bench->profile->process_count, processes);
}

/* A process is named even if its first sample comes after its end. */
static void a_process_first_sampled_after_its_end_is_named(void **state)
{
	struct bench *bench = *state;
	size_t processes = bench->profile->process_count;
	struct target_process *brief = add_forked(bench);

	symbolizer__end_target(bench->symbolizer, brief);
	define_in(bench, SERIAL + 1, 0, 0, 0);
	assert_int_equal(bench->profile->process_count, processes + 1);
}

/* A freed object stays until its memory is reused, but its names may be overwritten before that. */
static void a_freed_code_object_is_not_named(void **state)
{
	struct bench *bench = *state;
	struct fake_code *fake = &bench->codes[0];

	fake_put(fake->object, fake->offsets.object_type - 8, 0x7f1234567890, 8);
	assert_string_equal(leaf_of(bench, define(bench, 0, 0, identity_of(bench, 0, 42))),
			    "[code object gone before it was read]");
}

/* A new definition shows that a known code object was replaced, before any check. */
static void a_definition_shows_that_code_was_replaced(void **state)
{
	struct bench *bench = *state;
	uint32_t old = define(bench, 0, 0, identity_of(bench, 0, 42)), new;

	replace_code(bench, 0, 7);
	rename_code(bench, 0, "other");
	new = define(bench, 0, 0, identity_of(bench, 0, 7));
	assert_string_equal(leaf_of(bench, new), "other");
	assert_true(doubts(bench, old));
	assert_false(doubts(bench, new));
}

/* A code object that is created again and again may exist the next time. */
static void a_code_object_that_exists_again_is_named(void **state)
{
	struct bench *bench = *state;
	uint64_t identity = identity_of(bench, 0, 7);
	struct ledger ledger;

	define(bench, 0, 0, identity);
	replace_code(bench, 0, 7);
	assert_true(check(bench));
	assert_string_equal(leaf_of(bench, define(bench, 0, 0, identity)), "zero");
	symbolizer__account(bench->symbolizer, &ledger);
	assert_int_equal(ledger.code_objects, 1);
	assert_int_equal(ledger.unnamed_code_objects, 0);
}

/* Two code objects alternate at one address.  Each keeps the name that was read first. */
static void alternating_code_objects_keep_their_names(void **state)
{
	struct bench *bench = *state;
	uint64_t zero = identity_of(bench, 0, 42), other;
	struct ledger ledger;

	assert_string_equal(leaf_of(bench, define(bench, 0, 0, zero)), "zero");
	replace_code(bench, 0, 7);
	rename_code(bench, 0, "other");
	other = identity_of(bench, 0, 7);
	for (int turn = 0; turn < 2; turn++) {
		assert_string_equal(leaf_of(bench, define(bench, 0, 0, other)), "other");
		assert_string_equal(leaf_of(bench, define(bench, 0, 0, zero)), "zero");
	}
	symbolizer__account(bench->symbolizer, &ledger);
	assert_int_equal(ledger.code_objects, 2);
}

/* The eval loop's entry frame has None instead of code.  The memory after None changes. */
static void an_entry_frame_is_not_seen_as_replaced(void **state)
{
	struct bench *bench = *state;
	struct fake_code *fake = &bench->codes[0];
	uint8_t type[FAKE_CODE_BYTES] = { 0 };
	static const char name[] = "NoneType";

	fake_put(type, fake->offsets.varobject_size + 8, (uintptr_t)name, 8);
	fake_put(fake->object, fake->offsets.object_type, (uintptr_t)type, 8);
	define(bench, 0, 1, identity_of(bench, 0, 42));
	replace_code(bench, 0, 7);
	assert_false(check(bench));
	define(bench, 0, 1, identity_of(bench, 0, 42));
	assert_false(check(bench));
	assert_int_equal(bench->identify, -1);
}

/* No thread has this TID. */
#define NO_TID (1 << 22)

/* Defines a stack in each of COUNT threads. */
static void define_threads(struct bench *bench, uint32_t count)
{
	struct definition definition = { .serial = SERIAL, .depth = 1 };
	uint32_t stack;

	definition.frames[0] = (struct frame){ .kind = FRAME_PYTHON,
					       .address = (uintptr_t)bench->codes[0].object };
	for (definition.tid = NO_TID + 1; definition.tid <= NO_TID + count; definition.tid++)
		assert_true(
			symbolizer__define(bench->symbolizer, &definition, &bench->thread, &stack));
}

static void counts_further_threads_as_one(void **state)
{
	struct bench *bench = *state;
	const struct profile_thread *last;

	/* The first thread of the process counts, too. */
	define_threads(bench, THREADS_APART - 1);
	assert_int_equal(bench->profile->thread_count, THREADS_APART);
	define_threads(bench, 10 * THREADS_APART);
	assert_int_equal(bench->profile->thread_count, THREADS_APART + 1);
	last = &bench->profile->threads[bench->thread];
	assert_int_equal(last->tid, 0);
	assert_string_equal(bench->profile->strings[last->name], "[other threads]");
	assert_int_equal(last->process, bench->profile->threads[0].process);
	/* A thread that was seen before is still told apart. */
	define_threads(bench, 2);
	assert_int_equal(bench->profile->threads[bench->thread].tid, NO_TID + 2);
}

static void threads_with_a_reused_tid_are_told_apart(void **state)
{
	struct bench *bench = *state;
	struct definition definition = { .serial = SERIAL, .tgid = 1, .tid = NO_TID, .depth = 1 };
	uint32_t threads[3], stack;

	definition.frames[0] = (struct frame){ .kind = FRAME_PYTHON,
					       .address = (uintptr_t)bench->codes[0].object };
	for (int i = 0; i < 3; i++) {
		definition.thread_start = i % 2;
		symbolizer__define(bench->symbolizer, &definition, &threads[i], &stack);
	}
	assert_int_not_equal(threads[0], threads[1]);
	assert_int_equal(threads[0], threads[2]);
	/* Samples that waited have the TID of the first thread, and no start time. */
	definition.tid = definition.tgid = bench->target.process.pid;
	symbolizer__define(bench->symbolizer, &definition, &threads[0], &stack);
	assert_int_equal(threads[0], symbolizer__first_thread(bench->symbolizer, &bench->target));
}

static void tells_all_threads_apart(void **state)
{
	struct bench *bench = *state;
	size_t before = bench->profile->thread_count;

	bench->naming.threads = THREADS_ALL;
	define_threads(bench, 2 * THREADS_APART);
	assert_int_equal(bench->profile->thread_count, before + 2 * THREADS_APART);
}

static void merges_all_threads(void **state)
{
	struct bench *bench = *state;
	size_t before = bench->profile->thread_count;

	bench->naming.threads = THREADS_MERGED;
	define_threads(bench, 10);
	assert_in_range(bench->profile->thread_count, 1, before + 1);
	assert_int_equal(bench->profile->threads[bench->thread].tid, bench->target.process.pid);
	/* Their names are not looked for, either. */
	assert_int_equal(symbolizer__read_names(bench->symbolizer, 0), THREAD_NAMES_NEVER);
}

static void refuses_invalid_frames(void **state)
{
	static const struct frame wrong[] = {
		{ .kind = 0 },
		{ .kind = FRAME_REASON + 1 },
		{ .kind = UINT16_MAX },
		{ .kind = FRAME_REASON, .detail = OUTCOME_COUNT },
		{ .kind = FRAME_KERNEL, .detail = 2 },
	};
	struct bench *bench = *state;
	struct definition definition = { .serial = SERIAL, .tid = 1, .depth = 1 };
	uint32_t thread, stack;

	definition.frames[0] = (struct frame){ .kind = FRAME_REASON, .detail = OUTCOME_NO_PYTHON };
	assert_true(symbolizer__define(bench->symbolizer, &definition, &thread, &stack));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		definition.frames[0] = wrong[i];
		assert_false(symbolizer__define(bench->symbolizer, &definition, &thread, &stack));
	}
}

/* Without symbols, one frame stands for all kernel frames. */
static void kernel_frames_come_first(void **state)
{
	static const char *const names[] = { "vfs_read_[k]", "ksys_read_[k]" };
	struct bench *bench = *state;
	struct definition definition = {
		.serial = SERIAL, .tid = 1, .depth = 1, .kernel_depth = 2
	};
	struct kernel_symbols *symbols = symbols_of("ffffffff81001000 T vfs_read\n"
						    "ffffffff81002000 T ksys_read\n");
	uint32_t thread, stack;

	definition.frames[0] = (struct frame){ .kind = FRAME_REASON, .detail = OUTCOME_NO_PYTHON };
	definition.frames[1] =
		(struct frame){ .kind = FRAME_KERNEL, .address = 0xffffffff81001000 };
	/* A return address just after the end of its function. */
	definition.frames[2] =
		(struct frame){ .kind = FRAME_KERNEL, .address = 0xffffffff81003000, .detail = 1 };
	for (int named = 0; named < 2; named++) {
		const struct profile *profile = bench->profile;
		const struct profile_stack *frames;

		bench->naming.kernel = named ? symbols : NULL;
		assert_true(symbolizer__define(bench->symbolizer, &definition, &thread, &stack));
		frames = &profile->stacks[stack];
		assert_int_equal(frames->depth, named ? 3 : 2);
		for (uint32_t i = 0; i < frames->depth; i++) {
			const struct profile_function *function =
				&profile->functions[profile->locations[frames->locations[i]]
							    .function];
			bool is_last = i == frames->depth - 1;

			assert_int_equal(function->kind, is_last ? FRAME_REASON : FRAME_KERNEL);
			assert_int_equal(function->filename, 0);
			if (!is_last)
				assert_string_equal(profile->strings[function->name],
						    named ? names[i] : "[kernel]");
		}
	}
	bench->naming.kernel = NULL;
	kernel_symbols__free(symbols);
}

/* The profile begins anew, but nothing is read again. */
static void a_new_profile_gets_known_names_without_reading(void **state)
{
	struct bench *bench = *state;
	uint64_t identity = identity_of(bench, 0, 42);
	struct ledger ledger;

	assert_string_equal(leaf_of(bench, define(bench, 0, 2, identity)), "zero");
	profile__free(profile__retire(bench->profile));
	symbolizer__begin_anew(bench->symbolizer);
	rename_code(bench, 0, "other");
	assert_int_equal(define(bench, 0, 2, identity), 0);
	assert_string_equal(leaf_of(bench, 0), "zero");
	assert_int_equal(bench->profile->function_count, 3);
	assert_int_equal(bench->profile->process_count, 1);
	assert_string_equal(bench->profile->strings[bench->profile->processes[0].command], "test");
	symbolizer__account(bench->symbolizer, &ledger);
	assert_int_equal(ledger.code_objects, 3);
}

static uint32_t leaf_function(const struct bench *bench, uint32_t stack)
{
	const struct profile *profile = bench->profile;

	return profile->locations[profile->stacks[stack].locations[0]].function;
}

/* They differ only in their addresses, which a forked process shares with its parent. */
static void tells_generated_functions_apart(void **state)
{
	struct bench *bench = *state;
	struct target_process *forked = copy_of(&bench->target);
	uint32_t functions[2];

	forked->key.serial = SERIAL + 1;
	symbolizer__add_target(bench->symbolizer, forked);
	for (int i = 0; i < 2; i++) {
		struct fake_code *fake = &bench->codes[i];

		rename_code(bench, i, "__init__");
		fake_str(&fake->offsets, fake->filename, FAKE_ASCII, "<string>", 8, 1);
		functions[i] = leaf_function(bench, define(bench, i, i, 0));
		assert_int_equal(leaf_function(bench, define_in(bench, SERIAL + 1, i, i, 0)),
				 functions[i]);
	}
	assert_int_not_equal(functions[0], functions[1]);
	symbolizer__end_target(bench->symbolizer, forked);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_replaced_code_object_is_not_named),
		TEST(a_code_object_that_is_gone_is_named_by_its_copy),
		TEST(a_copy_names_a_new_code_object_at_its_address),
		TEST(a_freed_code_object_is_not_named),
		TEST(a_definition_shows_that_code_was_replaced),
		TEST(a_code_object_that_exists_again_is_named),
		TEST(alternating_code_objects_keep_their_names),
		TEST(an_entry_frame_is_not_seen_as_replaced),
		TEST(an_unsampled_process_leaves_nothing_behind),
		TEST(a_process_first_sampled_after_its_end_is_named),
		TEST(code_objects_are_read_again_after_an_exec),
		TEST(an_ended_process_is_kept_for_a_while),
		TEST(counts_further_threads_as_one),
		TEST(threads_with_a_reused_tid_are_told_apart),
		TEST(tells_all_threads_apart),
		TEST(merges_all_threads),
		TEST(refuses_invalid_frames),
		TEST(kernel_frames_come_first),
		TEST(a_new_profile_gets_known_names_without_reading),
		TEST(tells_generated_functions_apart),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
