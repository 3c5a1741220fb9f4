// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "image.h"

#define MEMORY_BYTES (64UL << 20)
#define PAGE	     4096UL

/* Larger than the offsets of all fields that are read. */
#define INTERP_BYTES 8192
#define TSTATE_BYTES 384

/* The C stack, and how much of it an activation of the eval loop takes. */
#define C_STACK_BYTES	 (1UL << 20)
#define ACTIVATION_BYTES 352
#define CFRAME_ROOM	 64 /* part of that; the interpreter's own frame is behind it */

/* More than the C stack of any thread. */
#define APART_BYTES (9UL << 20)

#define SHIMS_SINCE	     0x030c0000
#define SHIM_CODE	     0xdead
#define OWNED_BY_INTERPRETER 3

/* PyThreadState._status: initialized and bound to a thread; the state that its thread attached
 * last. */
#define BOUND_STATUS	      3
#define BOUND_GILSTATE_STATUS 8

/* The limit of nested calls. */
#define CALLS_LIMIT 1000

void image__open(struct image *image, uint32_t version, enum build build)
{
	void *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	memset(image, 0, sizeof(*image));
	if (memory == MAP_FAILED || offsets__lookup(version, build, &image->offsets) ||
	    offsets__layout(&image->offsets, &image->layout)) {
		perror("no image");
		abort();
	}
	image->memory = (uint64_t)memory;
	image->next = image->memory;
	image->end = image->memory + MEMORY_BYTES;
	image->c_stack = image__allocate(image, C_STACK_BYTES) + C_STACK_BYTES;
	image->interpreters = image__allocate(image, sizeof(uint64_t));
}

void image__begin_c_stack(struct image *image)
{
	image->c_stack = image__allocate(image, APART_BYTES) + APART_BYTES;
}

void image__close(struct image *image)
{
	munmap((void *)image->memory, MEMORY_BYTES);
}

uint64_t image__allocate(struct image *image, size_t bytes)
{
	uint64_t address = (image->next + 15) & ~15UL;

	image->next = address + bytes;
	if (image->next > image->end) {
		fputs("the image is full\n", stderr);
		abort();
	}
	return address;
}

uint64_t image__nowhere(struct image *image)
{
	uint64_t address = image__allocate(image, 2 * PAGE) + PAGE - 1;

	address &= ~(PAGE - 1);
	image->next = address + PAGE;
	mprotect((void *)address, PAGE, PROT_NONE);
	return address;
}

uint64_t image__island(struct image *image, size_t bytes)
{
	uint64_t address = image__nowhere(image) + PAGE;

	image__allocate(image, (bytes + PAGE - 1) & ~(PAGE - 1));
	image__nowhere(image);
	return address;
}

uint64_t image__get(uint64_t address, uint32_t offset)
{
	uint64_t value;

	memcpy(&value, (void *)(address + offset), sizeof(value));
	return value;
}

void image__set(uint64_t address, uint32_t offset, uint64_t value)
{
	memcpy((void *)(address + offset), &value, sizeof(value));
}

/* The address of the pointer to the innermost frame. */
static uint64_t frame_pointer(const struct image *image, uint64_t tstate)
{
	const struct layout *layout = &image->layout;

	if (!image__frames_in_cframes(image))
		return tstate + layout->tstate_frame;
	return image__get(tstate, layout->tstate_cframe) + layout->cframe_current_frame;
}

uint64_t image__frame(const struct image *image, uint64_t tstate)
{
	return image__get(frame_pointer(image, tstate), 0);
}

void image__set_frame(const struct image *image, uint64_t tstate, uint64_t frame)
{
	const struct layout *layout = &image->layout;

	image__set(frame_pointer(image, tstate), 0, frame);
	if (layout->tstate_datastack_chunk != OFFSET_ABSENT)
		image__set(tstate, layout->tstate_datastack_chunk, image->memory);
	if (layout->tstate_datastack_top != OFFSET_ABSENT)
		image__set(tstate, layout->tstate_datastack_top, image->next);
}

/* The C frame below all activations. */
static uint64_t root_cframe(const struct image *image, uint64_t tstate)
{
	return tstate + image->layout.tstate_root_cframe;
}

uint64_t image__interp(struct image *image)
{
	uint64_t interp = image__allocate(image, INTERP_BYTES);

	image__set(interp, image->offsets.interp_next, image__get(image->interpreters, 0));
	image__set(image->interpreters, 0, interp);
	return interp;
}

uint64_t image__thread(struct image *image, uint64_t interp, uint64_t thread_pointer)
{
	uint64_t tstate = image__allocate(image, TSTATE_BYTES);

	image__add_thread(image, interp, tstate, thread_pointer);
	return tstate;
}

void image__add_thread(struct image *image, uint64_t interp, uint64_t tstate,
		       uint64_t thread_pointer)
{
	const struct offsets *offsets = &image->offsets;

	image__set(tstate, offsets->tstate_next, image__get(interp, offsets->interp_tstate_head));
	image__set(interp, offsets->interp_tstate_head, tstate);
	image__set(tstate, offsets->tstate_thread_id, thread_pointer);
	if (offsets->tstate_interp != OFFSET_ABSENT)
		image__set(tstate, offsets->tstate_interp, interp);
	image__take(image, tstate, 1);
	image__set_current(image, tstate, true);
	image__set_maker(image, tstate, IMAGE_MADE_BY_THREADING);
	image__unwind(image, tstate);
}

static void set_int(uint64_t address, uint32_t offset, uint32_t value)
{
	memcpy((void *)(address + offset), &value, sizeof(value));
}

void image__set_current(const struct image *image, uint64_t tstate, bool current)
{
	if (image->layout.tstate_status != OFFSET_ABSENT)
		set_int(tstate, image->layout.tstate_status,
			BOUND_STATUS | (current ? BOUND_GILSTATE_STATUS : 0));
}

void image__set_maker(const struct image *image, uint64_t tstate, uint32_t whence)
{
	if (image->layout.tstate_whence != OFFSET_ABSENT)
		set_int(tstate, image->layout.tstate_whence, whence);
}

void image__set_executor(const struct image *image, uint64_t tstate, uint64_t executor)
{
	if (image__has_executors(image))
		image__set(tstate, image->layout.tstate_current_executor, executor);
}

bool image__has_executors(const struct image *image)
{
	return image->layout.tstate_current_executor != OFFSET_ABSENT;
}

void image__take(const struct image *image, uint64_t tstate, uint32_t counter)
{
	if (image->layout.tstate_gilstate_counter != OFFSET_ABSENT)
		*(uint32_t *)(tstate + image->layout.tstate_gilstate_counter) = counter;
}

bool image__has_cframes(const struct image *image)
{
	return image->layout.tstate_cframe != OFFSET_ABSENT;
}

bool image__frames_in_cframes(const struct image *image)
{
	return image->layout.cframe_current_frame != OFFSET_ABSENT;
}

uint64_t image__cframe(const struct image *image, uint64_t tstate)
{
	return image__get(tstate, image->layout.tstate_cframe);
}

void image__write_cframe(const struct image *image, uint64_t cframe, uint64_t previous,
			 uint64_t frame)
{
	image__set(cframe, image->layout.cframe_previous, previous);
	if (image__frames_in_cframes(image))
		image__set(cframe, image->layout.cframe_current_frame, frame);
}

uint64_t image__enter(struct image *image, uint64_t tstate)
{
	uint64_t caller = image__frame(image, tstate), shim;

	if (image__has_cframes(image) || image->offsets.version >= SHIMS_SINCE)
		image->c_stack -= ACTIVATION_BYTES;
	if (image__has_cframes(image)) {
		image__write_cframe(image, image->c_stack, image__cframe(image, tstate), 0);
		image__set(tstate, image->layout.tstate_cframe, image->c_stack);
	}
	if (image->offsets.version < SHIMS_SINCE)
		return caller;
	shim = image->c_stack + CFRAME_ROOM;
	image__write_frame(image, shim, caller, SHIM_CODE, 0, OWNED_BY_INTERPRETER);
	image__set_frame(image, tstate, shim);
	return shim;
}

void image__unwind(const struct image *image, uint64_t tstate)
{
	if (image__has_cframes(image))
		image__set(tstate, image->layout.tstate_cframe, root_cframe(image, tstate));
	if (!image__frames_in_cframes(image))
		image__set_frame(image, tstate, 0);
}

void image__begin_greenlet(struct image *image, uint64_t tstate, uint32_t depth)
{
	const struct layout *layout = &image->layout;

	image__unwind(image, tstate);
	if (image__has_cframes(image))
		image__enter(image, tstate);
	image__set_frame(image, tstate, 0);
	if (layout->tstate_datastack_chunk != OFFSET_ABSENT)
		image__set(tstate, layout->tstate_datastack_chunk, 0);
	if (layout->tstate_calls_limit == OFFSET_ABSENT)
		return;
	set_int(tstate, layout->tstate_calls_limit, CALLS_LIMIT);
	set_int(tstate, layout->tstate_calls_left, CALLS_LIMIT - depth);
}

void image__mark_entry(const struct image *image, uint64_t frame)
{
	if (image->layout.frame_is_entry != OFFSET_ABSENT)
		*(uint8_t *)(frame + image->layout.frame_is_entry) = 1;
}

void image__write_frame(const struct image *image, uint64_t address, uint64_t previous,
			uint64_t code, int32_t position, uint8_t owner)
{
	const struct offsets *offsets = &image->offsets;
	uint64_t instruction = code + offsets->code_code_adaptive + 2 * (int64_t)position;

	image__set(address, offsets->frame_previous, previous);
	image__set(address, offsets->frame_code, code);
	if (offsets->code_code_adaptive == OFFSET_ABSENT)
		memcpy((void *)(address + offsets->frame_lasti), &position, sizeof(position));
	else
		image__set(address, offsets->frame_lasti, instruction);
	if (image->layout.frame_tlbc_index != OFFSET_ABSENT)
		memset((void *)(address + image->layout.frame_tlbc_index), 0, sizeof(uint32_t));
	if (image->layout.frame_owner != OFFSET_ABSENT)
		*(uint8_t *)(address + image->layout.frame_owner) = owner;
}

/* The caller of the first frame of TSTATE's innermost activation. */
static uint64_t first_caller(struct image *image, uint64_t tstate)
{
	uint64_t cframe;

	if (!image__frames_in_cframes(image) ||
	    image__cframe(image, tstate) == root_cframe(image, tstate))
		return image__enter(image, tstate);
	cframe = image__cframe(image, tstate);
	return image__get(image__get(cframe, image->layout.cframe_previous),
			  image->layout.cframe_current_frame);
}

uint64_t image__call(struct image *image, uint64_t tstate, uint64_t code, int32_t position)
{
	uint64_t caller = image__frame(image, tstate), frame;
	bool first = !caller;

	if (first)
		caller = first_caller(image, tstate);
	else if (image__has_cframes(image) && !image__frames_in_cframes(image))
		image__enter(image, tstate);
	frame = image__allocate(image, IMAGE_FRAME_BYTES);
	image__write_frame(image, frame, caller, code, position, 0);
	if (first)
		image__mark_entry(image, frame);
	image__set_frame(image, tstate, frame);
	return frame;
}

/* Room behind an object: whole words are read. */
#define OBJECT_BYTES 256

uint64_t image__object(struct image *image, uint32_t data_at, const void *data, size_t size)
{
	uint64_t object = image__allocate(image, OBJECT_BYTES + size);

	image__set(object, image->offsets.varobject_size, size);
	memcpy((void *)(object + data_at), data, size);
	return object;
}

uint64_t image__text(struct image *image, const char *text)
{
	const struct offsets *offsets = &image->offsets;
	uint32_t state = 1 | 1 << 3 | 1 << 4 | 1 << 5; /* ready ASCII, compact */
	uint64_t object;

	if (offsets->unicode_state == OFFSET_ABSENT)
		return image__object(image, offsets->bytes_data, text, strlen(text));
	object = image__object(image, offsets->unicode_ascii_size, text, strlen(text));
	state <<= offsets->unicode_kind_bit;
	memcpy((void *)(object + offsets->unicode_state), &state, sizeof(state));
	return object;
}
