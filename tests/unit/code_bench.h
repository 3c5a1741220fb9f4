/* SPDX-License-Identifier: BSD-2-Clause */
/* A symbolizer and a process, this one, with three code objects that can be replaced. */
#ifndef PYBPFPROF_TESTS_CODE_BENCH_H
#define PYBPFPROF_TESTS_CODE_BENCH_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_objects.h"
#include "naming/code_identity.h"
#include "naming/symbolizer.h"

#define MINOR	     13
#define SERIAL	     7
#define FIRST_CHECKS 5

/* At this rate, BPF does not identify the code objects of trusted processes with one-frame
 * stacks. */
#define QUICK_HZ 200000

struct bench {
	struct fake_code codes[3];
	struct target_process target, other;
	uint32_t thread; /* of the last definition */
	struct profile *profile;
	struct symbolizer_options naming;
	struct symbolizer *symbolizer;
	bool several; /* definitions report several interpreters */
	int identify; /* enum identification that the last check gave BPF; -1: none */
};

static inline void note(void *context, const struct target_process *target,
			enum identification identify)
{
	struct bench *bench = context;

	assert_ptr_equal(target, &bench->target);
	bench->identify = identify;
}

/* Checks as if all threads had been sampled since the last check. */
static inline bool check(struct bench *bench)
{
	uint32_t stack = symbolizer__reason(bench->symbolizer, OUTCOME_NO_PYTHON);

	for (size_t i = 0; i < bench->profile->thread_count; i++)
		symbolizer__see(bench->symbolizer, i, stack, 0, 1);
	bench->identify = -1;
	return symbolizer__check(bench->symbolizer, note, bench);
}

/* Adds the target, and checks it until it is trusted: BPF stops identifying its code objects. */
static inline void add_trusted(struct bench *bench)
{
	symbolizer__add_target(bench->symbolizer, &bench->target);
	symbolizer__first_thread(bench->symbolizer, &bench->target);
	for (int i = 1; i < FIRST_CHECKS; i++)
		assert_false(check(bench));
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_NOT);
}

static inline void rename_code(struct bench *bench, int number, const char *name)
{
	struct fake_code *fake = &bench->codes[number];

	fake_str(&fake->offsets, fake->qualname, FAKE_ASCII, name, strlen(name), 1);
}

/* Puts another code object at the same address, which differs in its first line. */
static inline void replace_code(struct bench *bench, int number, uint32_t first_line)
{
	struct fake_code *fake = &bench->codes[number];

	fake_put(fake->object, fake->offsets.code_firstlineno, first_line, 4);
}

/* The identity that code object NUMBER would have with FIRST_LINE. */
static inline uint64_t identity_of(const struct bench *bench, int number, uint32_t first_line)
{
	struct fake_code *fake = (struct fake_code *)&bench->codes[number];
	uint16_t offset = fake->offsets.code_firstlineno;
	uint64_t identity;
	uint32_t line;

	memcpy(&line, fake->object + offset, sizeof(line));
	fake_put(fake->object, offset, first_line, sizeof(line));
	identity = code_identity__read(&bench->target, (uintptr_t)fake->object);
	fake_put(fake->object, offset, line, sizeof(line));
	return identity;
}

static inline int set_up_minor(void **state, unsigned int minor)
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
	bench->naming.lines = LINES_NONE;
	bench->symbolizer = symbolizer__new(bench->profile, &bench->naming);
	add_trusted(bench);
	*state = bench;
	return 0;
}

static inline int set_up(void **state)
{
	return set_up_minor(state, MINOR);
}

static inline int tear_down(void **state)
{
	struct bench *bench = *state;

	symbolizer__free(bench->symbolizer);
	profile__free(bench->profile);
	free(bench);
	return 0;
}

/* Defines the stack of the code objects at DEPTH ADDRESSES, leaf first, in process SERIAL.  The
 * leaf has IDENTITY. */
static inline uint32_t define_at(struct bench *bench, uint64_t serial, const uint64_t *addresses,
				 int depth, uint64_t identity)
{
	struct definition *definition = calloc(1, sizeof(*definition));
	uint32_t stack;

	definition->serial = serial;
	definition->several = bench->several;
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

/* Same for code objects FIRST, the leaf, to LAST. */
static inline uint32_t define_in(struct bench *bench, uint64_t serial, int first, int last,
				 uint64_t identity)
{
	uint64_t addresses[3];

	for (int i = first; i <= last; i++)
		addresses[i - first] = (uintptr_t)bench->codes[i].object;
	return define_at(bench, serial, addresses, last - first + 1, identity);
}

static inline uint32_t define(struct bench *bench, int first, int last, uint64_t identity)
{
	return define_in(bench, SERIAL, first, last, identity);
}

static inline bool doubts(const struct bench *bench, uint32_t stack)
{
	return symbolizer__is_stale(bench->symbolizer, bench->thread, stack);
}

static inline const char *leaf_of(const struct bench *bench, uint32_t stack)
{
	const struct profile *profile = bench->profile;
	uint32_t location = profile->stacks[stack].locations[0];

	return profile->strings[profile->functions[profile->locations[location].function].name];
}

#endif
