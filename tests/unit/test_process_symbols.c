// SPDX-License-Identifier: BSD-2-Clause
/* How many stacks one process, and all together, may put into a profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "naming/process_symbols.h"

/* The bytes that a process's stacks may take, and those that one takes. */
#define STACK_BYTES_MAX (256 * 1024 * 1024)
#define STACK_BYTES	(256 + sizeof(uint32_t) * STACK_FRAMES_MAX)
#define LEAF		7
#define STACKS_MAX	(STACK_BYTES_MAX / STACK_BYTES + 1)

/* Adds a stack of the greatest depth, with LEAF.  Each NUMBER makes another stack. */
static uint32_t add_stack(struct process_symbols *process, uint32_t number)
{
	uint32_t locations[STACK_FRAMES_MAX] = { LEAF, number };

	return process_symbols__stack(process, locations, STACK_FRAMES_MAX);
}

static void add_locations(struct profile *profile)
{
	for (uint32_t i = 0; i <= LEAF; i++)
		profile__line(profile,
			      profile__function(profile,
						&(struct profile_function){ .kind = FRAME_PYTHON }),
			      i);
}

/* Whether the stack NUMBER has only its leaf and the root WHY. */
static bool is_cut(const struct profile *profile, uint32_t number, const char *why)
{
	const struct profile_stack *cut = &profile->stacks[number];
	uint32_t root = profile->locations[cut->locations[cut->depth - 1]].function;

	return cut->depth == 2 && cut->locations[0] == LEAF &&
	       strcmp(profile->strings[profile->functions[root].name], why) == 0;
}

static void cuts_the_callers_of_too_many_stacks(void **state)
{
	struct naming_context shared = { .profile = profile__new() };
	struct profile *profile = shared.profile;
	struct target_process target = { .key.serial = 1 };
	struct process_symbols *process = process_symbols__new(&shared, &target);
	struct process_symbols *other = process_symbols__new(&shared, &target);

	(void)state;
	add_locations(profile);
	for (uint32_t i = 0; i < STACKS_MAX; i++)
		assert_int_equal(add_stack(process, i), i);
	assert_true(is_cut(profile, add_stack(process, STACKS_MAX),
			   "[callers dropped: process has too many stacks]"));
	assert_true(profile__lacks_names(profile, STACKS_MAX));
	assert_int_equal(add_stack(process, STACKS_MAX + 1), STACKS_MAX);
	/* A stack that was added before takes no more room. */
	assert_int_equal(add_stack(process, 3), 3);
	assert_int_equal(profile->stacks[add_stack(other, STACKS_MAX)].depth, STACK_FRAMES_MAX);
	process_symbols__free(process);
	process_symbols__free(other);
	profile__free(profile);
}

/* Each process has few stacks, like the children of a program that keeps forking. */
static void cuts_the_callers_of_too_many_processes(void **state)
{
	const uint64_t stacks = 1000, all_max = 4LL * STACK_BYTES_MAX;
	struct naming_context shared = { .profile = profile__new() };
	struct profile *profile = shared.profile;
	struct target_process target = { .key.serial = 1 };
	struct process_symbols *process;

	(void)state;
	add_locations(profile);
	/* The stacks of earlier processes. */
	shared.stack_bytes = all_max - stacks * STACK_BYTES;
	for (uint32_t i = 0; i < stacks; i++) {
		process = process_symbols__new(&shared, &target);
		assert_int_equal(add_stack(process, i), i);
		assert_int_equal(profile->stacks[i].depth, STACK_FRAMES_MAX);
		process_symbols__free(process);
	}
	process = process_symbols__new(&shared, &target);
	assert_true(is_cut(profile, add_stack(process, stacks),
			   "[callers dropped: too many stacks in total]"));
	assert_int_equal(add_stack(process, 3), 3);
	process_symbols__free(process);
	profile__free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_the_callers_of_too_many_stacks),
		cmocka_unit_test(cuts_the_callers_of_too_many_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
