// SPDX-License-Identifier: BSD-2-Clause
/* 2.7: thread states of threads that the process has not, left over from before a fork. */
#include "harness.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define VERSION_2_7	  0x02070000

static void prefers_its_own_to_one_left_over(void **state)
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

/* A thread that was seen before it took its state. */
static void believes_in_nothing_left_over(void **state)
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

/* A thread that was seen before it had one, and got what was another's. */
static void sees_its_own_in_used_memory(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image), newest;

	harness__python_thread(image, interp, 0, 5);
	newest = harness__python_thread(image, interp, 1, 3);
	kernel__sample();
	image__set(newest, image->offsets.tstate_thread_id, THREAD_POINTER);
	harness__assert_whole(kernel__sample(), 3);
}

/* A thread that made a sub-interpreter, and works in the first one. */
static void finds_frames_behind_a_state_without(void **state)
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
		CHECK_IN(VERSION_2_7, VERSION_2_7, prefers_its_own_to_one_left_over),
		CHECK_IN(VERSION_2_7, VERSION_2_7, believes_in_nothing_left_over),
		CHECK_IN(VERSION_2_7, VERSION_2_7, sees_its_own_in_used_memory),
		CHECK_IN(VERSION_2_7, VERSION_2_7, finds_frames_behind_a_state_without),
	};

	return harness__run(checks, ARRAY_SIZE(checks));
}
