// SPDX-License-Identifier: BSD-2-Clause
/* The walker on memory that is random or changes while it is read.  Each sample has a limit of
 * reads, writes nothing out of bounds (the sanitizers watch), and is counted exactly once. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define WALKS	   2000 /* on each version */
#define DEEP_WALKS 50000
#define POOL_WORDS (1 << 16)

static struct image *process;
static uint64_t pool[POOL_WORDS];
static uint64_t random_state;
static int walks = WALKS;

static uint64_t random_word(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static uint32_t random_number(uint32_t below)
{
	return (random_word() >> 32) % below;
}

/* Values that the walker could mistake for something, more often than by chance. */
static uint64_t random_value(void)
{
	switch (random_number(8)) {
	case 0:
		return random_number(8) ? random_word() : 0;
	case 1:
	case 2:
		return harness__thread_pointer(random_number(4));
	case 3:
		return random_word() >> 17;
	default:
		return process->memory + 8 * random_number(POOL_WORDS);
	}
}

static bool read_noise(void *destination, __u32 size, __u64 address)
{
	assert_in_range(size, 1, BLOCK_BYTES);
	assert_true(address > 0 && address >> 47 == 0);
	if (random_number(200) == 0)
		return false;
	memcpy(destination, (uint8_t *)pool + random_number(sizeof(pool) - BLOCK_BYTES), size);
	return true;
}

/* The consistent memory, with a random word now and then. */
static bool read_torn(void *destination, __u32 size, __u64 address)
{
	uint64_t offset = address - process->memory, word;

	if (offset >= process->next - process->memory ||
	    size > process->next - process->memory - offset)
		return false;
	memcpy(destination, (void *)address, size);
	if (size >= sizeof(word) && random_number(40) == 0) {
		word = random_value();
		memcpy((uint8_t *)destination + random_number(size - sizeof(word) + 1), &word,
		       sizeof(word));
	}
	return true;
}

static void walk(void)
{
	__u64 *registers = (__u64 *)&kernel.registers;
	struct last_sample sample;

	for (size_t i = 0; i < sizeof(kernel.registers) / sizeof(*registers); i++)
		registers[i] = random_value();
	harness__enter_thread(random_number(5));
	kernel.start_time += random_number(2);
	kernel.ring_full = random_number(10) == 0;
	sample = kernel__sample();
	assert_in_range(sample.outcome, 0, OUTCOME_COUNT - 1);
	assert_in_range(sample.depth, 1, STACK_FRAMES_MAX);
	assert_in_range(kernel.reads, 1, READS_MAX);
	for (size_t i = 0; i < kernel.definition_count; i++)
		assert_in_range(kernel.definitions[i]->depth, 1, STACK_FRAMES_MAX);
	kernel__drain();
}

static void begin(struct image *image)
{
	process = image;
	random_state = image->offsets.version;
	for (uint32_t i = 0; i < POOL_WORDS; i++)
		pool[i] = random_value();
}

static void survives_noise(void **state)
{
	begin(*state);
	kernel.read = read_noise;
	for (int i = 0; i < walks; i++)
		walk();
	assert_int_equal(kernel__counters(0)->events, walks);
}

/* A thread state in INTERP for thread NUMBER, with many frames. */
static void add_deep_thread(uint64_t interp, uint32_t number, uint32_t frames)
{
	uint64_t tstate = harness__python_thread(process, interp, number, 1);

	for (uint32_t frame = 0; frame < frames; frame++) {
		if (frame % 7 == 0)
			image__enter(process, tstate);
		image__call(process, tstate, CODE(frame), frame);
	}
	/* Registers may lead to this frame. */
	pool[number] = image__frame(process, tstate);
}

static void survives_torn_reads(void **state)
{
	uint64_t interp;

	begin(*state);
	interp = image__interp(process);
	for (uint32_t i = 0; i < 20; i++)
		add_deep_thread(interp, 19 - i, i * i);
	kernel.read = read_torn;
	for (int i = 0; i < walks / 2; i++)
		walk();
	for (uint32_t i = 0; i < 4; i++)
		add_deep_thread(image__interp(process), i, i * i);
	for (int i = 0; i < walks / 2; i++)
		walk();
	assert_int_equal(kernel__counters(0)->events, walks);
	assert_in_range(kernel__counters(0)->outcomes[OUTCOME_PYTHON], 1, walks);
	assert_in_range(kernel__counters(0)->outcomes[OUTCOME_FRAME_FAULT], 1, walks);
	assert_in_range(kernel__counters(0)->outcomes[OUTCOME_FRAME_ADDRESS], 1, walks);
	assert_in_range(kernel__counters(0)->outcomes[OUTCOME_THREAD_FAULT], 1, walks);
}

int main(void)
{
	const struct check checks[] = {
		CHECK(survives_noise),
		CHECK(survives_torn_reads),
	};

	/* `make prove PARTS=fuzz` sets it. */
	if (getenv("PYBPFPROF_DEEP"))
		walks = DEEP_WALKS;
	return harness__run(checks, sizeof(checks) / sizeof(checks[0]));
}
