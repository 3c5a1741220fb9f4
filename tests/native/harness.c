// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "harness.h"

#define CHECKS_MAX 32
#define NAME_MAX   96
#define CODES	   (2 * STACK_FRAMES_MAX)

static const struct interpreter {
	uint32_t version;
	enum build build;
} interpreters[] = {
	{ 0x02071200, BUILD_WITH_GIL }, { 0x02071200, BUILD_TRACING },
	{ 0x03060f00, BUILD_WITH_GIL }, { 0x03071000, BUILD_WITH_GIL },
	{ 0x03071000, BUILD_TRACING },	{ 0x03081200, BUILD_WITH_GIL },
	{ 0x03091200, BUILD_WITH_GIL }, { 0x030a0d00, BUILD_WITH_GIL },
	{ 0x030b0700, BUILD_WITH_GIL }, { 0x030c0100, BUILD_WITH_GIL },
	{ 0x030d0000, BUILD_WITH_GIL }, { 0x030d0000, BUILD_FREE_THREADED },
	{ 0x030e0000, BUILD_WITH_GIL }, { 0x030e0000, BUILD_FREE_THREADED },
	{ 0x030f0000, BUILD_WITH_GIL }, { 0x030f0000, BUILD_FREE_THREADED },
};

#define INTERPRETER_COUNT (sizeof(interpreters) / sizeof(interpreters[0]))

/* The code that the interrupted thread runs, of no interest. */
static const uint8_t machine_code[4096];

/* The open image, if its memory is read without a system call. */
static const struct image *own;

static bool read_own(void *destination, __u32 size, __u64 address)
{
	if (address < own->memory || address + size > own->end)
		return false;
	memcpy(destination, (void *)address, size);
	return true;
}

void harness__open(struct image *image, uint32_t version, enum build build, __u32 cpus)
{
	image__open(image, version, build);
	kernel__load(cpus);
	kernel__set_layout(0, &image->layout);
	kernel__add_target(TGID, image->interpreters, 0, IMAGE_CODE_TYPE);
	kernel.tgid = TGID;
	harness__enter_thread(0);
}

int harness__close(struct image *image)
{
	int error = !kernel__sums_hold();

	kernel__unload();
	image__close(image);
	return error;
}

uint64_t harness__open_own(struct image *image, uint32_t version, __u32 cpus)
{
	harness__open(image, version, BUILD_WITH_GIL, cpus);
	own = image;
	kernel.read = read_own;
	return image__frame(image, harness__python_thread(image, image__interp(image), 0, 1));
}

struct amount harness__counted(__u32 cpus)
{
	struct amount sum = { 0 };

	for (__u32 cpu = 0; cpu < cpus; cpu++) {
		for (__u32 i = 0; i < STACK_SLOTS; i++) {
			sum.count += kernel__slot(cpu, i)->amount.count;
			sum.value += kernel__slot(cpu, i)->amount.value;
		}
	}
	return sum;
}

static int set_up(void **state)
{
	const struct interpreter *interpreter = *state;
	static struct image image;

	harness__open(&image, interpreter->version, interpreter->build, 1);
	kernel.registers.ip = (uint64_t)machine_code;
	*state = &image;
	return 0;
}

static int tear_down(void **state)
{
	return harness__close(*state);
}

/* Maps the code objects at the addresses that all tests use. */
static void map_codes(void)
{
	uint64_t page = CODE(0) & ~4095UL;
	void *memory = mmap((void *)page, CODE(CODES) - page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (memory != (void *)page) {
		perror("no code objects");
		abort();
	}
	for (uint32_t i = 0; i < CODES; i++)
		image__set(CODE(i), 8, IMAGE_CODE_TYPE);
}

static const char *const letters[] = {
	[BUILD_WITH_GIL] = "", [BUILD_FREE_THREADED] = "t", [BUILD_TRACING] = "d"
};

int harness__run(const struct check *checks, size_t count)
{
	static struct CMUnitTest tests[CHECKS_MAX * INTERPRETER_COUNT];
	static char names[CHECKS_MAX * INTERPRETER_COUNT][NAME_MAX];

	size_t used = 0;

	assert_in_range(count, 1, CHECKS_MAX);
	map_codes();
	for (size_t i = 0; i < count * INTERPRETER_COUNT; i++) {
		const struct check *check = &checks[i / INTERPRETER_COUNT];
		const struct interpreter *interpreter = &interpreters[i % INTERPRETER_COUNT];

		if (interpreter->version < check->since ||
		    interpreter->version >> 16 > check->last >> 16)
			continue;
		snprintf(names[used], NAME_MAX, "%s on %u.%u%s", check->name,
			 interpreter->version >> 24, interpreter->version >> 16 & 0xff,
			 letters[interpreter->build]);
		tests[used] = (struct CMUnitTest){
			.name = names[used],
			.test_func = check->run,
			.setup_func = set_up,
			.teardown_func = tear_down,
			.initial_state = (void *)interpreter,
		};
		used++;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

uint64_t harness__thread_pointer(uint32_t number)
{
	return THREAD_POINTER + 0x1000 * (uint64_t)number;
}

void harness__enter_thread(uint32_t number)
{
	kernel.tid = TGID + number;
	kernel.thread_pointer = harness__thread_pointer(number);
	kernel.start_time = 1000000 + number;
}

uint64_t harness__python_thread(struct image *image, uint64_t interp, uint32_t number,
				uint32_t depth)
{
	uint64_t tstate = image__thread(image, interp, harness__thread_pointer(number));

	for (uint32_t i = 0; i < depth; i++)
		image__call(image, tstate, CODE(i), i);
	return tstate;
}

unsigned long harness__reads_to_frame(const struct image *image)
{
	unsigned long newest_interpreter = image->offsets.version < STATUS_SINCE;
	bool has_leftovers = image->layout.tstate_gilstate_counter != OFFSET_ABSENT;

	return newest_interpreter + has_leftovers + (image__frames_in_cframes(image) ? 3 : 1);
}

void harness__assert_frame(struct last_sample sample, uint32_t i, uint64_t code, int32_t position)
{
	assert_true(i < sample.depth);
	assert_int_equal(sample.frames[i].kind, FRAME_PYTHON);
	assert_int_equal(sample.frames[i].address, code);
	assert_int_equal(sample.frames[i].position, position);
	assert_int_equal(sample.frames[i].detail, 0);
}

void harness__assert_stack(struct last_sample sample, uint32_t depth)
{
	assert_int_equal(sample.outcome, OUTCOME_PYTHON);
	assert_int_equal(sample.depth, depth);
	for (uint32_t i = 0; i < depth; i++)
		harness__assert_frame(sample, i, CODE(depth - 1 - i), depth - 1 - i);
}

void harness__assert_whole(struct last_sample sample, uint32_t depth)
{
	harness__assert_stack(sample, depth);
	assert_int_equal(kernel.failed_reads, 0);
}

enum outcome harness__unproved(const struct image *image, enum outcome outcome)
{
	return image__frames_in_cframes(image) ? OUTCOME_FRAME_ENTERING : outcome;
}

void harness__assert_ends(struct last_sample sample, uint32_t depth, enum outcome outcome)
{
	assert_int_equal(sample.outcome, outcome);
	assert_int_equal(sample.depth, depth + 1);
	assert_int_equal(sample.frames[depth].kind, FRAME_REASON);
	assert_int_equal(sample.frames[depth].detail, outcome);
	assert_in_range(kernel.reads, 0, READS_MAX);
}
