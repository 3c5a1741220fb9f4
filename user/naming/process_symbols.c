// SPDX-License-Identifier: BSD-2-Clause
/*
 * A frame is located once.  In a free-threaded build (3.14t and later) threads have their own
 * copies of the bytecode, and a location holds until a thread begins or ends: a new thread may
 * reuse the number of one that ended, for another copy.  The interpreters count these changes, and
 * one or two reads per stack notice them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/now.h"
#include "base/xalloc.h"
#include "naming/process_symbols.h"
#include "python/interpreters.h"
#include "python/lines.h"
#include "reading/target_memory.h"

#define UNREADABLE_TEXT "[code object not readable]"
#define GONE_TEXT	"[code object gone before it was read]"
#define NOT_KEPT_TEXT	"[code object not named: process has too many names]"
#define SURPLUS_TEXT	"[code object not named: process has too many of them]"
#define CALLERS_TEXT	"[callers dropped: process has too many stacks]"
#define OF_ALL_TEXT	"[callers dropped: too many stacks in total]"

/* Limits what one process adds to the profile's strings. */
#define NAMES_BYTES_MAX (256 * 1024 * 1024)

/* Limits its stacks.  One takes about 256 bytes besides its frames, with its sample. */
#define STACK_BYTES_MAX	   (256 * 1024 * 1024)
#define STACK_BYTES(depth) (256 + (depth) * sizeof(uint32_t))

/* Limits the stacks of all processes, for a program that keeps forking.  Four processes may reach
 * their own limit. */
#define ALL_STACK_BYTES_MAX (4LL * STACK_BYTES_MAX)

/* Limits the generated functions that have entries of their own: a process may make any number. */
#define GENERATED_MAX 4096

/* Limits the remembered locations of a process.  Others are found again each time. */
#define PLACES_MAX (256 * 1024)

struct process_symbols *process_symbols__new(struct naming_context *shared,
					     struct target_process *target)
{
	struct process_symbols *process = xcalloc(1, sizeof(*process));

	process->serial = target->key.serial;
	process->pid = target->process.pid;
	process->shared = shared;
	process->target = target;
	return process;
}

static void close_files(struct process_symbols *process)
{
	root_folder__close(&process->shared->roots, process->root);
	process->root = NULL;
}

void process_symbols__free(struct process_symbols *process)
{
	if (process->begun)
		qualified_names__forget(process->shared->qualified_names, process->target);
	code_table__free(process->codes);
	process_symbols__end_stale(process);
	thread_names__free(process->thread_names);
	close_files(process);
	if (process->target->ended)
		target__free(process->target);
	free(process);
}

/* The text to show in place of a name, which says why there is none; NULL if there is one. */
static const char *why_unnamed(const struct process_symbols *process,
			       const struct known_code *known)
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

/* Tells a generated function apart from others with its name, file and line; 0 if it is not to be.
 * A forked process has its parent's code objects at the same addresses.  In 2.7, no class knows its
 * qualified name. */
static uint64_t apart(struct process_symbols *process, const struct known_code *known)
{
	if (process->target->runtime.offsets.type_qualname == OFFSET_ABSENT ||
	    !code__is_generated(&known->code) || process->generated == GENERATED_MAX)
		return 0;
	process->generated++;
	return (known->address * 0x9e3779b97f4a7c15ULL ^ known->identity) | 1;
}

static uint32_t add_function(struct process_symbols *process, const struct known_code *known)
{
	struct profile *profile = process->shared->profile;
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
	function.apart = apart(process, known);
	return profile__function(profile, &function);
}

static void name_code(struct process_symbols *process, struct known_code *code)
{
	const char *why = why_unnamed(process, code);

	code->named = true;
	if (why) {
		code->function = add_unnamed(process->shared->profile, why);
		return;
	}
	code->function = add_function(process, code);
	qualified_names__want(process->shared->qualified_names, process->target, code);
}

/* A function whose code objects were replaced: samples of it get no name. */
struct stale_function {
	uint32_t function; /* key */
	UT_hash_handle hh;
};

static struct stale_function *find_stale(const struct process_symbols *process, uint32_t function)
{
	return HASH_GET(hh, process->stale, &function);
}

/* Identification by words tells old code from the current one, but may not tell it from code that
 * came and went in between. */
static void note_stale(struct process_symbols *process, uint32_t function)
{
	struct stale_function *stale;

	if (code_identification__was_whole(&process->identification) ||
	    find_stale(process, function))
		return;
	stale = xcalloc(1, sizeof(*stale));
	stale->function = function;
	HASH_ADD(hh, process->stale, function, sizeof(stale->function), stale);
}

bool process_symbols__is_stale(const struct process_symbols *process, uint32_t function)
{
	return process->stale && find_stale(process, function);
}

void process_symbols__end_stale(struct process_symbols *process)
{
	HASH_EMPTY(process->stale, free);
}

static bool has_versions(const struct process_symbols *process)
{
	return codes_have_versions(&process->target->runtime.layout) &&
	       !process->target->versions_repeat;
}

/* BPF sees several interpreters itself, but not this. */
static void repeat_versions(struct process_symbols *process)
{
	if (!has_versions(process))
		return;
	process->target->versions_repeat = true;
	/* So far, the versions were worth no more than words. */
	process->identification.now = process->identification.least = IDENTIFIED_BY_WORDS;
	process->replaced = true;
}

static void note_replaced(struct process_symbols *process)
{
	const struct replaced_code *replaced;
	size_t count = code_table__take_replaced(process->codes, &replaced);

	for (size_t i = 0; i < count; i++) {
		if (replaced[i].alike)
			repeat_versions(process);
		process->replaced = true;
		if (replaced[i].was_named)
			note_stale(process, replaced[i].function);
	}
}

/* At an address that was reused recently, code may come and go unseen. */
static void note_reused(struct process_symbols *process)
{
	const struct known_code *code = NULL;

	while ((code = code_table__next_reused(process->codes, code)))
		if (code->named)
			note_stale(process, code->function);
}

/* Reads a counter of WIDTH bytes at OFFSET of each interpreter.  *GENERATION changes if any of them
 * does.  False if the version has no such counter, or it cannot be read. */
static bool read_generation(const struct process_symbols *process, uint32_t offset, size_t width,
			    uint64_t *generation)
{
	const struct runtime *runtime = &process->target->runtime;
	struct interpreters all;
	uint64_t count = 0, sum = 0;

	if (offset == OFFSET_ABSENT ||
	    interpreters__read(process->pid, &runtime->offsets, runtime->interpreters, &all))
		return false;
	for (size_t i = 0; i < all.count; i++) {
		uint64_t interpreter = all.addresses[i];

		if (target_memory__read(process->pid, interpreter + offset, &count, width))
			return false;
		sum = (sum ^ interpreter ^ count) * 0x9e3779b97f4a7c15ULL;
	}
	/* Not all interpreters were read: assume a change. */
	*generation = all.cut ? *generation + 1 : sum;
	return true;
}

/* Whether code objects were freed since the last call.  Always false up to 3.13, which does not
 * count them. */
static bool has_freed_codes(struct process_symbols *process)
{
	uint64_t before = process->code_generation, now = before;

	if (!read_generation(process, process->target->runtime.offsets.interp_code_generation,
			     sizeof(now), &now))
		return false;
	process->code_generation = now;
	return now != before;
}

/* Opens its root folder and thread names.  PARENT: it was forked from that process, and shares its
 * root folder; NULL: it does not. */
static void look_with(struct process_symbols *process, const struct process_symbols *parent)
{
	struct naming_context *shared = process->shared;

	if (parent && !parent->root)
		parent = NULL;
	process->root = parent ? root_folder__share(parent->root)
			       : root_folder__open(&shared->roots, process->pid);
	process->thread_names = thread_names__new(shared->profile, process->target,
						  parent ? parent->thread_names : NULL);
	if (process->target->ended)
		close_files(process);
}

/* A forked process has its parent's root folder, and mostly the same threading module.  The
 * parent's own parent is not looked at: a target may fork an endless chain. */
static void look_around(struct process_symbols *process, struct process_symbols *parent)
{
	if (parent && !parent->thread_names && !parent->target->ended)
		look_with(parent, NULL);
	look_with(process, parent);
}

void process_symbols__begin(struct process_symbols *process, struct process_symbols *parent)
{
	process->begun = true;
	if (!process->thread_names)
		look_around(process, parent);
	process->codes = code_table__new(process->target);
	code_identification__begin(&process->identification);
	process->checked_ns = now_ns();
	/* It has its parent's identity so far.  It keeps that if this fails: its PID may be reused,
	 * or it runs another program. */
	if (process->target->parent && !process->target->ended)
		target__identify(process->target, process->shared->options->map, IDENTIFY_FORKED);
	has_freed_codes(process); /* Sets the count to compare with. */
}

static string_id add_text(struct profile *profile, const char *text)
{
	return text ? profile__string(profile, text) : 0;
}

void target__describe(const struct target_process *target, struct profile *profile,
		      uint32_t process)
{
	const struct identity *identity = &target->identity;
	struct profile_process *entry = &profile->processes[process];

	entry->command = add_text(profile, identity->command);
	entry->short_name = add_text(profile, identity->short_name);
	entry->comm = add_text(profile, identity->comm);
	entry->service_name = add_text(profile, identity->service_name);
	entry->python_version = profile__string(profile, target->runtime.version);
	entry->user = add_text(profile, identity->user);
	entry->cgroup = add_text(profile, identity->cgroup);
	entry->container_id = add_text(profile, identity->container_id);
	entry->pod_uid = add_text(profile, identity->pod_uid);
	entry->unit = add_text(profile, identity->unit);
	entry->start_unix_ns = identity->start_unix_ns;
}

void process_symbols__enter(struct process_symbols *process)
{
	process->entered = true;
	process->process =
		profile__process(process->shared->profile, process->serial, process->pid);
	target__describe(process->target, process->shared->profile, process->process);
}

void process_symbols__begin_anew(struct process_symbols *process)
{
	process->entered = false;
	process->threads = process->names_bytes = process->places = process->stack_bytes = 0;
	process->generated = 0;
	code_table__begin_anew(process->codes);
	thread_names__forget_threads(process->thread_names);
}

void process_symbols__end(struct process_symbols *process)
{
	process->target->ended = true;
	close_files(process);
}

/* If the process cannot be read any more, it has no new threads. */
void process_symbols__update(struct process_symbols *process, const struct definition *definition)
{
	uint64_t generation = process->generation;

	if (definition->several)
		process->target->versions_repeat |= has_versions(process);
	if (read_generation(process, process->target->runtime.offsets.interp_tlbc_generation,
			    sizeof(uint32_t), &generation))
		process->generation = generation;
}

static uint32_t line_of(const struct process_symbols *process, const struct known_code *code,
			const struct frame *frame)
{
	const struct offsets *offsets = &process->target->runtime.offsets;
	int32_t position;

	if (process->shared->options->lines == LINES_NONE || !code->code.name)
		return LINE_NONE;
	if (process->shared->options->lines == LINES_FUNCTION)
		return lines__valid(code->code.first_line);
	if (!code__position(process->pid, offsets, code->address, &code->code, frame, &position))
		return LINE_NONE;
	/* The copy's start was read only now, and may be that of a later code object. */
	if (frame->detail && !code_table__is_in_place(process->codes, code))
		return LINE_NONE;
	return lines__shown(offsets->version, code->code.line_table, code->code.line_table_length,
			    code->code.first_line, position);
}

static uint32_t find_location(const struct process_symbols *process, const struct known_code *code,
			      const struct frame *frame)
{
	return profile__line(process->shared->profile, code->function,
			     line_of(process, code, frame));
}

static uint32_t location_of(struct process_symbols *process, struct known_code *code,
			    const struct frame *frame)
{
	struct place place = { .position = frame->position, .copy = frame->detail };
	struct known_location *known = HASH_GET(hh, code->locations, &place);

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

uint32_t process_symbols__locate(struct process_symbols *process, const struct frame *frame,
				 uint32_t *locations)
{
	struct known_code *code = code_table__get(process->codes, frame->address, frame->identity);

	note_replaced(process);
	if (code->code.hidden)
		return 0;
	if (!code->named)
		name_code(process, code);
	*locations = location_of(process, code, frame);
	return 1;
}

void process_symbols__learn(struct process_symbols *process, const struct code_record *record,
			    size_t size)
{
	const struct runtime *runtime = &process->target->runtime;
	struct code code;

	if (code__decode(&runtime->offsets, runtime->code_type, record, size, &code))
		return;
	code_table__learn(process->codes, record->address, record->identity, &code);
	note_replaced(process);
}

/* The number of kernel frames at the leaf. */
static uint32_t kernel_frames(const struct profile *profile, const uint32_t *locations,
			      uint32_t depth)
{
	uint32_t count = 0;

	while (count + 1 < depth &&
	       profile->functions[profile->locations[locations[count]].function].kind ==
		       FRAME_KERNEL)
		count++;
	return count;
}

void process_symbols__see(struct process_symbols *process, uint32_t stack, uint32_t event,
			  uint64_t samples)
{
	const struct profile *profile = process->shared->profile;
	const struct profile_stack *frames = &profile->stacks[stack];

	process->sampled = process->has_news = true;
	if (profile->events[event].period)
		process->untimed_samples += samples;
	code_identification__see(
		&process->identification,
		frames->depth - kernel_frames(profile, frames->locations, frames->depth), samples);
}

/* Why PROCESS may add no more stacks; NULL if it may. */
static const char *why_cut(const struct process_symbols *process)
{
	if (process->stack_bytes >= STACK_BYTES_MAX)
		return CALLERS_TEXT;
	return process->shared->stack_bytes >= ALL_STACK_BYTES_MAX ? OF_ALL_TEXT : NULL;
}

uint32_t process_symbols__stack(struct process_symbols *process, const uint32_t *locations,
				uint32_t depth)
{
	struct profile *profile = process->shared->profile;
	size_t before = profile->stack_count;
	const char *why = depth > 2 ? why_cut(process) : NULL;
	uint32_t cut[2], stack;

	if (why && !profile__has_stack(profile, locations, depth)) {
		cut[0] = locations[kernel_frames(profile, locations, depth)];
		cut[1] = profile__line(profile, add_unnamed(profile, why), LINE_NONE);
		return profile__stack(profile, cut, 2);
	}
	stack = profile__stack(profile, locations, depth);
	if (profile->stack_count > before) {
		process->stack_bytes += STACK_BYTES(depth);
		process->shared->stack_bytes += STACK_BYTES(depth);
	}
	return stack;
}

/* Samples per second: the clock's per second of busy CPU, and those of other events as they came
 * since the last check. */
static double rate_of(struct process_symbols *process)
{
	const struct profile *profile = process->shared->profile;
	int64_t now = now_ns();
	double rate_hz = 0;

	for (uint32_t i = 0; i < profile->event_count; i++)
		if (!profile->events[i].period)
			rate_hz = ldexp(profile->rate_hz, -(int)process->target->rate_shift);
	if (process->untimed_samples && now > process->checked_ns)
		rate_hz += process->untimed_samples * 1e9 / (now - process->checked_ns);
	process->untimed_samples = 0;
	process->checked_ns = now;
	return rate_hz;
}

bool process_symbols__check(struct process_symbols *process, symbolizer__identify identify,
			    void *context)
{
	struct identified_process identified = {
		.rate_hz = rate_of(process),
		.has_version = has_versions(process),
	};
	bool changed, replaced, is_new;

	/* Left over if the last check was abandoned. */
	note_replaced(process);
	/* Samples report replaced code themselves.  The freed ones seen until now are not news at
	 * the next check. */
	if (code_identification__is_settled(&process->identification, &identified) &&
	    code_table__is_checked(process->codes) &&
	    !(identified.has_version && code_table__has_other_roots(process->codes))) {
		has_freed_codes(process);
		return false;
	}
	changed = code_table__check(process->codes);
	note_replaced(process);
	if (process->identification.now != IDENTIFIED_WHOLLY)
		note_reused(process);
	replaced = process->replaced;
	identified.replaced = replaced | has_freed_codes(process);
	identified.has_version = has_versions(process);
	process->replaced = false;
	is_new = code_identification__choose(&process->identification, &identified) ||
		 process->told_repeats != process->target->versions_repeat;
	process->told_repeats = process->target->versions_repeat;
	/* Without identification, samples of the new code came under the stacks of the old code. */
	if (!is_new)
		return changed || (replaced && process->identification.now != IDENTIFIED_WHOLLY);
	identify(context, process->target, process->identification.now);
	return true;
}
