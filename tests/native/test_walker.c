// SPDX-License-Identifier: BSD-2-Clause
/* The walker on the memory of a consistent process: the right stack, with few reads. */
#include <string.h>

#include "harness.h"

#define COPIES_SINCE   0x030e0000
#define OWN_CODE_SINCE 0x030d0000

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static bool has_blocks(const struct image *image)
{
	return image->offsets.version >= NEW_VERSION_HEX;
}

static void finds_the_stack(void **state)
{
	struct image *image = *state;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);

	image__call(image, tstate, CODE(7), 70);
	image__call(image, tstate, CODE(5), 0);
	image__call(image, tstate, CODE(6), -1);
	for (int i = 0; i < 2; i++) {
		struct last_sample sample = kernel__sample();

		assert_int_equal(sample.outcome, OUTCOME_PYTHON);
		assert_int_equal(sample.depth, 3);
		harness__assert_frame(sample, 0, CODE(6), -1);
		harness__assert_frame(sample, 1, CODE(5), 0);
		harness__assert_frame(sample, 2, CODE(7), 70);
		assert_int_equal(kernel.failed_reads, 0);
	}
	assert_int_equal(kernel__counters(0)->outcomes[OUTCOME_PYTHON], 2);
}

static void sends_a_definition_of_the_stack(void **state)
{
	struct image *image = *state;
	const struct definition *sent;
	struct last_sample sample;

	harness__python_thread(image, image__interp(image), 0, 5);
	sample = kernel__sample();
	assert_int_equal(kernel.definition_count, 1);
	sent = kernel.definitions[0];
	assert_int_equal(sent->tgid, TGID);
	assert_int_equal(sent->tid, kernel.tid);
	assert_int_equal(sent->thread_id, THREAD_POINTER);
	assert_int_equal(sent->cpu, 0);
	assert_int_equal(sent->base.count, 0);
	assert_int_equal(sent->outcome, OUTCOME_PYTHON);
	assert_int_equal(sent->depth, 5);
	assert_string_equal(sent->thread_name, "test");
	assert_memory_equal(sent->frames, sample.frames, 5 * sizeof(struct frame));
	assert_int_equal(kernel__slot(0, sent->slot)->hash, sent->hash);
	assert_int_equal(kernel__slot(0, sent->slot)->amount.count, 1);
}

/* In free-threaded builds, each frame records which copy of the instructions it runs. */
static void records_which_copy_of_the_code_runs(void **state)
{
	static const struct {
		uint32_t index;
		uint16_t recorded;
	} cases[] = { { 0, 0 },
		      { 1, 1 },
		      { 0xfffe, 0xfffe },
		      { 0xffff, TLBC_INDEX_MAX },
		      { 0x10001, TLBC_INDEX_MAX },
		      { UINT32_MAX, TLBC_INDEX_MAX } };
	struct image *image = *state;
	bool has_copies = image->layout.frame_tlbc_index != OFFSET_ABSENT;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	struct last_sample sample;

	assert_int_equal(has_copies,
			 image->offsets.free_threaded && image->offsets.version >= COPIES_SINCE);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t frame = image__call(image, tstate, CODE(i), i);

		if (has_copies)
			memcpy((void *)(frame + image->layout.frame_tlbc_index), &cases[i].index,
			       sizeof(cases[i].index));
	}
	sample = kernel__sample();
	assert_int_equal(sample.depth, ARRAY_SIZE(cases));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(sample.frames[ARRAY_SIZE(cases) - 1 - i].detail,
				 has_copies ? cases[i].recorded : 0);
}

/* While the JIT's code runs, the innermost frame's position is stale; its callers' positions are
 * valid. */
static void reports_a_position_that_the_jit_hides(void **state)
{
	struct image *image = *state;
	bool has_executors = image__has_executors(image);
	uint64_t tstate = harness__python_thread(image, image__interp(image), 0, 3);
	struct last_sample sample;

	assert_int_equal(has_executors, image->offsets.version >= COPIES_SINCE);
	harness__assert_whole(kernel__sample(), 3);
	image__set_executor(image, tstate, CODE(9));
	sample = kernel__sample();
	assert_int_equal(sample.outcome, has_executors ? OUTCOME_LINE_UNKNOWN : OUTCOME_PYTHON);
	assert_int_equal(sample.depth, 3);
	harness__assert_frame(sample, 0, CODE(2), has_executors ? POSITION_UNKNOWN : 2);
	harness__assert_frame(sample, 1, CODE(1), 1);
	harness__assert_frame(sample, 2, CODE(0), 0);
	image__set_executor(image, tstate, 0);
	harness__assert_whole(kernel__sample(), 3);
	/* A 3.13 with the JIT does not say whether JIT code runs. */
	image->layout.jit_untold = 1;
	kernel__set_layout(0, &image->layout);
	sample = kernel__sample();
	assert_int_equal(sample.outcome, OUTCOME_LINE_UNKNOWN);
	harness__assert_frame(sample, 0, CODE(2), POSITION_UNKNOWN);
	harness__assert_frame(sample, 1, CODE(1), 1);
}

static void cuts_off_the_root_of_a_deep_stack(void **state)
{
	struct image *image = *state;
	uint32_t deepest = STACK_FRAMES_MAX - 1;
	uint64_t tstate = harness__python_thread(image, image__interp(image), 0, deepest);
	struct last_sample sample;

	harness__assert_whole(kernel__sample(), deepest);
	image__call(image, tstate, CODE(deepest), deepest);
	sample = kernel__sample();
	harness__assert_ends(sample, deepest, OUTCOME_TRUNCATED);
	harness__assert_frame(sample, 0, CODE(deepest), deepest);
	harness__assert_frame(sample, deepest - 1, CODE(1), 1);
}

static bool looks_at_root(const struct image *image)
{
	return image->layout.code_flags != OFFSET_ABSENT;
}

static void walks_with_few_reads(void **state)
{
	struct image *image = *state;

	harness__python_thread(image, image__interp(image), 0, 49);
	harness__assert_whole(kernel__sample(), 49);
	harness__assert_whole(kernel__sample(), 49);
	if (has_blocks(image))
		assert_in_range(kernel.reads, 1, harness__reads_to_frame(image) + 5);
	else
		assert_int_equal(kernel.reads,
				 harness__reads_to_frame(image) + 49 + looks_at_root(image));
}

/* In 3.9, throw() makes a generator a root.  The code's flags tell. */
static void reports_a_generator_without_a_caller(void **state)
{
	struct image *image = *state;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	uint64_t generator = image__island(image, 128);

	image__set(generator, image->layout.code_flags, 0x20);
	image__call(image, tstate, generator, 0);
	image__call(image, tstate, CODE(1), 1);
	harness__assert_ends(kernel__sample(), 2, OUTCOME_FRAME_UNLINKED);
}

/* No read may reach into a page only because it reads a block. */
static void reads_only_pages_that_contain_frames(void **state)
{
	struct image *image = *state;
	size_t bytes = image->layout.frame_bytes;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	uint64_t caller = image__enter(image, tstate);

	for (uint32_t gap = 0; gap <= 4096; gap += 8) {
		uint64_t island = image__island(image, 8192);
		uint64_t root = island + gap, leaf = island + 8192 - bytes;

		image__write_frame(image, root, caller, CODE(0), 0, 0);
		image__mark_entry(image, root);
		image__write_frame(image, leaf, root, CODE(1), 1, 0);
		image__set_frame(image, tstate, leaf);
		harness__assert_whole(kernel__sample(), 2);
	}
}

/* Within the newest chunk of the data stack, blocks span pages. */
static void reads_a_chunk_in_few_blocks(void **state)
{
	struct image *image = *state;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	uint64_t chunk = image__island(image, 3 * 4096), caller = image__enter(image, tstate);
	uint64_t frame = chunk;
	uint32_t depth = 3 * 4096 / IMAGE_FRAME_BYTES;

	for (uint32_t i = 0; i < depth; i++, frame += IMAGE_FRAME_BYTES) {
		image__write_frame(image, frame, caller, CODE(i), i, 0);
		caller = frame;
	}
	image__mark_entry(image, chunk);
	image__set_frame(image, tstate, caller);
	image__set(tstate, image->layout.tstate_datastack_chunk, chunk);
	harness__assert_whole(kernel__sample(), depth);
	kernel__sample();
	assert_in_range(kernel.reads, 1, 10);
	/* The chunk's address may be wrong: that costs one more read. */
	image__set(tstate, image->layout.tstate_datastack_chunk, chunk - 8);
	harness__assert_stack(kernel__sample(), depth);
	assert_int_equal(kernel.failed_reads, 1);
}

/* A data stack continues in another chunk, and generators' frames are in their objects. */
static void follows_frames_outside_a_block(void **state)
{
	struct image *image = *state;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	uint64_t caller = image__enter(image, tstate), frame;

	for (uint32_t i = 0; i < 40; i++) {
		frame = i % 5 ? image__allocate(image, IMAGE_FRAME_BYTES)
			      : image__island(image, IMAGE_FRAME_BYTES);
		image__write_frame(image, frame, caller, CODE(i), i, i % 3);
		if (!i)
			image__mark_entry(image, frame);
		caller = frame;
	}
	image__set_frame(image, tstate, frame);
	harness__assert_whole(kernel__sample(), 40);
}

/* A callee's frame may be below its caller's, so the caller's is behind the block. */
static void follows_a_caller_above_its_callee(void **state)
{
	struct image *image = *state;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	uint64_t frames = image__allocate(image, 20 * IMAGE_FRAME_BYTES);
	uint64_t caller = image__enter(image, tstate);

	for (uint32_t i = 0; i < 20; i++) {
		uint64_t frame = frames + (19 - i) * IMAGE_FRAME_BYTES;

		image__write_frame(image, frame, caller, CODE(i), i, 0);
		if (!i)
			image__mark_entry(image, frame);
		caller = frame;
	}
	image__set_frame(image, tstate, caller);
	harness__assert_whole(kernel__sample(), 20);
}

static void skips_frames_of_the_interpreter(void **state)
{
	struct image *image = *state;
	uint64_t tstate, frame, caller;

	tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	for (uint32_t i = 0; i < 100; i++) {
		caller = image__frame(image, tstate);
		frame = image__enter(image, tstate);
		/* Bytes beside the owner must not be taken for it. */
		memset((void *)(frame + (image->layout.frame_owner & ~7u)), i, 8);
		image__write_frame(image, frame, caller, 0xdead, 0, 3 + i % 2);
		caller = frame;
		frame = image__call(image, tstate, CODE(i), i);
		memset((void *)(frame + (image->layout.frame_owner & ~7u)), i, 8);
		image__write_frame(image, frame, caller, CODE(i), i, i % 3);
	}
	harness__assert_whole(kernel__sample(), 100);
}

/* Only the frame's code tells: it is below PyCode_Type and must not be traced.  Code there that
 * may be traced is a function's. */
static void skips_code_of_the_interpreter(void **state)
{
	struct image *image = *state;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	uint64_t own = image__island(image, 4096), other = own + 1024, type = own + 4000;
	uint32_t calls = STACK_FRAMES_MAX - 2;
	struct last_sample sample;

	kernel__add_target(TGID, image->interpreters, 0, type);
	image__set(own, image->layout.object_size, 4);
	image__set(own, image->offsets.code_firsttraceable, 4);
	image__set(other, image->layout.object_size, 5);
	image__set(other, image->offsets.code_firsttraceable, 4);
	image__call(image, tstate, other, 7);
	for (uint32_t i = 0; i < calls; i++) {
		image__call(image, tstate, own, 0);
		image__call(image, tstate, CODE(i), i);
	}
	sample = kernel__sample();
	assert_int_equal(sample.outcome, OUTCOME_PYTHON);
	assert_int_equal(sample.depth, calls + 1);
	harness__assert_frame(sample, 0, CODE(calls - 1), calls - 1);
	harness__assert_frame(sample, calls - 1, CODE(0), 0);
	harness__assert_frame(sample, calls, other, 7);
	/* Too far below PyCode_Type, as in another file. */
	kernel__add_target(TGID, image->interpreters, 0, own + (4 << 20));
	sample = kernel__sample();
	assert_int_equal(sample.outcome, OUTCOME_TRUNCATED);
	harness__assert_frame(sample, 1, own, 0);
}

/* From 3.15 on, each thread has such a frame at its root. */
static void frames_of_the_interpreter_alone_are_no_python(void **state)
{
	struct image *image = *state;

	image__enter(image, image__thread(image, image__interp(image), THREAD_POINTER));
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
}

static void strips_tags_of_code_addresses(void **state)
{
	struct image *image = *state;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	uint64_t frame = image__call(image, tstate, CODE(0), 0);
	uint64_t tag = image->offsets.version >= 0x030e0000 ? 1 : 0;

	image__set(frame, image->offsets.frame_code, CODE(0) | tag);
	harness__assert_whole(kernel__sample(), 1);
}

static void reports_a_thread_without_python(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image);

	harness__python_thread(image, interp, 1, 3);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	harness__python_thread(image, interp, 0, 0);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	assert_int_equal(kernel__counters(0)->outcomes[OUTCOME_NO_PYTHON], 2);
	assert_int_equal(kernel.failed_reads, 0);
}

static void ignores_other_processes(void **state)
{
	struct image *image = *state;

	harness__python_thread(image, image__interp(image), 0, 3);
	kernel.tgid = TGID + 1;
	kernel__sample();
	assert_int_equal(kernel.reads, 0);
	assert_int_equal(kernel__counters(0)->events, 0);
	kernel.tgid = TGID;
	harness__assert_whole(kernel__sample(), 3);
	assert_int_equal(kernel__counters(0)->events, 1);
}

/* A reduced rate skips samples at random.  Skipped samples are no events, but the others stand
 * for them. */
static void takes_samples_at_a_reduced_rate(void **state)
{
	const struct event_counters *counters = kernel__counters(0);
	struct image *image = *state;
	struct amount sum = { 0 };

	kernel__set_sample_value(10);
	harness__python_thread(image, image__interp(image), 0, 3);
	kernel__shift_rate(TGID, 3);
	for (int i = 0; i < 8000; i++)
		kernel__sample();
	assert_in_range(counters->events, 1000 - 150, 1000 + 150);
	assert_int_equal(counters->events + counters->passed, 8000);
	sum.value = 8 * 10 * counters->events;
	kernel__shift_rate(TGID, 0);
	for (int i = 0; i < 100; i++)
		harness__assert_whole(kernel__sample(), 3);
	assert_int_equal(counters->events + counters->passed, 8100);
	sum.value += 10 * 100;
	for (uint32_t i = 0; i < STACK_SLOTS; i++) {
		sum.count += kernel__slot(0, i)->amount.count;
		sum.value -= kernel__slot(0, i)->amount.value;
	}
	assert_int_equal(sum.count, counters->events);
	assert_int_equal(sum.value, 0);
}

/* The same stack in samples of two events: each event has its own counters, slot and value. */
static void counts_events_apart(void **state)
{
	const struct cpu_counters *counters = kernel__cpu_counters(0);
	struct image *image = *state;
	uint64_t values[2] = { 0 };

	harness__python_thread(image, image__interp(image), 0, 3);
	kernel__set_sample_value(10);
	harness__assert_whole(kernel__sample(), 3);
	kernel.second_event = true;
	harness__assert_whole(kernel__sample(), 3);
	harness__assert_whole(kernel__sample(), 3);
	kernel.second_event = false;
	assert_int_equal(counters->of[0].events, 1);
	assert_int_equal(counters->of[1].events, 2);
	assert_int_equal(counters->of[1].outcomes[OUTCOME_PYTHON], 2);
	for (uint32_t i = 0; i < STACK_SLOTS; i++) {
		const struct slot *slot = kernel__slot(0, i);

		values[SLOT_EVENT(slot->hash) & 1] += slot->amount.value;
	}
	assert_int_equal(values[0], 10);
	assert_int_equal(values[1], 2 * 20);
	assert_int_equal(kernel.definition_count, 2);
	assert_int_equal(kernel.definitions[0]->hash ^ kernel.definitions[1]->hash,
			 1ULL << SLOT_EVENT_SHIFT);
}

int main(void)
{
	const struct check checks[] = {
		CHECK(finds_the_stack),
		CHECK(sends_a_definition_of_the_stack),
		CHECK(records_which_copy_of_the_code_runs),
		CHECK(reports_a_position_that_the_jit_hides),
		CHECK(cuts_off_the_root_of_a_deep_stack),
		CHECK(walks_with_few_reads),
		CHECK_IN(0x03090000, 0x030affff, reports_a_generator_without_a_caller),
		CHECK(reads_only_pages_that_contain_frames),
		CHECK_SINCE(NEW_VERSION_HEX, reads_a_chunk_in_few_blocks),
		CHECK(follows_frames_outside_a_block),
		CHECK(follows_a_caller_above_its_callee),
		CHECK_SINCE(OWNERS_SINCE, skips_frames_of_the_interpreter),
		CHECK_SINCE(OWN_CODE_SINCE, skips_code_of_the_interpreter),
		CHECK_SINCE(OWNERS_SINCE, frames_of_the_interpreter_alone_are_no_python),
		CHECK(strips_tags_of_code_addresses),
		CHECK(reports_a_thread_without_python),
		CHECK(ignores_other_processes),
		CHECK(takes_samples_at_a_reduced_rate),
		CHECK(counts_events_apart),
	};

	return harness__run(checks, ARRAY_SIZE(checks));
}
