// SPDX-License-Identifier: BSD-2-Clause
/* 2.7: stale thread states from before a fork, of threads that the process does not have. */
#include "harness.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define VERSION_2_7	  0x02070000

static void prefers_its_own_state_to_a_stale_one(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image), own;

	harness__python_thread(image, interp, 0, 5);
	own = harness__python_thread(image, interp, 0, 2);
	harness__python_thread(image, interp, 1, 9);
	for (int i = 0; i < 2; i++)
		harness__assert_whole(kernel__sample(), 2);
	image__unwind(image, own);
	for (int i = 0; i < 2; i++)
		harness__assert_ends(kernel__sample(), 0, OUTCOME_THREAD_UNCLEAR);
	image__call(image, own, CODE(0), 0);
	harness__assert_whole(kernel__sample(), 1);
}

/* The thread was sampled before it took its state. */
static void does_not_remember_a_stale_state(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image), own;

	harness__python_thread(image, interp, 0, 5);
	harness__python_thread(image, interp, 1, 9);
	own = harness__python_thread(image, interp, 1, 0);
	image__take(image, own, 0);
	harness__python_thread(image, interp, 2, 1);
	kernel__sample();
	image__take(image, own, 1);
	image__set(own, image->offsets.tstate_thread_id, THREAD_POINTER);
	image__call(image, own, CODE(0), 0);
	harness__assert_whole(kernel__sample(), 1);
}

/* The thread was sampled before it had a state, and gets another thread's memory for it. */
static void sees_its_own_state_in_reused_memory(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image), newest;

	harness__python_thread(image, interp, 0, 5);
	newest = harness__python_thread(image, interp, 1, 3);
	kernel__sample();
	image__set(newest, image->offsets.tstate_thread_id, THREAD_POINTER);
	harness__assert_whole(kernel__sample(), 3);
}

/* The thread made a sub-interpreter, and works in the first one. */
static void finds_frames_in_an_older_state(void **state)
{
	struct image *image = *state;

	harness__python_thread(image, image__interp(image), 0, 5);
	harness__python_thread(image, image__interp(image), 0, 0);
	for (int i = 0; i < 2; i++)
		harness__assert_whole(kernel__sample(), 5);
}

int main(void)
{
	const struct check checks[] = {
		CHECK_IN(VERSION_2_7, VERSION_2_7, prefers_its_own_state_to_a_stale_one),
		CHECK_IN(VERSION_2_7, VERSION_2_7, does_not_remember_a_stale_state),
		CHECK_IN(VERSION_2_7, VERSION_2_7, sees_its_own_state_in_reused_memory),
		CHECK_IN(VERSION_2_7, VERSION_2_7, finds_frames_in_an_older_state),
	};

	return harness__run(checks, ARRAY_SIZE(checks));
}
