// SPDX-License-Identifier: BSD-2-Clause
/* What is named, after what it was has been replaced or has ended, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "code_bench.h"
#include "fake_symbols.h"

/* A copy of the target, as the symbolizer is to free it. */
static struct target_process *copy_of(const struct target_process *target)
{
	struct target_process *copy = malloc(sizeof(*copy));

	*copy = *target;
	copy->identity.command = strdup("test");
	return copy;
}

/* What it runs after an exec is read anew, were it as like as can be. */
static void forgets_what_ran_before_an_exec(void **state)
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

/* What was on its way when its process ended is defined; then nothing is kept of it. */
static void keeps_what_has_ended_for_a_while(void **state)
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

/* What is there by now is not what was sampled. */
static void names_only_what_was_sampled(void **state)
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

/* What the kernel sends of code object NUMBER of the process with that SERIAL while it has
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

/* By the time at which the definition comes. */
static void names_what_is_gone_by_its_copy(void **state)
{
	struct bench *bench = *state;
	struct fake_code *fake = &bench->codes[0];
	struct ledger ledger;
	uint64_t identity;

	fake_str(&fake->offsets, fake->filename, FAKE_ASCII, "a.py", 4, 1);
	identity = identity_of(bench, 0, 42);
	learn(bench, SERIAL, 0, 42);
	learn(bench, SERIAL + 1, 1, 42); /* of no target */
	memset(fake->object, 0, FAKE_CODE_BYTES);
	memset(fake->qualname, 0, FAKE_STR_BYTES);
	assert_string_equal(leaf_of(bench, define(bench, 0, 0, identity)), "zero");
	symbolizer__account(bench->symbolizer, &ledger);
	assert_int_equal(ledger.code_objects, 1);
	assert_int_equal(ledger.unnamed_code_objects, 0);
}

static void takes_a_copy_for_what_has_come_to_its_address(void **state)
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
	/* Once more, which changes nothing; and one whose names could not be read. */
	learn(bench, SERIAL, 0, 7);
	assert_string_equal(leaf_of(bench, define(bench, 1, 1, identity_of(bench, 1, 7))),
			    "[code object gone before it was read]");
	fake = &bench->codes[1];
	fake_str(&fake->offsets, fake->filename, FAKE_ASCII, "a.py", 4, 1);
	replace_code(bench, 1, 7);
	learn(bench, SERIAL, 1, 7);
	assert_string_equal(leaf_of(bench, define(bench, 1, 1, identity_of(bench, 1, 7))), "one");
}

/* A process that the target has forked; for symbolizer__end_target to free. */
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

/* Most processes that live shortly are not sampled: they leave nothing behind. */
static void what_is_not_sampled_costs_nothing(void **state)
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

/* One that was, after its end. */
static void what_ended_is_named_all_the_same(void **state)
{
	struct bench *bench = *state;
	size_t processes = bench->profile->process_count;
	struct target_process *brief = add_forked(bench);

	symbolizer__end_target(bench->symbolizer, brief);
	define_in(bench, SERIAL + 1, 0, 0, 0);
	assert_int_equal(bench->profile->process_count, processes + 1);
}

/* What was freed is there until its memory is used again, but its names may be others' by now. */
static void names_nothing_freed(void **state)
{
	struct bench *bench = *state;
	struct fake_code *fake = &bench->codes[0];

	fake_put(fake->object, fake->offsets.object_type - 8, 0x7f1234567890, 8);
	assert_string_equal(leaf_of(bench, define(bench, 0, 0, identity_of(bench, 0, 42))),
			    "[code object gone before it was read]");
}

/* One that was known is another one in a new definition, before any check. */
static void notices_in_a_definition(void **state)
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

/* Made again and again alike, it may be there the next time. */
static void names_what_comes_back(void **state)
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

/* It was read once; when it comes again, the other one may be back before that is noticed. */
static void names_what_takes_turns(void **state)
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

/* None stands where the eval loop's entry frame has its code; what lies behind it changes. */
static void replaces_nothing_hidden(void **state)
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

/* No process has such a number. */
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

	/* With the process's first one. */
	define_threads(bench, THREADS_APART - 1);
	assert_int_equal(bench->profile->thread_count, THREADS_APART);
	define_threads(bench, 10 * THREADS_APART);
	assert_int_equal(bench->profile->thread_count, THREADS_APART + 1);
	last = &bench->profile->threads[bench->thread];
	assert_int_equal(last->tid, 0);
	assert_string_equal(bench->profile->strings[last->name], "[other threads]");
	assert_int_equal(last->process, bench->profile->threads[0].process);
	/* One that was seen before stays what it is. */
	define_threads(bench, 2);
	assert_int_equal(bench->profile->threads[bench->thread].tid, NO_TID + 2);
}

static void tells_threads_apart_whose_number_comes_again(void **state)
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
	/* What waited has the process's first one, and no start. */
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

static void tells_no_threads_apart(void **state)
{
	struct bench *bench = *state;
	size_t before = bench->profile->thread_count;

	bench->naming.threads = THREADS_MERGED;
	define_threads(bench, 10);
	assert_in_range(bench->profile->thread_count, 1, before + 1);
	assert_int_equal(bench->profile->threads[bench->thread].tid, bench->target.process.pid);
	/* Nor does it look for their names. */
	assert_int_equal(symbolizer__read_names(bench->symbolizer, 0), THREAD_NAMES_NEVER);
}

static void refuses_what_is_no_frame(void **state)
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

/* Where they have no names, one stands for all. */
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
	/* Behind a call that ends the function. */
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

/* In a profile that begins anew; nothing is read again. */
static void names_anew_what_is_known(void **state)
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

/* Alike but for their addresses, which a forked process shares with its parent. */
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
		TEST(names_only_what_was_sampled),
		TEST(names_what_is_gone_by_its_copy),
		TEST(takes_a_copy_for_what_has_come_to_its_address),
		TEST(names_nothing_freed),
		TEST(notices_in_a_definition),
		TEST(names_what_comes_back),
		TEST(names_what_takes_turns),
		TEST(replaces_nothing_hidden),
		TEST(what_is_not_sampled_costs_nothing),
		TEST(what_ended_is_named_all_the_same),
		TEST(forgets_what_ran_before_an_exec),
		TEST(keeps_what_has_ended_for_a_while),
		TEST(counts_further_threads_as_one),
		TEST(tells_threads_apart_whose_number_comes_again),
		TEST(tells_all_threads_apart),
		TEST(tells_no_threads_apart),
		TEST(refuses_what_is_no_frame),
		TEST(kernel_frames_come_first),
		TEST(names_anew_what_is_known),
		TEST(tells_generated_functions_apart),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
