// SPDX-License-Identifier: BSD-2-Clause
/* What one process may put into a profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "naming/known_process.h"

/* So many bytes of stacks, and what one takes beside its frames. */
#define STACK_BYTES_MAX	  (256 * 1024 * 1024)
#define STACK_EXTRA_BYTES 256
#define LEAF		  7
#define STACKS_MAX	  (STACK_BYTES_MAX / (STACK_EXTRA_BYTES + sizeof(uint32_t) * STACK_FRAMES_MAX) + 1)

/* A stack of LEAF and as many others as can be, unlike that of another NUMBER. */
static uint32_t add_stack(struct known_process *process, uint32_t number)
{
	uint32_t locations[STACK_FRAMES_MAX] = { LEAF, number };

	return known_process__stack(process, locations, STACK_FRAMES_MAX);
}

static void cuts_the_callers_of_too_many_stacks(void **state)
{
	struct naming_context shared = { .profile = profile__new() };
	struct profile *profile = shared.profile;
	struct target_process target = { .key.serial = 1 };
	struct known_process *process = known_process__new(&shared, &target);
	struct known_process *other = known_process__new(&shared, &target);
	const struct profile_stack *cut;
	const struct profile_function *root;

	(void)state;
	for (uint32_t i = 0; i <= LEAF; i++)
		profile__location(
			profile,
			profile__function(profile,
					  &(struct profile_function){ .kind = FRAME_PYTHON }),
			i);
	for (uint32_t i = 0; i < STACKS_MAX; i++)
		assert_int_equal(add_stack(process, i), i);
	cut = &profile->stacks[add_stack(process, STACKS_MAX)];
	assert_int_equal(cut->depth, 2);
	assert_int_equal(cut->locations[0], LEAF);
	root = &profile->functions[profile->locations[cut->locations[1]].function];
	assert_string_equal(profile->strings[root->name],
			    "[callers, of a process with too many stacks]");
	assert_true(profile__lacks_names(profile, STACKS_MAX));
	assert_int_equal(add_stack(process, STACKS_MAX + 1), STACKS_MAX);
	/* What is there takes no more room. */
	assert_int_equal(add_stack(process, 3), 3);
	assert_int_equal(profile->stacks[add_stack(other, STACKS_MAX)].depth, STACK_FRAMES_MAX);
	known_process__free(process);
	known_process__free(other);
	profile__free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_the_callers_of_too_many_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
