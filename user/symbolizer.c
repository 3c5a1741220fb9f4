// SPDX-License-Identifier: BSD-2-Clause
/*
 * Addresses become names by way of the table of each process's code objects
 * (code_table.c).  A stack is known by the addresses of its code objects, so where
 * one is replaced by another, samples of both may have been counted as the same
 * stack, from the last check that saw the old one in place to now.  The functions
 * whose code objects these were are doubted: what was counted in that time with
 * them is not named.  From then on the kernel tells that process's code objects
 * apart in each sample, until none was replaced for a while.  So it does from the
 * first sample of a process on: what a start runs once and throws away is named.
 *
 * Two that take turns at an address, with the same places of the stack, may both times
 * be seen as the first one, and until that is noticed share its name.  From 3.14 on
 * the interpreters count the code objects that they free: one read a check for each
 * tells at the next check that there may be such.
 *
 * What cannot be read any more has no name, and is shown so.
 *
 * A frame's location is found once.  Where threads have their own copies of the
 * instructions (3.14t and later), it holds until a thread begins or ends, for a new
 * thread may get the number of one that ended, and other copies.  The interpreters
 * count these, so a read or two a stack tell.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "code_table.h"
#include "deputy.h"
#include "description.h"
#include "doubts.h"
#include "generation.h"
#include "hash_table.h"
#include "lines.h"
#include "qualified_names.h"
#include "root_folder.h"
#include "symbolizer.h"
#include "target_memory.h"
#include "xalloc.h"

#define UNREADABLE_TEXT "[code object not readable]"
#define GONE_TEXT	"[code object gone before it was read]"
#define NOT_KEPT_TEXT	"[code object of a process with too many names]"

/* What one process may add to the profile's strings. */
#define NAMES_BYTES_MAX (256 * 1024 * 1024)

/* A sample that was on its way when its process ended may still come to be defined. */
#define SETTLED_UNTIL_FORGOTTEN 2

/* Checks without a replaced code object until the kernel need not tell them apart any more: 10 s,
 * for where two take turns at an address, most checks see the same one as the last. */
#define QUIET_CHECKS 50

/* The same for a process that is new here: what starts imports, and throws away what ran once. */
#define FIRST_CHECKS 5

/* How often it is looked whether the threads of all processes are due to be named again. */
#define AGAIN_NS 1000000000LL

struct known_process {
	uint64_t serial; /* key */
	pid_t pid;
	struct symbolizer *symbolizer;
	struct target_process *target;
	struct target_process *ended; /* the same, once it has; to be freed */
	unsigned int settled;	      /* how often, since it has ended */
	uint32_t process;
	size_t threads;		  /* in the profile */
	bool sampled;		  /* since the last check */
	bool begun;		  /* something of it was sampled: only then is it looked at */
	struct root_folder *root; /* NULL after its end */
	uint64_t generation;	  /* of its threads' copies of instructions */
	uint64_t code_generation; /* changes when a code object is freed */
	struct code_table *codes;
	struct thread_names *thread_names;
	size_t names_bytes; /* of its code objects, that the profile did not have yet */
	bool replaced;	    /* since the last check, one was */
	unsigned int
		checks_to_go; /* for which the kernel tells code objects apart; 0: it does not */
	UT_hash_handle hh;
	bool is_nameless; /* in that list */
	struct known_process *prev, *next;
};

struct symbolizer {
	struct profile *profile;
	enum line_detail lines;
	enum thread_detail threads;
	struct known_process *processes;
	struct known_process **by_index; /* as the profile numbers them; NULL: forgotten */
	size_t index_capacity;
	struct qualified_names *qualified_names;
	struct known_process *nameless; /* whose threads' names are looked for */
	int64_t again_ns;		/* when those of all are */
	struct root_folder *roots;
	struct doubts *doubts;
	struct ledger forgotten; /* what the code objects of forgotten processes came to */
};

struct symbolizer *symbolizer__new(struct profile *profile, enum line_detail lines)
{
	struct symbolizer *symbolizer = xcalloc(1, sizeof(*symbolizer));

	symbolizer->profile = profile;
	symbolizer->lines = lines;
	symbolizer->qualified_names = qualified_names__new(profile);
	symbolizer->doubts = doubts__new();
	return symbolizer;
}

void symbolizer__tell_threads_apart(struct symbolizer *symbolizer, enum thread_detail detail)
{
	symbolizer->threads = detail;
}

static void close_files(struct known_process *process)
{
	root_folder__close(&process->symbolizer->roots, process->root);
	process->root = NULL;
}

/* Its threads' names are to be looked for. */
static void want_names(struct known_process *process)
{
	if (process->is_nameless)
		return;
	process->is_nameless = true;
	DL_APPEND(process->symbolizer->nameless, process);
}

static void stop_naming(struct known_process *process)
{
	if (!process->is_nameless)
		return;
	process->is_nameless = false;
	DL_DELETE(process->symbolizer->nameless, process);
}

/* What a process's code objects came to is kept. */
static void forget_process(struct symbolizer *symbolizer, struct known_process *process)
{
	if (process->begun) {
		code_table__account(process->codes, &symbolizer->forgotten);
		qualified_names__forget(symbolizer->qualified_names, process->target);
		if (symbolizer->by_index[process->process] == process)
			symbolizer->by_index[process->process] = NULL;
	}
	stop_naming(process);
	code_table__free(process->codes);
	thread_names__free(process->thread_names);
	close_files(process);
	target__free(process->ended);
	HASH_DEL(symbolizer->processes, process);
	free(process);
}

void symbolizer__free(struct symbolizer *symbolizer)
{
	struct known_process *process, *next;

	if (!symbolizer)
		return;
	symbolizer__settle(symbolizer);
	HASH_ITER (hh, symbolizer->processes, process, next)
		forget_process(symbolizer, process);
	qualified_names__free(symbolizer->qualified_names);
	doubts__free(symbolizer->doubts);
	free(symbolizer->by_index);
	free(symbolizer);
}

static struct known_process *find_process(const struct symbolizer *symbolizer, uint64_t serial)
{
	struct known_process *process;

	HASH_FIND(hh, symbolizer->processes, &serial, sizeof(serial), process);
	return process;
}

/* What is shown in place of a name: why there is none; NULL where there is one. */
static const char *why_unnamed(const struct known_process *process, const struct known_code *known)
{
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

static uint32_t add_function(struct known_process *process, const struct code *code)
{
	struct profile *profile = process->symbolizer->profile;
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
	return profile__function(profile, &function);
}

static void name_code(void *context, struct known_code *code)
{
	struct known_process *process = context;
	const char *why = why_unnamed(process, code);

	if (code->code.hidden)
		return;
	if (why) {
		code->function = add_unnamed(process->symbolizer->profile, why);
		return;
	}
	code->function = add_function(process, &code->code);
	qualified_names__want(process->symbolizer->qualified_names, process->target, code);
}

static void doubt_code(void *context, const struct known_code *code)
{
	struct known_process *process = context;

	process->replaced = true;
	if (!process->checks_to_go && !code->code.hidden)
		doubts__add(process->symbolizer->doubts, process->process, code->function);
}

/* Notices whether threads began or ended.  A process that cannot be read any more has no new ones.
 */
static void update_generation(struct known_process *process)
{
	uint64_t generation = process->generation;

	if (generation__read(process->target,
			     process->target->runtime.offsets.interp_tlbc_generation,
			     sizeof(uint32_t), &generation))
		process->generation = generation;
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

void symbolizer__add_target(struct symbolizer *symbolizer, struct target_process *target)
{
	struct known_process *process = xcalloc(1, sizeof(*process));

	process->serial = target->key.serial;
	process->pid = target->process.pid;
	process->symbolizer = symbolizer;
	process->target = target;
	HASH_ADD(hh, symbolizer->processes, serial, sizeof(process->serial), process);
}

/* Its files and its threads, which are PARENT's where it was forked from that one; NULL: its own.
 */
static void look_with(struct known_process *process, const struct known_process *parent)
{
	struct symbolizer *symbolizer = process->symbolizer;

	if (parent && parent->root) {
		process->root = root_folder__share(parent->root);
		process->thread_names = thread_names__fork(parent->thread_names, process->target);
	} else {
		process->root = root_folder__open(&symbolizer->roots, process->pid);
		process->thread_names = thread_names__new(symbolizer->profile, process->target);
	}
	if (process->ended)
		close_files(process);
}

/* One that was forked is where its parent is, and most have the same one.  That one's own parent is
 * left alone: a row of them may be as long as a target likes. */
static void look_around(struct known_process *process)
{
	struct known_process *parent = NULL;

	if (process->target->parent)
		parent = find_process(process->symbolizer, process->target->parent);
	if (parent && !parent->thread_names && !parent->ended)
		look_with(parent, NULL);
	look_with(process, parent);
}

/* Most of those that live shortly are never sampled, and cost next to nothing. */
static void begin_process(struct known_process *process)
{
	struct symbolizer *symbolizer = process->symbolizer;

	if (process->begun)
		return;
	process->begun = true;
	if (!process->thread_names)
		look_around(process);
	process->codes = code_table__new(process->target, name_code, doubt_code, process);
	process->process = profile__process(symbolizer->profile, process->serial, process->pid);
	process->checks_to_go = FIRST_CHECKS;
	/* What was forked has its parent's till then. */
	if (process->target->parent)
		target__identify(process->target, IDENTIFY_FORKED);
	target__describe(process->target, symbolizer->profile, process->process);
	has_freed_codes(process); /* from now on */
	symbolizer->by_index = xgrow(symbolizer->by_index, &symbolizer->index_capacity,
				     process->process + 1, sizeof(*symbolizer->by_index));
	symbolizer->by_index[process->process] = process;
}

bool symbolizer__has_sampled(const struct symbolizer *symbolizer,
			     const struct target_process *target)
{
	const struct known_process *process = find_process(symbolizer, target->key.serial);

	return process && process->begun;
}

void symbolizer__describe(struct symbolizer *symbolizer, const struct target_process *target)
{
	const struct known_process *process = find_process(symbolizer, target->key.serial);

	target__describe(target, symbolizer->profile, process->process);
}

static uint32_t line_of(const struct symbolizer *symbolizer, const struct known_process *process,
			const struct known_code *code, const struct frame *frame)
{
	const struct offsets *offsets = &process->target->runtime.offsets;
	int32_t position;

	if (symbolizer->lines == LINES_NONE || !code->code.name)
		return LINE_NONE;
	if (symbolizer->lines == LINES_FUNCTION)
		return lines__valid(code->code.first_line);
	if (!code__position(process->pid, offsets, code->address, &code->code, frame, &position))
		return LINE_NONE;
	return lines__find(offsets->version, code->code.line_table, code->code.line_table_length,
			   code->code.first_line, position);
}

static uint32_t python_location(struct symbolizer *symbolizer, const struct known_process *process,
				struct known_code *code, const struct frame *frame)
{
	struct place place = { .position = frame->position, .copy = frame->detail };
	struct known_location *known;

	HASH_FIND(hh, code->locations, &place, sizeof(place), known);
	if (known && (!place.copy || known->generation == process->generation))
		return known->location;
	if (!known) {
		known = xcalloc(1, sizeof(*known));
		known->place = place;
		HASH_ADD(hh, code->locations, place, sizeof(known->place), known);
	}
	known->generation = process->generation;
	known->location = profile__location(symbolizer->profile, code->function,
					    line_of(symbolizer, process, code, frame));
	return known->location;
}

static uint32_t reason_location(struct symbolizer *symbolizer, enum outcome outcome)
{
	struct profile_function function = {
		.kind = FRAME_REASON,
		.name = profile__string(symbolizer->profile, outcome__text(outcome)),
	};

	return profile__location(symbolizer->profile,
				 profile__function(symbolizer->profile, &function), LINE_NONE);
}

static uint32_t add_thread(struct symbolizer *symbolizer, struct known_process *process,
			   const struct definition *definition)
{
	struct profile *profile = symbolizer->profile;
	char name[sizeof(definition->thread_name) + 1] = { 0 };
	bool merged;
	uint32_t thread = threads_apart__add(profile, process->process, definition->tid,
					     symbolizer->threads, &process->threads, &merged);

	if (merged || thread_names__see(process->thread_names, definition, thread))
		return thread;
	want_names(process);
	memcpy(name, definition->thread_name, sizeof(definition->thread_name));
	profile->threads[thread].name = profile__string(profile, name);
	return thread;
}

/* Adds FRAME's location to LOCATIONS, unless it is one that Python hides; returns how many. */
static uint32_t add_location(struct symbolizer *symbolizer, struct known_process *process,
			     const struct frame *frame, uint32_t *locations)
{
	struct known_code *code;

	if (frame->kind != FRAME_PYTHON) {
		if (frame->address)
			target_memory__page_in(process->pid, frame->address);
		*locations = reason_location(symbolizer, frame->detail);
		return 1;
	}
	code = code_table__get(process->codes, frame->address, frame->identity);
	if (code->code.hidden)
		return 0;
	*locations = python_location(symbolizer, process, code, frame);
	return 1;
}

void symbolizer__learn(struct symbolizer *symbolizer, const struct code_record *record, size_t size)
{
	struct known_process *process = find_process(symbolizer, record->serial);
	const struct runtime *runtime = process ? &process->target->runtime : NULL;
	struct code code;

	if (!process || code__decode(&runtime->offsets, runtime->code_type, record, size, &code))
		return;
	begin_process(process);
	code_table__learn(process->codes, record->address, record->identity, &code);
}

bool symbolizer__define(struct symbolizer *symbolizer, const struct definition *definition,
			uint32_t *thread, uint32_t *stack)
{
	uint32_t locations[STACK_FRAMES_MAX], depth = 0;
	struct known_process *process = find_process(symbolizer, definition->serial);

	if (!process || definition->depth > STACK_FRAMES_MAX)
		return false;
	begin_process(process);
	update_generation(process);
	for (uint32_t i = 0; i < definition->depth; i++)
		depth += add_location(symbolizer, process, &definition->frames[i],
				      &locations[depth]);
	*thread = add_thread(symbolizer, process, definition);
	*stack = profile__stack(symbolizer->profile, locations, depth);
	return true;
}

struct naming {
	struct symbolizer *symbolizer;
	int64_t now_ns, first_ns;
};

static void read_names(void *context)
{
	struct naming *naming = context;
	struct symbolizer *symbolizer = naming->symbolizer;
	size_t processes = HASH_COUNT(symbolizer->processes);
	struct known_process *process, *next;

	if (naming->now_ns >= symbolizer->again_ns) {
		HASH_ITER (hh, symbolizer->processes, process, next)
			if (process->begun)
				want_names(process);
		symbolizer->again_ns = naming->now_ns + AGAIN_NS;
	}
	naming->first_ns = THREAD_NAMES_NEVER;
	for (process = symbolizer->nameless; process; process = next) {
		int64_t due_ns =
			thread_names__read(process->thread_names, naming->now_ns, processes);

		next = process->next;
		if (due_ns == THREAD_NAMES_NEVER)
			stop_naming(process);
		naming->first_ns = due_ns < naming->first_ns ? due_ns : naming->first_ns;
	}
	qualified_names__read(symbolizer->qualified_names, naming->now_ns);
}

int64_t symbolizer__read_names(struct symbolizer *symbolizer, int64_t now_ns)
{
	struct naming naming = { symbolizer, now_ns, THREAD_NAMES_NEVER };
	const struct known_process *process;

	for (process = symbolizer->nameless; process; process = process->next) {
		int64_t due_ns = thread_names__due(process->thread_names);

		naming.first_ns = due_ns < naming.first_ns ? due_ns : naming.first_ns;
	}
	if (now_ns >= naming.first_ns || now_ns >= symbolizer->again_ns ||
	    !qualified_names__are_all_found(symbolizer->qualified_names))
		deputy__send(read_names, &naming);
	return naming.first_ns;
}

/* Checks one process; returns whether its stacks are to be defined anew. */
static bool check_process(struct known_process *process, symbolizer__identify identify,
			  void *context)
{
	bool told_apart = process->checks_to_go;
	bool changed = code_table__check(process->codes);

	if (has_freed_codes(process))
		process->replaced = true;
	if (process->replaced)
		process->checks_to_go = QUIET_CHECKS;
	else if (process->checks_to_go)
		process->checks_to_go--;
	process->replaced = false;
	if (told_apart == !!process->checks_to_go)
		return changed;
	identify(context, process->target, !told_apart);
	return true;
}

struct checking {
	struct symbolizer *symbolizer;
	symbolizer__identify identify;
	void *context;
	bool changed;
};

static void check_all(void *context)
{
	struct checking *checking = context;
	struct known_process *process, *next;

	HASH_ITER (hh, checking->symbolizer->processes, process, next) {
		/* What has ended is not there to be read; its number may be another's by now. */
		if (!process->sampled || process->ended)
			continue;
		process->sampled = false;
		checking->changed |= check_process(process, checking->identify, checking->context);
	}
}

bool symbolizer__check(struct symbolizer *symbolizer, symbolizer__identify identify, void *context)
{
	struct checking checking = { symbolizer, identify, context, false };

	deputy__send(check_all, &checking);
	return checking.changed;
}

void symbolizer__see(struct symbolizer *symbolizer, uint32_t thread)
{
	uint32_t index = symbolizer->profile->threads[thread].process;

	if (symbolizer->by_index[index])
		symbolizer->by_index[index]->sampled = true;
}

bool symbolizer__doubts(const struct symbolizer *symbolizer, uint32_t thread, uint32_t stack)
{
	const struct profile *profile = symbolizer->profile;
	const struct profile_stack *frames = &profile->stacks[stack];
	uint32_t process = profile->threads[thread].process;
	bool doubted = false;

	for (uint32_t i = 0; i < frames->depth && !doubted; i++)
		doubted = doubts__has(symbolizer->doubts, process,
				      profile->locations[frames->locations[i]].function);
	return doubted;
}

uint32_t symbolizer__reason(struct symbolizer *symbolizer, enum outcome outcome)
{
	uint32_t location = reason_location(symbolizer, outcome);

	return profile__stack(symbolizer->profile, &location, 1);
}

/* Forgets the processes that have ended some time ago. */
static void forget_ended(struct symbolizer *symbolizer)
{
	struct known_process *process, *next;

	HASH_ITER (hh, symbolizer->processes, process, next)
		if (process->ended && ++process->settled == SETTLED_UNTIL_FORGOTTEN)
			forget_process(symbolizer, process);
}

void symbolizer__settle(struct symbolizer *symbolizer)
{
	doubts__end(symbolizer->doubts);
	forget_ended(symbolizer);
}

void symbolizer__end_target(struct symbolizer *symbolizer, struct target_process *target)
{
	struct known_process *process = find_process(symbolizer, target->key.serial);

	target->ended = true;
	if (!process) {
		target__free(target);
		return;
	}
	process->ended = target;
	close_files(process);
}

uint32_t symbolizer__first_thread(struct symbolizer *symbolizer,
				  const struct target_process *target)
{
	struct known_process *process = find_process(symbolizer, target->key.serial);

	begin_process(process);
	return threads_apart__add(symbolizer->profile, process->process, process->pid,
				  symbolizer->threads, &process->threads, &(bool){ false });
}

void symbolizer__keep(const struct symbolizer *symbolizer, struct profile_numbers *numbers)
{
	const struct known_process *process;

	for (process = symbolizer->processes; process; process = process->hh.next) {
		if (!process->begun)
			continue;
		numbers->processes[process->process] = PROFILE_KEPT;
		thread_names__keep(process->thread_names, numbers);
	}
	qualified_names__keep(symbolizer->qualified_names, numbers);
}

void symbolizer__renumber(struct symbolizer *symbolizer, const struct profile_numbers *numbers)
{
	struct known_process *process;

	for (size_t i = 0; i < symbolizer->index_capacity; i++)
		symbolizer->by_index[i] = NULL;
	for (process = symbolizer->processes; process; process = process->hh.next) {
		if (!process->begun)
			continue;
		process->process = numbers->processes[process->process];
		process->threads = 0;
		symbolizer->by_index[process->process] = process;
		thread_names__renumber(process->thread_names, numbers);
	}
	for (size_t i = 0; i < symbolizer->profile->thread_count; i++)
		if (symbolizer->by_index[symbolizer->profile->threads[i].process])
			symbolizer->by_index[symbolizer->profile->threads[i].process]->threads++;
	qualified_names__renumber(symbolizer->qualified_names, numbers);
}

void symbolizer__account(const struct symbolizer *symbolizer, struct ledger *ledger)
{
	const struct known_process *process;

	ledger->code_objects = symbolizer->forgotten.code_objects;
	ledger->unnamed_code_objects = symbolizer->forgotten.unnamed_code_objects;
	for (process = symbolizer->processes; process; process = process->hh.next)
		if (process->begun)
			code_table__account(process->codes, ledger);
}
