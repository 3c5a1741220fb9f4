// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "events/system_call.h"
#include "naming/frames.h"
#include "python/lines.h"
#include "reading/target_memory.h"
#include "unwind/kernel_symbols.h"

/* Lost frames between a break of the chain and where it continues. */
#define LOST_TEXT "?"

/* Executable memory without a file: a JIT's code, a closure of libffi. */
#define ANONYMOUS_TEXT "[anonymous]"

/* Added to names from a perf map.  Names from CPython's -X perf begin with TRAMPOLINE_TEXT: a
 * trampoline calls the eval loop for one Python function. */
#define PERF_MAP_TEXT	" (perf map)"
#define TRAMPOLINE_TEXT "py::"

/* Such memory in a process with CPython's JIT, if the eval loop may have called it. */
#define JIT_TEXT "[JIT]"

/* The kernel's function that switches threads, perhaps with a suffix of its compiler's. */
#define SCHEDULER "__schedule"

/* Memory that was not mapped when the mappings were last read. */
#define UNKNOWN_TEXT "[unknown code]"

/* A function of a file, or a mapping of a part of it. */
struct place_key {
	uint64_t file; /* serial number */
	uint64_t start;
	uint64_t is_part;
};

struct known_place {
	struct place_key key;
	uint32_t number; /* of the function or the mapping in the profile */
	bool hidden;
	UT_hash_handle hh;
};

static uint32_t add_function(struct profile *profile, enum frame_kind kind, const char *name,
			     bool of_interpreter)
{
	const struct profile_function function = {
		.kind = kind,
		.name = profile__string(profile, name),
		.of_interpreter = of_interpreter,
	};

	return profile__function(profile, &function);
}

uint32_t frames__reason(struct profile *profile, enum outcome outcome)
{
	return profile__line(profile,
			     add_function(profile, FRAME_REASON, outcome__text(outcome), false),
			     LINE_NONE);
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
	char *name = kernel_symbols__name(process->shared->options->kernel,
					  frame->address - frame->detail);

	*locations =
		profile__line(profile, add_function(profile, FRAME_KERNEL, name, false), LINE_NONE);
	free(name);
	return 1;
}

/* The place KEY.  If *IS_NEW, the caller fills it in. */
static struct known_place *get(struct naming_context *shared, const struct place_key *key,
			       bool *is_new)
{
	struct known_place *known = HASH_GET(hh, shared->places, key);

	*is_new = !known;
	if (known)
		return known;
	known = xcalloc(1, sizeof(*known));
	known->key = *key;
	HASH_ADD(hh, shared->places, key, sizeof(known->key), known);
	return known;
}

/* The function that PLACE is in. */
static const struct known_place *find_function(struct naming_context *shared,
					       const struct code_place *place)
{
	struct place_key key = { .file = place->file->serial };
	struct known_place *known;
	bool is_new;
	char *name;

	key.start = code_file__function_start(place->file, place->address);
	known = get(shared, &key, &is_new);
	if (!is_new)
		return known;
	known->hidden =
		!shared->options->plumbing && code_file__is_plumbing(place->file, place->address);
	name = code_file__describe(place->file, place->address);
	known->number =
		add_function(shared->profile, FRAME_NATIVE, name, place->file->is_interpreter);
	free(name);
	return known;
}

static uint32_t find_part(struct naming_context *shared, const struct code_place *place)
{
	const struct place_key key = { place->file->serial, place->start, true };
	bool is_new;
	struct known_place *known = get(shared, &key, &is_new);

	if (is_new) {
		struct profile_mapping mapping = { .start = place->start,
						   .limit = place->limit,
						   .offset = place->offset };

		mapping.file = profile__string(shared->profile, place->file->path);
		mapping.build_id = profile__string(shared->profile, place->file->build_id);
		known->number = profile__mapping(shared->profile, &mapping);
	}
	return known->number;
}

/* Locates a frame in memory without a file. */
static uint32_t locate_without_file(struct process_symbols *process, const struct frame *frame,
				    bool is_mapped, uint32_t *locations)
{
	const struct symbolizer_options *options = process->shared->options;
	struct profile *profile = process->shared->profile;
	bool is_jit = frame->kind == FRAME_JIT;
	const char *unnamed = is_jit		? JIT_TEXT
			      : !frame->address ? LOST_TEXT
			      : is_mapped	? ANONYMOUS_TEXT
						: UNKNOWN_TEXT;
	const char *name = NULL;
	char *text;

	if (frame->address)
		name = unwinder__jit_name(options->unwinder, process->serial,
					  frame->address - frame->detail);
	if (name && !options->plumbing &&
	    strncmp(name, TRAMPOLINE_TEXT, strlen(TRAMPOLINE_TEXT)) == 0)
		return 0;
	text = name ? xasprintf("%s" PERF_MAP_TEXT, name) : xstrdup(unnamed);
	*locations = profile__line(
		profile, add_function(profile, FRAME_NATIVE, text, is_jit && !name), LINE_NONE);
	free(text);
	return 1;
}

static uint32_t locate_native(struct process_symbols *process, const struct frame *frame,
			      uint32_t *locations)
{
	struct naming_context *shared = process->shared;
	/* A return address is after the call, which may be the function's last instruction. */
	uint64_t back = frame->address ? frame->detail : 0;
	struct profile_location location = { 0 };
	const struct known_place *known;
	struct code_place place;

	if (!shared->options->unwinder)
		return 0;
	place = unwinder__place(shared->options->unwinder, process->serial, frame->address - back);
	if (!place.file)
		return locate_without_file(process, frame, place.is_mapped, locations);
	known = find_function(shared, &place);
	if (known->hidden)
		return 0;
	location.function = known->number;
	location.mapping = find_part(shared, &place);
	location.address = place.address + back;
	*locations = profile__location(shared->profile, &location);
	return 1;
}

/* By enum frame_kind. */
static const struct frame_namer {
	bool (*is_sound)(const struct frame *frame); /* NULL if every frame is */
	/* Puts the location into LOCATIONS.  Returns the number of locations: 1, or 0 if the frame
	 * is hidden. */
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

/* What system calls wait for. */
static const struct {
	uint32_t number;
	const char *text;
} waits[] = {
	{ SYS_nanosleep, "sleep" },   { SYS_clock_nanosleep, "sleep" },
	{ SYS_ppoll, "poll" },	      { SYS_pselect6, "poll" },
	{ SYS_epoll_pwait, "poll" },
#ifdef SYS_poll /* newer architectures have none of these */
	{ SYS_poll, "poll" },	      { SYS_select, "poll" },
	{ SYS_epoll_wait, "poll" },
#endif
#ifdef SYS_epoll_pwait2
	{ SYS_epoll_pwait2, "poll" },
#endif
	{ SYS_read, "read" },	      { SYS_pread64, "read" },
	{ SYS_readv, "read" },	      { SYS_preadv, "read" },
	{ SYS_recvfrom, "read" },     { SYS_recvmsg, "read" },
	{ SYS_recvmmsg, "read" },     { SYS_accept, "read" },
	{ SYS_accept4, "read" },      { SYS_write, "write" },
	{ SYS_pwrite64, "write" },    { SYS_writev, "write" },
	{ SYS_pwritev, "write" },     { SYS_sendto, "write" },
	{ SYS_sendmsg, "write" },     { SYS_sendmmsg, "write" },
	{ SYS_futex, "lock" },
};

static const char *word_of(uint32_t number)
{
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		if (waits[i].number == number)
			return waits[i].text;
	return system_call__name(number);
}

/* "[sleep]", "[lock]", "[wait4]" for WAIT, an enum wait_reason or a system call of this machine.
 * The caller frees. */
static char *wait_text(uint32_t wait)
{
	const char *word = wait >= WAIT_SYSTEM_CALL ? word_of(wait - WAIT_SYSTEM_CALL) : NULL;

	if (word)
		return xasprintf("[%s]", word);
	if (wait >= WAIT_SYSTEM_CALL)
		return xasprintf("[system call %u]", wait - WAIT_SYSTEM_CALL);
	return xstrdup(wait == WAIT_GIL		? "[waiting for the GIL]"
		       : wait == WAIT_STOPPED	? "[stopped]"
		       : wait == WAIT_SUSPENDED ? "[stopped for another thread]"
		       : wait == WAIT_RUNNABLE	? "[runnable, not running]"
		       : wait == WAIT_FAULT	? "[page fault]"
						: "[in the kernel]");
}

static uint32_t locate_wait(struct profile *profile, uint32_t wait)
{
	char *text = wait_text(wait);
	uint32_t function = add_function(profile, FRAME_REASON, text, false);

	free(text);
	return profile__line(profile, function, LINE_NONE);
}

/* How many Python frames were called by the native FRAME, directly or not. */
static uint32_t python_below(const struct definition *definition, const struct frame *frame)
{
	int64_t below = (int64_t)frame->position + definition->native_shift;

	if (frame->position <= 0 || below < 0)
		return 0;
	return below < definition->depth ? below : definition->depth;
}

/* The first frame that is shown.  At a switch those above it are of the program that walks the
 * stack, and of what called that. */
static uint32_t first_kernel(const struct process_symbols *process,
			     const struct definition *definition, const struct frame *frames)
{
	for (uint32_t i = 0; i < definition->kernel_depth && definition->wait; i++) {
		char *name = kernel_symbols__name(process->shared->options->kernel,
						  frames[i].address - frames[i].detail);
		bool found = strncmp(name, SCHEDULER, sizeof(SCHEDULER) - 1) == 0;

		free(name);
		if (found)
			return i;
	}
	return 0;
}

uint32_t frames__locate(struct process_symbols *process, const struct definition *definition,
			uint32_t *locations)
{
	const struct frame *python = definition->frames, *native = python + definition->depth,
			   *kernel = native + definition->native_depth;
	uint32_t count = 0, taken = 0;

	if (definition->wait)
		locations[count++] = locate_wait(process->shared->profile, definition->wait);
	/* Without names, one frame stands for the whole kernel. */
	for (uint32_t i = first_kernel(process, definition, kernel);
	     i < definition->kernel_depth && (process->shared->options->kernel || !i); i++)
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

void frames__begin_anew(struct naming_context *shared)
{
	HASH_EMPTY(shared->places, free);
}
