// SPDX-License-Identifier: BSD-2-Clause
/*
 * A frame's location is found once.  Where threads have their own copies of the
 * instructions (3.14t and later), it holds until a thread begins or ends, for a new
 * thread may get the number of one that ended, and other copies.  The interpreters
 * count these, so a read or two a stack tell.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "naming/description.h"
#include "naming/generation.h"
#include "naming/known_process.h"
#include "python/lines.h"

#define UNREADABLE_TEXT "[code object not readable]"
#define GONE_TEXT	"[code object gone before it was read]"
#define NOT_KEPT_TEXT	"[code object not named: process has too many names]"
#define SURPLUS_TEXT	"[code object not named: process has too many of them]"
#define CALLERS_TEXT	"[callers dropped: process has too many stacks]"
#define OF_ALL_TEXT	"[callers dropped: too many stacks in total]"

/* What one process may add to the profile's strings. */
#define NAMES_BYTES_MAX (256 * 1024 * 1024)

/* The same in stacks: one takes some 256 bytes beside its frames, with its sample. */
#define STACK_BYTES_MAX	   (256 * 1024 * 1024)
#define STACK_BYTES(depth) (256 + (depth) * sizeof(uint32_t))

/* A program that forks ever anew would have as much for each child; four that are as large as one
 * may be have room beside each other. */
#define ALL_STACK_BYTES_MAX (4LL * STACK_BYTES_MAX)

/* So many places of a process's code are remembered; to find one again takes but longer. */
#define PLACES_MAX (256 * 1024)

struct known_process *known_process__new(struct naming_context *shared,
					 struct target_process *target)
{
	struct known_process *process = xcalloc(1, sizeof(*process));

	process->serial = target->key.serial;
	process->pid = target->process.pid;
	process->shared = shared;
	process->target = target;
	return process;
}

static void close_files(struct known_process *process)
{
	root_folder__close(&process->shared->roots, process->root);
	process->root = NULL;
}

void known_process__free(struct known_process *process)
{
	if (process->begun)
		qualified_names__forget(process->shared->qualified_names, process->target);
	code_table__free(process->codes);
	generated_functions__release(process->shared->generated, &process->generated);
	thread_names__free(process->thread_names);
	close_files(process);
	target__free(process->ended);
	free(process);
}

/* What is shown in place of a name: why there is none; NULL where there is one. */
static const char *why_unnamed(const struct known_process *process, const struct known_code *known)
{
	if (known->surplus)
		return SURPLUS_TEXT;
	if (!known->code.name)
		return known->gone ? GONE_TEXT : UNREADABLE_TEXT;
	return process->names_bytes > NAMES_BYTES_MAX ? NOT_KEPT_TEXT : NULL;
}

static uint32_t add_unnamed(struct profile *profile, const char *why)
{
	struct profile_function function = { .kind = FRAME_PYTHON, .nameless = true };

	function.name = profile__string(profile, why);
	return profile__function(profile, &function);
}

/* In 2.7, no class says its whole name. */
static bool is_generated(const struct known_process *process, const struct code *code)
{
	return process->target->runtime.offsets.type_qualname != OFFSET_ABSENT &&
	       generated_functions__has(code);
}

static uint32_t add_function(struct known_process *process, const struct known_code *known)
{
	struct naming_context *shared = process->shared;
	struct profile *profile = shared->profile;
	const struct code *code = &known->code;
	struct profile_function function = { .kind = FRAME_PYTHON };
	char *short_filename = root_folder__shorten(process->root, process->pid, code->filename);
	size_t strings = profile->string_count;

	function.name = profile__string(profile, code->name);
	function.filename = profile__string(profile, code->filename);
	function.short_filename = profile__string(profile, short_filename);
	function.first_line = lines__valid(code->first_line);
	for (; strings < profile->string_count; strings++)
		process->names_bytes += strlen(profile->strings[strings]);
	free(short_filename);
	if (is_generated(process, code))
		function.apart = generated_functions__number(shared->generated, &process->generated,
							     known->address, known->identity);
	return profile__function(profile, &function);
}

static void name_code(void *context, struct known_code *code)
{
	struct known_process *process = context;
	const char *why = why_unnamed(process, code);

	code->added = !code->code.hidden;
	if (!code->added)
		return;
	if (why) {
		code->function = add_unnamed(process->shared->profile, why);
		return;
	}
	code->function = add_function(process, code);
	qualified_names__want(process->shared->qualified_names, process->target, code);
}

/* By words CODE may be told from the one that is there by now, and yet not from one in between. */
static void doubt_code(void *context, const struct known_code *code)
{
	struct known_process *process = context;

	if (!code_identification__was_whole(&process->identification) && code->added)
		doubts__add(process->shared->doubts, process->process, code->function);
}

static bool has_versions(const struct known_process *process)
{
	return codes_have_versions(&process->target->runtime.layout) &&
	       !process->target->versions_repeat;
}

void known_process__see_several(struct known_process *process)
{
	process->target->versions_repeat |= has_versions(process);
}

/* Unlike several interpreters, the kernel side has not seen that. */
static void repeat_versions(struct known_process *process)
{
	if (!has_versions(process))
		return;
	process->target->versions_repeat = true;
	/* That is what it was worth till now. */
	process->identification.now = process->identification.least = IDENTIFIED_BY_WORDS;
	process->replaced = true;
}

static void note_replaced(void *context, const struct known_code *code, bool alike)
{
	struct known_process *process = context;

	if (alike)
		repeat_versions(process);
	process->replaced = true;
	doubt_code(process, code);
}

/* Whether code objects were freed since the last time that this was asked; false where that is not
 * counted, up to 3.13. */
static bool has_freed_codes(struct known_process *process)
{
	uint64_t before = process->code_generation, now = before;

	if (!generation__read(process->target,
			      process->target->runtime.offsets.interp_code_generation, sizeof(now),
			      &now))
		return false;
	process->code_generation = now;
	return now != before;
}

/* Its files and its threads, which are PARENT's where it was forked from that one; NULL: its own.
 */
static void look_with(struct known_process *process, const struct known_process *parent)
{
	struct naming_context *shared = process->shared;

	if (parent && parent->root) {
		process->root = root_folder__share(parent->root);
		process->thread_names = thread_names__fork(parent->thread_names, process->target);
	} else {
		process->root = root_folder__open(&shared->roots, process->pid);
		process->thread_names = thread_names__new(shared->profile, process->target);
	}
	if (process->ended)
		close_files(process);
}

/* One that was forked is where its parent is, and most have the same one.  That one's own parent is
 * left alone: a row of them may be as long as a target likes. */
static void look_around(struct known_process *process, struct known_process *parent)
{
	if (parent && !parent->thread_names && !parent->ended)
		look_with(parent, NULL);
	look_with(process, parent);
}

void known_process__begin(struct known_process *process, struct known_process *parent)
{
	process->begun = true;
	if (!process->thread_names)
		look_around(process, parent);
	process->codes = code_table__new(process->target, name_code, note_replaced, process);
	code_identification__begin(&process->identification);
	/* What was forked has its parent's till then; and keeps it where that is all that is sure:
	 * its number may be another's by now, or it runs something else. */
	if (process->target->parent && !process->ended)
		target__identify(process->target, process->shared->map, IDENTIFY_FORKED);
	has_freed_codes(process); /* from now on */
}

void known_process__enter(struct known_process *process)
{
	struct profile *profile = process->shared->profile;

	process->entered = true;
	process->process = profile__process(profile, process->serial, process->pid);
	target__describe(process->target, profile, process->process);
}

void known_process__begin_anew(struct known_process *process)
{
	process->entered = false;
	process->threads = process->names_bytes = process->places = process->stack_bytes = 0;
	code_table__begin_anew(process->codes);
	thread_names__forget_threads(process->thread_names);
}

void known_process__end(struct known_process *process, struct target_process *target)
{
	process->ended = target;
	close_files(process);
}

/* A process that cannot be read any more has no new threads. */
void known_process__update(struct known_process *process)
{
	uint64_t generation = process->generation;

	if (generation__read(process->target,
			     process->target->runtime.offsets.interp_tlbc_generation,
			     sizeof(uint32_t), &generation))
		process->generation = generation;
}

static uint32_t line_of(const struct known_process *process, const struct known_code *code,
			const struct frame *frame)
{
	const struct offsets *offsets = &process->target->runtime.offsets;
	int32_t position;

	if (process->shared->lines == LINES_NONE || !code->code.name)
		return LINE_NONE;
	if (process->shared->lines == LINES_FUNCTION)
		return lines__valid(code->code.first_line);
	if (!code__position(process->pid, offsets, code->address, &code->code, frame, &position))
		return LINE_NONE;
	/* Where the copy begins was read only now, and may be of what came after it. */
	if (frame->detail && !code_table__is_in_place(process->codes, code))
		return LINE_NONE;
	return lines__shown(offsets->version, code->code.line_table, code->code.line_table_length,
			    code->code.first_line, position);
}

static uint32_t find_location(const struct known_process *process, const struct known_code *code,
			      const struct frame *frame)
{
	return profile__location(process->shared->profile, code->function,
				 line_of(process, code, frame));
}

static uint32_t location_of(struct known_process *process, struct known_code *code,
			    const struct frame *frame)
{
	struct place place = { .position = frame->position, .copy = frame->detail };
	struct known_location *known;

	HASH_FIND(hh, code->locations, &place, sizeof(place), known);
	if (known && (!place.copy || known->generation == process->generation))
		return known->location;
	if (!known && (code->surplus || process->places >= PLACES_MAX))
		return find_location(process, code, frame);
	if (!known) {
		known = xcalloc(1, sizeof(*known));
		known->place = place;
		HASH_ADD(hh, code->locations, place, sizeof(known->place), known);
		process->places++;
	}
	known->generation = process->generation;
	known->location = find_location(process, code, frame);
	return known->location;
}

bool known_process__locate(struct known_process *process, const struct frame *frame,
			   uint32_t *location)
{
	struct known_code *code = code_table__get(process->codes, frame->address, frame->identity);

	if (code->code.hidden)
		return false;
	*location = location_of(process, code, frame);
	return true;
}

/* Why PROCESS may have no more stacks; NULL where it may. */
static const char *why_cut(const struct known_process *process)
{
	if (process->stack_bytes >= STACK_BYTES_MAX)
		return CALLERS_TEXT;
	return process->shared->stack_bytes >= ALL_STACK_BYTES_MAX ? OF_ALL_TEXT : NULL;
}

uint32_t known_process__stack(struct known_process *process, const uint32_t *locations,
			      uint32_t depth)
{
	struct profile *profile = process->shared->profile;
	size_t before = profile->stack_count;
	const char *why = depth > 2 ? why_cut(process) : NULL;
	uint32_t cut[2], stack;

	if (why && !profile__has_stack(profile, locations, depth)) {
		cut[0] = locations[0];
		cut[1] = profile__location(profile, add_unnamed(profile, why), LINE_NONE);
		return profile__stack(profile, cut, 2);
	}
	stack = profile__stack(profile, locations, depth);
	if (profile->stack_count > before) {
		process->stack_bytes += STACK_BYTES(depth);
		process->shared->stack_bytes += STACK_BYTES(depth);
	}
	return stack;
}

bool known_process__check(struct known_process *process, symbolizer__identify identify,
			  void *context)
{
	struct identified_process identified = {
		.rate_hz =
			ldexp(process->shared->profile->rate_hz, -(int)process->target->halvings),
		.has_version = has_versions(process),
	};
	bool changed, replaced, is_new;

	/* What would be found that way is told by the samples; and is no news at the next check. */
	if (code_identification__is_settled(&process->identification, &identified) &&
	    code_table__is_checked(process->codes) &&
	    !(identified.has_version && code_table__has_other_roots(process->codes))) {
		has_freed_codes(process);
		return false;
	}
	changed = code_table__check(process->codes);
	if (process->identification.now != IDENTIFIED_WHOLLY)
		code_table__visit_reused(process->codes, doubt_code, process);
	replaced = process->replaced;
	identified.replaced = replaced | has_freed_codes(process);
	identified.has_version = has_versions(process);
	process->replaced = false;
	is_new = code_identification__choose(&process->identification, &identified) ||
		 process->told_repeats != process->target->versions_repeat;
	process->told_repeats = process->target->versions_repeat;
	/* Unless they are told apart, what came there is counted with the stacks of what was. */
	if (!is_new)
		return changed || (replaced && process->identification.now != IDENTIFIED_WHOLLY);
	identify(context, process->target, process->identification.now);
	return true;
}
