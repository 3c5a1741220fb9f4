// SPDX-License-Identifier: BSD-2-Clause
/* Processes with too many threads to search: states that user space announces, correct or not. */
#include "harness.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define THREADS 2000

/* Reads of the interpreter's own, the thread's state, a C frame and its caller, then two frames. */
#define READS_FEW 12

/* Makes THREADS threads; returns the state of the first one. */
static uint64_t make_threads(struct image *image)
{
	uint64_t interp = image__interp(image), tstate;

	tstate = harness__python_thread(image, interp, 0, 2);
	for (uint32_t i = 1; i < THREADS; i++)
		harness__python_thread(image, interp, i, 0);
	return tstate;
}

static void tell(uint64_t address)
{
	kernel__tell_state(TGID, harness__thread_pointer(0), address);
	kernel.start_time++; /* another thread: nothing is remembered of it */
}

static void finds_an_announced_state(void **state)
{
	struct image *image = *state;
	uint64_t tstate = make_threads(image);

	harness__assert_ends(kernel__sample(), 0, OUTCOME_TOO_MANY_THREADS);
	tell(tstate);
	harness__assert_whole(kernel__sample(), 2);
	assert_in_range(kernel.reads, 1, READS_FEW);
	harness__assert_whole(kernel__sample(), 2);
}

/* User space's layout of a process that was not forked: no state is stale. */
static void finds_an_announced_state_in_2_7_without_a_fork(void **state)
{
	struct image *image = *state;

	image->layout.tstate_gilstate_counter = OFFSET_ABSENT;
	kernel__set_layout(0, &image->layout);
	finds_an_announced_state(state);
}

/* In a forked process of 2.7, a newer state may be the thread's, so the announced one is not
 * used. */
static void uses_no_announced_state_in_a_forked_2_7(void **state)
{
	struct image *image = *state;

	tell(make_threads(image));
	harness__assert_ends(kernel__sample(), 0, OUTCOME_TOO_MANY_THREADS);
}

static void takes_no_other_threads_state(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image), other;

	other = harness__python_thread(image, interp, 1, 5);
	harness__python_thread(image, interp, 0, 2);
	tell(other);
	harness__assert_whole(kernel__sample(), 2);
}

static void takes_no_state_without_frames(void **state)
{
	struct image *image = *state;

	tell(harness__python_thread(image, image__interp(image), 0, 0));
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
}

static void survives_any_announced_address(void **state)
{
	struct image *image = *state;
	const uint64_t addresses[] = { 0, 1, image__nowhere(image), image->interpreters, ~0UL };

	harness__python_thread(image, image__interp(image), 0, 2);
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		tell(addresses[i]);
		harness__assert_stack(kernel__sample(), 2);
	}
}

int main(void)
{
	const struct check checks[] = {
		CHECK_SINCE(0x03000000, finds_an_announced_state),
		CHECK_IN(0, 0x02ffffff, finds_an_announced_state_in_2_7_without_a_fork),
		CHECK_IN(0, 0x02ffffff, uses_no_announced_state_in_a_forked_2_7),
		CHECK(takes_no_other_threads_state),
		CHECK(takes_no_state_without_frames),
		CHECK(survives_any_announced_address),
	};

	return harness__run(checks, ARRAY_SIZE(checks));
}
