// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "naming/native_frames.h"
#include "python/lines.h"

/* Frames that were lost between a break of the chain and where it went on. */
#define LOST_TEXT "?"

/* Executable memory that no file is behind: a JIT's code, a closure of libffi. */
#define ANONYMOUS_TEXT "[anonymous]"

/* What follows the names that a program gave such code.  Names of CPython's -X perf begin with the
 * second text: a trampoline calls the eval loop for one Python function. */
#define PERF_MAP_TEXT	" (perf map)"
#define TRAMPOLINE_TEXT "py::"

/* What is in such memory in a process that runs CPython's JIT, where the eval loop may have called
 * it. */
#define JIT_TEXT "[JIT]"

/* Memory that was not mapped when the mappings were read last. */
#define UNKNOWN_TEXT "[unknown code]"

/* A function of a file, or a part of it that is mapped. */
struct place_key {
	uint64_t file; /* its serial number */
	uint64_t start;
	uint64_t is_part;
};

struct known_place {
	struct place_key key;
	uint32_t number; /* that the profile gives the function, or the mapping */
	bool hidden;
	UT_hash_handle hh;
};

struct native_frames {
	struct profile *profile;
	struct unwinder *unwinder;
	bool all;
	struct known_place *known;
};

struct native_frames *native_frames__new(struct profile *profile, struct unwinder *unwinder,
					 bool all)
{
	struct native_frames *frames = xcalloc(1, sizeof(*frames));

	frames->profile = profile;
	frames->unwinder = unwinder;
	frames->all = all;
	return frames;
}

void native_frames__begin_anew(struct native_frames *frames)
{
	struct known_place *known, *next;

	HASH_ITER (hh, frames->known, known, next) {
		HASH_DEL(frames->known, known);
		free(known);
	}
}

void native_frames__free(struct native_frames *frames)
{
	if (!frames)
		return;
	native_frames__begin_anew(frames);
	free(frames);
}

static uint32_t add_function(const struct native_frames *frames, const char *name,
			     bool of_interpreter)
{
	struct profile_function function = { .kind = FRAME_NATIVE };

	function.name = profile__string(frames->profile, name);
	function.of_interpreter = of_interpreter;
	return profile__function(frames->profile, &function);
}

/* What is known of KEY.  *IS_NEW: nothing was, and the caller fills it in. */
static struct known_place *get(struct native_frames *frames, const struct place_key *key,
			       bool *is_new)
{
	struct known_place *known;

	HASH_FIND(hh, frames->known, key, sizeof(*key), known);
	*is_new = !known;
	if (known)
		return known;
	known = xcalloc(1, sizeof(*known));
	known->key = *key;
	HASH_ADD(hh, frames->known, key, sizeof(known->key), known);
	return known;
}

/* The function that PLACE is in. */
static const struct known_place *find_function(struct native_frames *frames,
					       const struct code_place *place)
{
	struct place_key key = { .file = place->file->serial };
	struct known_place *known;
	bool is_new;
	char *name;

	key.start = code_file__function_start(place->file, place->address);
	known = get(frames, &key, &is_new);
	if (!is_new)
		return known;
	known->hidden = !frames->all && code_file__is_plumbing(place->file, place->address);
	name = code_file__describe(place->file, place->address);
	known->number = add_function(frames, name, place->file->is_interpreter);
	free(name);
	return known;
}

static uint32_t find_part(struct native_frames *frames, const struct code_place *place)
{
	const struct place_key key = { place->file->serial, place->start, true };
	bool is_new;
	struct known_place *known = get(frames, &key, &is_new);

	if (is_new) {
		struct profile_mapping mapping = { .start = place->start,
						   .limit = place->limit,
						   .offset = place->offset };

		mapping.file = profile__string(frames->profile, place->file->path);
		mapping.build_id = profile__string(frames->profile, place->file->build_id);
		known->number = profile__mapping(frames->profile, &mapping);
	}
	return known->number;
}

/* The location of a frame that no file is behind. */
static uint32_t locate_without_file(struct native_frames *frames, uint64_t serial,
				    const struct frame *frame, bool is_mapped, uint32_t *locations)
{
	bool is_jit = frame->kind == FRAME_JIT;
	const char *unnamed = is_jit		? JIT_TEXT
			      : !frame->address ? LOST_TEXT
			      : is_mapped	? ANONYMOUS_TEXT
						: UNKNOWN_TEXT;
	const char *name = NULL;
	char *text;

	if (frame->address)
		name = unwinder__jit_name(frames->unwinder, serial, frame->address - frame->detail);
	if (name && !frames->all && strncmp(name, TRAMPOLINE_TEXT, strlen(TRAMPOLINE_TEXT)) == 0)
		return 0;
	text = name ? xasprintf("%s" PERF_MAP_TEXT, name) : xstrdup(unnamed);
	*locations = profile__line(frames->profile, add_function(frames, text, is_jit && !name),
				   LINE_NONE);
	free(text);
	return 1;
}

uint32_t native_frames__locate(struct native_frames *frames, uint64_t serial,
			       const struct frame *frame, uint32_t *locations)
{
	/* A return address is behind the call, which may be a function's last instruction. */
	uint64_t back = frame->address ? frame->detail : 0;
	struct code_place place = unwinder__place(frames->unwinder, serial, frame->address - back);
	struct profile_location location = { 0 };
	const struct known_place *known;

	if (!place.file)
		return locate_without_file(frames, serial, frame, place.is_mapped, locations);
	known = find_function(frames, &place);
	if (known->hidden)
		return 0;
	location.function = known->number;
	location.mapping = find_part(frames, &place);
	location.address = place.address + back;
	*locations = profile__location(frames->profile, &location);
	return 1;
}
