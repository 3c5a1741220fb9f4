// SPDX-License-Identifier: BSD-2-Clause
/* Code objects that are replaced by others at their addresses: named right, or not at all. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "code_identity.h"
#include "fake_objects.h"
#include "symbolizer.h"

#define MINOR		      13
#define MINOR_WITHOUT_VERSION 11
#define SERIAL		      7
#define QUIET_CHECKS	      50
#define FIRST_CHECKS	      5

/* With stacks of one frame: code objects without a version are told apart wholly, by their words,
 * not at all. */
#define WHOLLY_HZ 10000
#define WORDS_HZ  50000
#define QUICK_HZ  200000

/* Of an identity: what makes it another one's. */
#define OTHER_WORDS   (1ULL << 40)
#define OTHER_OBJECTS 2

struct bench {
	struct fake_code codes[3];
	struct target_process target, other;
	uint32_t thread; /* of the last definition */
	struct profile *profile;
	struct symbolizer *symbolizer;
	int identify; /* enum identification that the kernel was told last, -1: none */
};

static void note(void *context, const struct target_process *target, enum identification identify)
{
	struct bench *bench = context;

	assert_ptr_equal(target, &bench->target);
	bench->identify = identify;
}

/* As if each had been sampled since. */
static bool check(struct bench *bench)
{
	uint32_t stack = symbolizer__reason(bench->symbolizer, OUTCOME_NO_PYTHON);

	for (size_t i = 0; i < bench->profile->thread_count; i++)
		symbolizer__see(bench->symbolizer, i, stack, 1);
	bench->identify = -1;
	return symbolizer__check(bench->symbolizer, note, bench);
}

/* Adds the target, whose code objects have been told apart for as long as any new one's are. */
static void add_trusted(struct bench *bench)
{
	symbolizer__add_target(bench->symbolizer, &bench->target);
	symbolizer__first_thread(bench->symbolizer, &bench->target);
	for (int i = 1; i < FIRST_CHECKS; i++)
		assert_false(check(bench));
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_NOT);
}

static void rename_code(struct bench *bench, int number, const char *name)
{
	struct fake_code *fake = &bench->codes[number];

	fake_str(&fake->offsets, fake->qualname, FAKE_ASCII, name, strlen(name), 1);
}

/* Another code object at the same address. */
static void replace_code(struct bench *bench, int number, uint32_t first_line)
{
	struct fake_code *fake = &bench->codes[number];

	fake_put(fake->object, fake->offsets.code_firstlineno, first_line, 4);
}

static uint64_t identity_of(const struct bench *bench, int number, uint32_t first_line)
{
	const struct fake_code *fake = &bench->codes[number];

	return code_identity((uintptr_t)fake->name, (uintptr_t)fake->filename,
			     (uintptr_t)fake->table, first_line, FAKE_CODE_VERSION);
}

/* Of what is there, as the kernel finds it. */
static uint64_t current_identity(const struct bench *bench, int number)
{
	return code_identity__read(&bench->target, (uintptr_t)bench->codes[number].object);
}

static int set_up_minor(void **state, unsigned int minor)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	for (int i = 0; i < 3; i++) {
		fake_code(&bench->codes[i], minor);
		rename_code(bench, i, i == 0 ? "zero" : i == 1 ? "one" : "two");
	}
	bench->target.process.pid = getpid();
	bench->target.key.serial = SERIAL;
	bench->target.identity.command = (char *)"test";
	bench->target.runtime.offsets = fake_offsets(minor);
	assert_int_equal(
		offsets__layout(&bench->target.runtime.offsets, &bench->target.runtime.layout), 0);
	bench->target.runtime.code_type = FAKE_CODE_TYPE;
	bench->profile = profile__new();
	bench->profile->rate_hz = QUICK_HZ;
	bench->symbolizer = symbolizer__new(bench->profile, LINES_NONE);
	add_trusted(bench);
	*state = bench;
	return 0;
}

static int set_up(void **state)
{
	return set_up_minor(state, MINOR);
}

static int set_up_without_version(void **state)
{
	return set_up_minor(state, MINOR_WITHOUT_VERSION);
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	symbolizer__free(bench->symbolizer);
	profile__free(bench->profile);
	free(bench);
	return 0;
}

/* The stack of the code objects at DEPTH addresses, leaf first, with IDENTITY in the leaf, in the
 * process with that SERIAL. */
static uint32_t define_at(struct bench *bench, uint64_t serial, const uint64_t *addresses,
			  int depth, uint64_t identity)
{
	struct definition *definition = calloc(1, sizeof(*definition));
	uint32_t stack;

	definition->serial = serial;
	definition->tgid = definition->tid = getpid();
	for (int i = 0; i < depth; i++)
		definition->frames[definition->depth++] = (struct frame){
			.kind = FRAME_PYTHON,
			.address = addresses[i],
			.identity = i ? 0 : identity,
		};
	assert_true(symbolizer__define(bench->symbolizer, definition, &bench->thread, &stack));
	free(definition);
	return stack;
}

/* The same of code objects FIRST to LAST, the former the leaf. */
static uint32_t define_in(struct bench *bench, uint64_t serial, int first, int last,
			  uint64_t identity)
{
	uint64_t addresses[3];

	for (int i = first; i <= last; i++)
		addresses[i - first] = (uintptr_t)bench->codes[i].object;
	return define_at(bench, serial, addresses, last - first + 1, identity);
}

static uint32_t define(struct bench *bench, int first, int last, uint64_t identity)
{
	return define_in(bench, SERIAL, first, last, identity);
}

static bool doubts(const struct bench *bench, uint32_t stack)
{
	return symbolizer__doubts(bench->symbolizer, bench->thread, stack);
}

static const char *leaf_of(const struct bench *bench, uint32_t stack)
{
	const struct profile *profile = bench->profile;
	uint32_t location = profile->stacks[stack].locations[0];

	return profile->strings[profile->functions[profile->locations[location].function].name];
}

static void doubts_what_was_replaced(void **state)
{
	struct bench *bench = *state;
	uint32_t all = define(bench, 0, 2, 0), two = define(bench, 2, 2, 0);

	assert_false(check(bench));
	assert_false(doubts(bench, all));
	replace_code(bench, 1, 7);
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_WHOLLY);
	assert_true(doubts(bench, all));
	assert_false(doubts(bench, two));
	symbolizer__settle(bench->symbolizer);
	assert_false(doubts(bench, all));
}

/* It was replaced after it was looked at, before the kernel was told: its samples have waited. */
static void doubts_what_came_during_a_check(void **state)
{
	struct bench *bench = *state;
	uint32_t zero = define(bench, 0, 0, 0), one = define(bench, 1, 1, 0);

	assert_false(check(bench));
	replace_code(bench, 0, 7);
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_WHOLLY);
	assert_true(doubts(bench, zero));
	assert_false(doubts(bench, one));
	symbolizer__settle(bench->symbolizer);
	replace_code(bench, 1, 7);
	check(bench);
	assert_true(doubts(bench, one));
	symbolizer__settle(bench->symbolizer);
	/* By now all of them are told apart. */
	replace_code(bench, 1, 8);
	check(bench);
	assert_false(doubts(bench, one));
}

/* What came to its address may have gone with it. */
static void doubts_what_is_unmapped(void **state)
{
	struct bench *bench = *state;
	uint32_t one = define(bench, 1, 1, 0), zero;
	char *page = mmap(NULL, FAKE_CODE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(page, bench->codes[0].object, FAKE_CODE_BYTES);
	zero = define_at(bench, SERIAL, &(uint64_t){ (uintptr_t)page }, 1, 0);
	assert_string_equal(leaf_of(bench, zero), "zero");
	assert_false(check(bench));
	munmap(page, FAKE_CODE_BYTES);
	check(bench);
	assert_true(doubts(bench, zero));
	assert_false(doubts(bench, one));
}

/* A process with the same functions, in which nothing is replaced. */
static void does_not_doubt_another_process(void **state)
{
	struct bench *bench = *state;
	pid_t pid = fork();
	uint32_t stack;

	if (!pid) {
		pause();
		_exit(0);
	}
	bench->other = bench->target;
	bench->other.process.pid = pid;
	bench->other.key.serial = SERIAL + 1;
	symbolizer__add_target(bench->symbolizer, &bench->other);
	stack = define(bench, 0, 0, 0);
	assert_int_equal(define_in(bench, SERIAL + 1, 0, 0, 0), stack);
	replace_code(bench, 0, 7);
	check(bench);
	assert_false(doubts(bench, stack));
	define(bench, 0, 0, 0);
	assert_true(doubts(bench, stack));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

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

/* As long as each sample is told apart by what was there, nothing is in doubt. */
static void does_not_doubt_what_is_told_apart(void **state)
{
	struct bench *bench = *state;
	uint32_t stack = define(bench, 0, 0, identity_of(bench, 0, 42));

	replace_code(bench, 0, 7);
	assert_true(check(bench));
	symbolizer__settle(bench->symbolizer);
	stack = define(bench, 0, 0, identity_of(bench, 0, 7));
	assert_false(check(bench));
	replace_code(bench, 0, 8);
	check(bench);
	assert_int_equal(bench->identify, -1);
	assert_false(doubts(bench, stack));
}

/* What a start makes, runs and throws away. */
static void does_not_doubt_a_new_process(void **state)
{
	struct bench *bench = *state;
	uint32_t stack;

	symbolizer__free(bench->symbolizer);
	bench->symbolizer = symbolizer__new(bench->profile, LINES_NONE);
	symbolizer__add_target(bench->symbolizer, &bench->target);
	stack = define(bench, 0, 0, identity_of(bench, 0, 42));
	replace_code(bench, 0, 7);
	assert_false(check(bench));
	assert_false(doubts(bench, stack));
	assert_int_equal(bench->identify, -1);
	for (int i = 1; i < QUIET_CHECKS; i++)
		assert_false(check(bench));
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_NOT);
}

static void tells_apart_until_it_is_quiet(void **state)
{
	struct bench *bench = *state;

	define(bench, 0, 0, 0);
	replace_code(bench, 0, 7);
	assert_true(check(bench));
	define(bench, 0, 0, identity_of(bench, 0, 7));
	for (int i = 1; i < QUIET_CHECKS; i++)
		assert_false(check(bench));
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_NOT);
}

/* What comes and goes between two checks, with all addresses of what was there before. */
static void tells_apart_wholly_at_low_rates(void **state)
{
	struct bench *bench = *state;
	uint32_t stack = define(bench, 0, 0, 0);

	bench->profile->rate_hz = WHOLLY_HZ;
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_WHOLLY);
	assert_false(check(bench));
	define(bench, 0, 0, current_identity(bench, 0) ^ OTHER_OBJECTS);
	assert_false(doubts(bench, stack));
	for (int i = 0; i < 2 * QUIET_CHECKS; i++) {
		check(bench);
		assert_int_equal(bench->identify, -1);
	}
}

/* There may have been one in between that had the same words. */
static void doubts_what_is_told_by_words(void **state)
{
	struct bench *bench = *state;
	uint32_t stack = define(bench, 0, 0, 0);

	bench->profile->rate_hz = WORDS_HZ;
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_BY_WORDS);
	assert_false(check(bench));
	assert_int_equal(bench->identify, -1);
	/* From a definition. */
	define(bench, 0, 0, current_identity(bench, 0) ^ OTHER_WORDS);
	assert_true(doubts(bench, stack));
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_WHOLLY);
	for (int i = 1; i < QUIET_CHECKS; i++)
		assert_false(check(bench));
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_BY_WORDS);
	bench->profile->rate_hz = QUICK_HZ;
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_NOT);
}

/* One in four interruptions is a sample of this process. */
static void goes_by_the_lowered_rate(void **state)
{
	struct bench *bench = *state;

	define(bench, 0, 0, 0);
	bench->target.halvings = 2;
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_BY_WORDS);
}

/* What its names and lines are could not be read when it was sampled. */
static void tells_by_words_what_has_no_more(void **state)
{
	struct bench *bench = *state;
	uint32_t stack = define(bench, 0, 0, 0);
	uint64_t words = (uint64_t)code_identity_words(current_identity(bench, 0)) << 32;

	assert_int_equal(define(bench, 0, 0, words), stack);
	assert_int_not_equal(define(bench, 0, 0, words ^ OTHER_WORDS), stack);
}

static void a_version_says_all_in_one_read(void **state)
{
	struct bench *bench = *state;

	define(bench, 0, 0, 0);
	bench->profile->rate_hz = WORDS_HZ;
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_WHOLLY);
	define(bench, 0, 0, identity_of(bench, 0, 7));
	for (int i = 0; i < 2 * QUIET_CHECKS; i++) {
		check(bench);
		assert_int_equal(bench->identify, -1);
	}
}

/* From 3.14 on: what was freed may have taken turns with what is there again. */
static void tells_apart_once_code_was_freed(void **state)
{
	struct bench *bench = *state;
	struct offsets *offsets = &bench->target.runtime.offsets;
	struct {
		uint64_t next, generation;
	} interpreter = { 0, 5 };
	uint64_t head = (uintptr_t)&interpreter;

	symbolizer__free(bench->symbolizer);
	offsets->interp_next = 0;
	offsets->interp_code_generation = 8;
	bench->target.runtime.interpreters = (uintptr_t)&head;
	bench->symbolizer = symbolizer__new(bench->profile, LINES_NONE);
	add_trusted(bench);
	define(bench, 0, 0, 0);
	assert_false(check(bench));
	interpreter.generation++;
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_WHOLLY);
	for (int i = 1; i < QUIET_CHECKS; i++)
		assert_false(check(bench));
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_NOT);
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

	fake_str(&fake->offsets, fake->filename, FAKE_ASCII, "a.py", 4, 1);
	learn(bench, SERIAL, 0, 42);
	learn(bench, SERIAL + 1, 1, 42); /* of no target */
	memset(fake->object, 0, FAKE_CODE_BYTES);
	memset(fake->qualname, 0, FAKE_STR_BYTES);
	assert_string_equal(leaf_of(bench, define(bench, 0, 0, identity_of(bench, 0, 42))), "zero");
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
	struct ledger ledger;

	assert_string_equal(leaf_of(bench, define(bench, 0, 0, identity_of(bench, 0, 42))), "zero");
	replace_code(bench, 0, 7);
	rename_code(bench, 0, "other");
	for (int turn = 0; turn < 2; turn++) {
		assert_string_equal(leaf_of(bench, define(bench, 0, 0, identity_of(bench, 0, 7))),
				    "other");
		assert_string_equal(leaf_of(bench, define(bench, 0, 0, identity_of(bench, 0, 42))),
				    "zero");
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
	assert_string_equal(bench->profile->strings[last->name], "[further threads]");
	assert_int_equal(last->process, bench->profile->threads[0].process);
	/* One that was seen before stays what it is. */
	define_threads(bench, 2);
	assert_int_equal(bench->profile->threads[bench->thread].tid, NO_TID + 2);
}

static void tells_all_threads_apart(void **state)
{
	struct bench *bench = *state;
	size_t before = bench->profile->thread_count;

	symbolizer__tell_threads_apart(bench->symbolizer, THREADS_ALL);
	define_threads(bench, 2 * THREADS_APART);
	assert_int_equal(bench->profile->thread_count, before + 2 * THREADS_APART);
}

static void tells_no_threads_apart(void **state)
{
	struct bench *bench = *state;
	size_t before = bench->profile->thread_count;

	symbolizer__tell_threads_apart(bench->symbolizer, THREADS_MERGED);
	define_threads(bench, 10);
	assert_in_range(bench->profile->thread_count, 1, before + 1);
	assert_int_equal(bench->profile->threads[bench->thread].tid, bench->target.process.pid);
	/* Nor does it look for their names. */
	assert_int_equal(symbolizer__read_names(bench->symbolizer, 0), THREAD_NAMES_NEVER);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_WITHOUT_VERSION(name) \
	cmocka_unit_test_setup_teardown(name, set_up_without_version, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(doubts_what_was_replaced),
		TEST(does_not_doubt_what_is_told_apart),
		TEST(does_not_doubt_a_new_process),
		TEST(tells_apart_until_it_is_quiet),
		TEST(names_only_what_was_sampled),
		TEST(names_what_is_gone_by_its_copy),
		TEST(takes_a_copy_for_what_has_come_to_its_address),
		TEST(names_nothing_freed),
		TEST(notices_in_a_definition),
		TEST(names_what_comes_back),
		TEST(names_what_takes_turns),
		TEST(replaces_nothing_hidden),
		TEST(doubts_what_came_during_a_check),
		TEST(doubts_what_is_unmapped),
		TEST(does_not_doubt_another_process),
		TEST(what_is_not_sampled_costs_nothing),
		TEST(what_ended_is_named_all_the_same),
		TEST(forgets_what_ran_before_an_exec),
		TEST(keeps_what_has_ended_for_a_while),
		TEST(a_version_says_all_in_one_read),
		TEST_WITHOUT_VERSION(tells_apart_wholly_at_low_rates),
		TEST_WITHOUT_VERSION(doubts_what_is_told_by_words),
		TEST_WITHOUT_VERSION(goes_by_the_lowered_rate),
		TEST_WITHOUT_VERSION(tells_by_words_what_has_no_more),
		TEST(tells_apart_once_code_was_freed),
		TEST(counts_further_threads_as_one),
		TEST(tells_all_threads_apart),
		TEST(tells_no_threads_apart),
	};
#undef TEST
#undef TEST_WITHOUT_VERSION

	return cmocka_run_group_tests(tests, NULL, NULL);
}
