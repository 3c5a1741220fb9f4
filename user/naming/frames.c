// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "naming/frames.h"
#include "naming/waits.h"
#include "unwind/kernel_symbols.h"
#include "python/lines.h"
#include "reading/target_memory.h"

uint32_t frames__reason(struct profile *profile, enum outcome outcome)
{
	struct profile_function function = {
		.kind = FRAME_REASON,
		.name = profile__string(profile, outcome__text(outcome)),
	};

	return profile__line(profile, profile__function(profile, &function), LINE_NONE);
}

static bool is_sound_code(const struct frame *frame)
{
	return frame->detail <= 1;
}

static bool is_sound_reason(const struct frame *frame)
{
	return frame->detail < OUTCOME_COUNT;
}

static uint32_t locate_reason(struct process_symbols *process, const struct frame *frame,
			      uint32_t *locations)
{
	if (frame->address)
		target_memory__page_in(process->pid, frame->address);
	*locations = frames__reason(process->shared->profile, frame->detail);
	return 1;
}

static uint32_t locate_kernel(struct process_symbols *process, const struct frame *frame,
			      uint32_t *locations)
{
	struct profile *profile = process->shared->profile;
	struct profile_function function = { .kind = FRAME_KERNEL };
	char *name = kernel_symbols__name(process->shared->kernel, frame->address - frame->detail);

	function.name = profile__string(profile, name);
	*locations = profile__line(profile, profile__function(profile, &function), LINE_NONE);
	free(name);
	return 1;
}

static uint32_t locate_native(struct process_symbols *process, const struct frame *frame,
			      uint32_t *locations)
{
	if (!process->shared->native)
		return 0;
	return native_frames__locate(process->shared->native, process->serial, frame, locations);
}

/* By the kind of a frame, as the kernel records it. */
static const struct frame_namer {
	bool (*is_sound)(const struct frame *frame); /* NULL: always */
	/* Puts the frame's locations into LOCATIONS, leaf first, and returns how many: none for
	 * what is hidden, one at most. */
	uint32_t (*locate)(struct process_symbols *process, const struct frame *frame,
			   uint32_t *locations);
} frame_namers[] = {
	[FRAME_PYTHON] = { NULL, process_symbols__locate },
	[FRAME_NATIVE] = { is_sound_code, locate_native },
	[FRAME_KERNEL] = { is_sound_code, locate_kernel },
	[FRAME_JIT] = { is_sound_code, locate_native },
	[FRAME_REASON] = { is_sound_reason, locate_reason },
};

#define FRAME_KINDS (sizeof(frame_namers) / sizeof(frame_namers[0]))

static uint32_t frames_of(const struct definition *definition)
{
	return definition->depth + definition->native_depth + definition->kernel_depth;
}

bool frames__are_sound(const struct definition *definition)
{
	if (definition->depth > STACK_FRAMES_MAX || definition->native_depth > NATIVE_FRAMES_MAX ||
	    definition->kernel_depth > KERNEL_FRAMES_MAX)
		return false;
	for (uint32_t i = 0; i < frames_of(definition); i++) {
		const struct frame *frame = &definition->frames[i];
		const struct frame_namer *namer =
			frame->kind < FRAME_KINDS ? &frame_namers[frame->kind] : NULL;

		if (!namer || !namer->locate || (namer->is_sound && !namer->is_sound(frame)))
			return false;
	}
	return true;
}

static uint32_t locate(struct process_symbols *process, const struct frame *frame,
		       uint32_t *locations)
{
	return frame_namers[frame->kind].locate(process, frame, locations);
}

static uint32_t locate_wait(struct profile *profile, uint32_t wait)
{
	char *text = wait__text(wait);
	struct profile_function function = {
		.kind = FRAME_REASON,
		.name = profile__string(profile, text),
	};

	free(text);
	return profile__line(profile, profile__function(profile, &function), LINE_NONE);
}

/* How many of the stack's Python frames the native FRAME called. */
static uint32_t python_below(const struct definition *definition, const struct frame *frame)
{
	int64_t below = (int64_t)frame->position + definition->native_shift;

	if (frame->position <= 0 || below < 0)
		return 0;
	return below < definition->depth ? below : definition->depth;
}

/* The first frame that is shown: above it, a switch has those of the program that walked the stack.
 */
static uint32_t first_kernel(const struct process_symbols *process,
			     const struct definition *definition, const struct frame *frames)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < definition->kernel_depth && definition->wait; i++) {
		char *name = kernel_symbols__name(process->shared->kernel,
						  frames[i].address - frames[i].detail);

		if (strstr(name, "bpf_") || strstr(name, "__traceiter_"))
			first = i + 1;
		free(name);
	}
	return first < definition->kernel_depth ? first : 0;
}

uint32_t frames__locate(struct process_symbols *process, const struct definition *definition,
			uint32_t *locations)
{
	const struct frame *python = definition->frames, *native = python + definition->depth,
			   *kernel = native + definition->native_depth;
	uint32_t count = 0, taken = 0;

	if (definition->wait)
		locations[count++] = locate_wait(process->shared->profile, definition->wait);
	/* Without names, one kernel frame says it all. */
	for (uint32_t i = first_kernel(process, definition, kernel);
	     i < definition->kernel_depth && (process->shared->kernel || !i); i++)
		count += locate(process, &kernel[i], &locations[count]);
	for (uint32_t i = 0; i < definition->native_depth; i++) {
		while (taken < python_below(definition, &native[i]))
			count += locate(process, &python[taken++], &locations[count]);
		count += locate(process, &native[i], &locations[count]);
	}
	while (taken < definition->depth)
		count += locate(process, &python[taken++], &locations[count]);
	return count;
}
