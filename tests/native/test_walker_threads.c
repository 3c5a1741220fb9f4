// SPDX-License-Identifier: BSD-2-Clause
/* How the walker finds a thread's state, and what it remembers of threads until that is stale. */
#include "harness.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* Up to 3.11, a new thread's state has its parent's id until it runs, and has no frames. */
static void prefers_states_with_frames(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image);

	harness__python_thread(image, interp, 0, 4);
	image__take(image, harness__python_thread(image, interp, 0, 0), 0);
	harness__python_thread(image, interp, 1, 9);
	image__take(image, harness__python_thread(image, interp, 0, 0), 0);
	harness__assert_whole(kernel__sample(), 4);
}

/* Makes TSTATE's innermost frame the interrupted code. */
static void stand_in(const struct image *image, uint64_t tstate)
{
	bool cframes = image__has_cframes(image);

	kernel.registers.sp = cframes ? image__cframe(image, tstate) : image->next;
	kernel.registers.bx = image__frame(image, tstate);
}

static void finds_threads_of_other_interpreters(void **state)
{
	struct image *image = *state;
	uint64_t older = harness__python_thread(image, image__interp(image), 0, 4), newer;

	image__interp(image);
	image__begin_c_stack(image);
	newer = harness__python_thread(image, image__interp(image), 1, 6);
	stand_in(image, older);
	harness__assert_whole(kernel__sample(), 4);
	harness__enter_thread(1);
	stand_in(image, newer);
	harness__assert_whole(kernel__sample(), 6);
}

static void remembers_threads(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image);

	for (uint32_t i = 0; i < 200; i++)
		harness__python_thread(image, interp, i, 1 + i % 3);
	for (uint32_t i = 0; i < 400; i++) {
		harness__enter_thread(i % 200);
		harness__assert_whole(kernel__sample(), 1 + i % 200 % 3);
		if (i >= 200)
			assert_in_range(kernel.reads, 0, harness__reads_to_frame(image) + 4);
	}
}

static void is_not_fooled_by_reused_tids(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image), old = harness__python_thread(image, interp, 0, 3);

	harness__assert_whole(kernel__sample(), 3);

	/* Another thread with the same tid, but another start time and thread pointer. */
	harness__python_thread(image, interp, 1, 5);
	harness__enter_thread(1);
	kernel.tid = TGID;
	harness__assert_whole(kernel__sample(), 5);

	/* The start time is the same; the thread pointer decides. */
	kernel.thread_pointer = THREAD_POINTER;
	harness__assert_whole(kernel__sample(), 3);

	/* The state now belongs to another thread. */
	image__set(old, image->offsets.tstate_thread_id, harness__thread_pointer(9));
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);

	/* A tid with the same cache entry. */
	harness__enter_thread(THREAD_CACHE_ENTRIES);
	harness__python_thread(image, interp, THREAD_CACHE_ENTRIES, 2);
	harness__assert_whole(kernel__sample(), 2);
}

static void remembers_threads_without_a_state(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image);
	unsigned long first_reads, searches = 0;

	for (uint32_t i = 1; i <= 100; i++)
		harness__python_thread(image, interp, i, 1);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	first_reads = kernel.reads;
	for (int i = 0; i < 100; i++) {
		harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
		searches += kernel.reads >= first_reads;
	}
	assert_in_range(searches, 1, 10);
}

static void sees_a_new_state_at_once(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image), tstate;

	harness__python_thread(image, interp, 1, 1);
	for (uint32_t i = 0; i < 5; i++) {
		harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
		harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
		tstate = harness__python_thread(image, interp, 0, 2 + i);
		harness__assert_whole(kernel__sample(), 2 + i);

		/* PyGILState_Release removes the state again. */
		image__set(interp, image->offsets.interp_tstate_head,
			   image__get(tstate, image->offsets.tstate_next));
		image__unwind(image, tstate);
	}
}

/* A remembered absence must not hide states elsewhere, or states that begin to run. */
static void a_remembered_absence_hides_no_states(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image), tstate;

	/* A state without frames begins to run. */
	tstate = harness__python_thread(image, interp, 0, 0);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	image__call(image, tstate, CODE(0), 0);
	harness__assert_whole(kernel__sample(), 1);

	/* A thread with the same cache entry and start time. */
	harness__python_thread(image, interp, 1 + THREAD_CACHE_ENTRIES, 3);
	harness__enter_thread(1);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	harness__enter_thread(1 + THREAD_CACHE_ENTRIES);
	kernel.start_time = 1000001;
	harness__assert_whole(kernel__sample(), 3);

	/* A new state of an older interpreter. */
	harness__python_thread(image, image__interp(image), 9, 1);
	harness__enter_thread(2);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	image__begin_c_stack(image);
	tstate = harness__python_thread(image, interp, 2, 4);
	stand_in(image, tstate);
	harness__assert_whole(kernel__sample(), 4);
}

/* A remembered absence must not hide the state of a later thread with the same tid, even if the
 * state is older than the newest. */
static void a_remembered_absence_ends_with_its_thread(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image);

	harness__python_thread(image, interp, 1, 3);
	harness__python_thread(image, interp, 9, 1);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	kernel.thread_pointer = harness__thread_pointer(1);
	kernel.start_time++;
	harness__assert_whole(kernel__sample(), 3);
}

/* A thread runs on for a while after it has freed its state. */
static void forgets_a_state_that_was_freed(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image);
	uint64_t tstate = harness__python_thread(image, interp, 0, 3);

	harness__assert_whole(kernel__sample(), 3);
	image__set(interp, image->offsets.interp_tstate_head, 0);
	image__set(tstate, image->offsets.tstate_interp, tstate);
	image__set_frame(image, tstate, tstate);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
}

/* A new state may reuse the memory of an old one. */
static void sees_a_state_in_reused_memory(void **state)
{
	struct image *image = *state;
	uint64_t tstate = harness__python_thread(image, image__interp(image), 1, 3);

	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	image__set(tstate, image->offsets.tstate_thread_id, THREAD_POINTER);
	harness__assert_whole(kernel__sample(), 3);
}

/* Kernels from 5.11 on give BPF the task itself, older ones its address. */
static void takes_the_task_or_its_address(void **state)
{
	struct image *image = *state;

	harness__python_thread(image, image__interp(image), 0, 2);
	kernel.old = true;
	harness__assert_whole(kernel__sample(), 2);
	harness__enter_thread(1);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
}

static void finds_no_python_in_a_thread_that_ends(void **state)
{
	struct image *image = *state;

	harness__python_thread(image, image__interp(image), 0, 2);
	for (int old = 0; old < 2; old++) {
		kernel.old = old;
		kernel.ends = true;
		harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
		assert_int_equal(kernel.reads, 0);
		assert_int_equal(kernel.definitions[0]->thread_id, 0);
		kernel.ends = false;
		harness__assert_whole(kernel__sample(), 2);
	}
}

/* Some C libraries keep a thread's data below the thread pointer. */
static void finds_thread_data_below_the_thread_pointer(void **state)
{
	struct image *image = *state;

	harness__python_thread(image, image__interp(image), 0, 2);
	kernel.thread_pointer += 0x740;
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	kernel__set_thread_area(TGID, 0x740);
	kernel.tid++;
	harness__assert_whole(kernel__sample(), 2);
	assert_int_equal(kernel.definitions[1]->thread_id, THREAD_POINTER);
}

static void reports_greenlets_that_are_starting(void **state)
{
	struct image *image = *state;
	uint64_t tstate = harness__python_thread(image, image__interp(image), 0, 3);

	harness__assert_whole(kernel__sample(), 3);
	image__begin_greenlet(image, tstate, 3);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_GREENLET_STARTING);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_GREENLET_STARTING);
	if (image__has_cframes(image))
		image__enter(image, tstate);
	image__call(image, tstate, CODE(0), 0);
	harness__assert_whole(kernel__sample(), 1);
}

/* A new thread has no data stack either, and at first no C frame of its own. */
static void takes_no_thread_for_a_greenlet(void **state)
{
	struct image *image = *state;
	uint64_t tstate = harness__python_thread(image, image__interp(image), 0, 0);

	image__begin_greenlet(image, tstate, 0);
	image__unwind(image, tstate);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	if (!image__has_cframes(image))
		return;
	image__set(tstate, image->layout.tstate_cframe, 0);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
}

int main(void)
{
	const struct check checks[] = {
		CHECK(prefers_states_with_frames),
		CHECK(finds_threads_of_other_interpreters),
		CHECK(remembers_threads),
		CHECK(is_not_fooled_by_reused_tids),
		CHECK(remembers_threads_without_a_state),
		CHECK(sees_a_new_state_at_once),
		CHECK(a_remembered_absence_hides_no_states),
		CHECK(a_remembered_absence_ends_with_its_thread),
		CHECK_IN(0, 0x030b0000, forgets_a_state_that_was_freed),
		CHECK(sees_a_state_in_reused_memory),
		CHECK(takes_the_task_or_its_address),
		CHECK(finds_thread_data_below_the_thread_pointer),
		CHECK(finds_no_python_in_a_thread_that_ends),
		CHECK_SINCE(JOINED_SINCE, reports_greenlets_that_are_starting),
		CHECK(takes_no_thread_for_a_greenlet),
	};

	return harness__run(checks, ARRAY_SIZE(checks));
}
