// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "naming/native_frames.h"
#include "python/lines.h"
#include "unwind/perf_maps.h"

/* Frames that were lost between a break of the chain and where it went on. */
#define LOST_TEXT "?"

/* Executable memory that no file is behind: a JIT's code, a closure of libffi. */
#define ANONYMOUS_TEXT "[anonymous]"

/* What follows the names that a program gave such code, and what those of CPython's -X perf begin
 * with: trampolines, each of which calls the eval loop for one Python function. */
#define PERF_MAP_TEXT	" (perf map)"
#define TRAMPOLINE_TEXT "py::"

/* Memory that was not mapped when the mappings were read last. */
#define UNKNOWN_TEXT "[unknown code]"

/* One part of a file that is mapped. */
struct place_key {
	uint64_t file; /* its serial number */
	uint64_t start;
};

/* A function of a file, and a file's part, as the profile numbers them. */
struct known_function {
	struct place_key key;
	uint32_t function;
	bool hidden;
	UT_hash_handle hh;
};

struct known_part {
	struct place_key key;
	uint32_t mapping;
	UT_hash_handle hh;
};

struct native_frames {
	struct profile *profile;
	struct unwinder *unwinder;
	struct perf_maps *perf_maps;
	bool all;
	struct known_function *functions;
	struct known_part *parts;
};

struct native_frames *native_frames__new(struct profile *profile, struct unwinder *unwinder,
					 bool all)
{
	struct native_frames *frames = xcalloc(1, sizeof(*frames));

	frames->profile = profile;
	frames->unwinder = unwinder;
	frames->perf_maps = perf_maps__new();
	frames->all = all;
	return frames;
}

void native_frames__begin_anew(struct native_frames *frames)
{
	struct known_function *function, *next_function;
	struct known_part *part, *next_part;

	HASH_ITER (hh, frames->functions, function, next_function) {
		HASH_DEL(frames->functions, function);
		free(function);
	}
	HASH_ITER (hh, frames->parts, part, next_part) {
		HASH_DEL(frames->parts, part);
		free(part);
	}
}

void native_frames__free(struct native_frames *frames)
{
	if (!frames)
		return;
	native_frames__begin_anew(frames);
	perf_maps__free(frames->perf_maps);
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

/* The function that PLACE is in. */
static const struct known_function *find_function(struct native_frames *frames,
						  const struct code_place *place)
{
	struct place_key key = { .file = place->file->serial };
	struct known_function *known;
	char *name;

	key.start = code_file__function_start(place->file, place->address);
	HASH_FIND(hh, frames->functions, &key, sizeof(key), known);
	if (known)
		return known;
	known = xcalloc(1, sizeof(*known));
	known->key = key;
	known->hidden = !frames->all && code_file__is_plumbing(place->file, place->address);
	name = code_file__describe(place->file, place->address);
	known->function = add_function(frames, name, place->file->is_interpreter);
	free(name);
	HASH_ADD(hh, frames->functions, key, sizeof(known->key), known);
	return known;
}

static uint32_t find_part(struct native_frames *frames, const struct code_place *place)
{
	struct place_key key = { place->file->serial, place->start };
	struct known_part *known;

	HASH_FIND(hh, frames->parts, &key, sizeof(key), known);
	if (!known) {
		struct profile_mapping mapping = { .start = place->start,
						   .limit = place->limit,
						   .offset = place->offset };

		mapping.file = profile__string(frames->profile, place->file->path);
		mapping.build_id = profile__string(frames->profile, place->file->build_id);
		known = xcalloc(1, sizeof(*known));
		known->key = key;
		known->mapping = profile__mapping(frames->profile, &mapping);
		HASH_ADD(hh, frames->parts, key, sizeof(known->key), known);
	}
	return known->mapping;
}

/* The location of code that no file is behind, which is called UNNAMED where it has no name. */
static uint32_t locate_without_file(struct native_frames *frames, uint64_t serial, pid_t pid,
				    uint64_t address, const char *unnamed, uint32_t *locations)
{
	const char *name = perf_maps__name(frames->perf_maps, serial, pid, address, now_ns());
	char *text;

	if (name && !frames->all && strncmp(name, TRAMPOLINE_TEXT, strlen(TRAMPOLINE_TEXT)) == 0)
		return 0;
	text = name ? xasprintf("%s" PERF_MAP_TEXT, name) : xstrdup(unnamed);
	*locations = profile__line(frames->profile, add_function(frames, text, false), LINE_NONE);
	free(text);
	return 1;
}

uint32_t native_frames__locate(struct native_frames *frames, uint64_t serial, pid_t pid,
			       const struct frame *frame, uint32_t *locations)
{
	/* A return address is behind the call, which may be a function's last instruction. */
	uint64_t back = frame->address ? frame->detail : 0;
	struct code_place place = unwinder__place(frames->unwinder, serial, frame->address - back);
	struct profile_location location = { 0 };
	const struct known_function *known;

	if (!frame->address) {
		*locations = profile__line(frames->profile, add_function(frames, LOST_TEXT, false),
					   LINE_NONE);
		return 1;
	}
	if (!place.file)
		return locate_without_file(frames, serial, pid, frame->address - back,
					   place.is_mapped ? ANONYMOUS_TEXT : UNKNOWN_TEXT,
					   locations);
	known = find_function(frames, &place);
	if (known->hidden)
		return 0;
	location.function = known->function;
	location.mapping = find_part(frames, &place);
	location.address = place.address + back;
	*locations = profile__location(frames->profile, &location);
	return 1;
}

bool native_frames__have_news(struct native_frames *frames)
{
	return perf_maps__have_news(frames->perf_maps, now_ns());
}

void native_frames__end(struct native_frames *frames, uint64_t serial)
{
	perf_maps__end(frames->perf_maps, serial);
}

void native_frames__forget(struct native_frames *frames, uint64_t serial)
{
	perf_maps__forget(frames->perf_maps, serial);
}
