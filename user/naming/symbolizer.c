// SPDX-License-Identifier: BSD-2-Clause
/*
 * Addresses become names by way of the table of each process's code objects
 * (code_table.c).  A stack is known by the addresses of its code objects, so where
 * one is replaced by another, and the kernel was not to tell them apart in each sample,
 * samples of both may have been counted as the same stack, from the last check that
 * saw the old one in place to now.  The functions
 * whose code objects these were are doubted: what was counted in that time with
 * them is not named.  From then on the kernel tells that process's code objects
 * apart in each sample, until none was replaced for a while.  So it does from the
 * first sample of a process on: what a start runs once and throws away is named.  Where
 * that would take too much, all stacks are defined anew whenever one was replaced, and
 * what is at its address stays in doubt for that while (reused_addresses.h).
 *
 * Two that take turns at an address, with the same places of the stack, may both times
 * be seen as the first one.  So where rate and depth allow it (code_identification.c) the
 * kernel always tells them apart, or at least looks at what a code object says itself,
 * which shows the other one unless all that it has lies where the first one's did.  Beyond
 * that they share a name until it is noticed.  From 3.14 on the interpreters count the
 * code objects that they free: one read a check for each tells at the next check that
 * there may be such.
 *
 * What cannot be read any more has no name, and is shown so.
 */
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/xalloc.h"
#include "naming/description.h"
#include "naming/known_process.h"
#include "naming/symbolizer.h"
#include "python/lines.h"
#include "target/deputy.h"
#include "target/target_memory.h"

/* A sample that was on its way when its process ended may still come to be defined. */
#define SETTLED_UNTIL_FORGOTTEN 2

/* How often it is looked whether the threads of all processes are due to be named again. */
#define AGAIN_NS 1000000000LL

struct symbolizer {
	struct naming_context shared;
	enum thread_detail threads;
	struct known_process *processes;
	struct known_process **by_index; /* as the profile numbers them; NULL: forgotten */
	size_t index_capacity;
	struct known_process *nameless; /* whose threads' names are looked for */
	int64_t again_ns;		/* when those of all are */
	struct known_process *new_ones; /* that nobody has asked for yet */
	struct ledger forgotten;	/* what the code objects of forgotten processes came to */
};

struct symbolizer *symbolizer__new(struct profile *profile, enum line_detail lines)
{
	struct symbolizer *symbolizer = xcalloc(1, sizeof(*symbolizer));

	symbolizer->shared = (struct naming_context){
		.profile = profile,
		.lines = lines,
		.qualified_names = qualified_names__new(profile),
		.generated = generated_functions__new(),
		.doubts = doubts__new(),
	};
	return symbolizer;
}

void symbolizer__tell_threads_apart(struct symbolizer *symbolizer, enum thread_detail detail)
{
	symbolizer->threads = detail;
}

void symbolizer__use_map(struct symbolizer *symbolizer, const struct target_map *map)
{
	symbolizer->shared.map = map;
}

/* Its threads' names are to be looked for. */
static void want_names(struct symbolizer *symbolizer, struct known_process *process)
{
	if (process->is_nameless)
		return;
	process->is_nameless = true;
	DL_APPEND(symbolizer->nameless, process);
}

static void stop_naming(struct symbolizer *symbolizer, struct known_process *process)
{
	if (!process->is_nameless)
		return;
	process->is_nameless = false;
	DL_DELETE(symbolizer->nameless, process);
}

static void be_old(struct symbolizer *symbolizer, struct known_process *process)
{
	if (process->is_new)
		DL_DELETE2(symbolizer->new_ones, process, new_prev, new_next);
	process->is_new = false;
}

/* What a process's code objects came to is kept. */
static void forget_process(struct symbolizer *symbolizer, struct known_process *process)
{
	if (process->begun)
		code_table__account(process->codes, &symbolizer->forgotten);
	if (process->entered)
		symbolizer->by_index[process->process] = NULL;
	stop_naming(symbolizer, process);
	be_old(symbolizer, process);
	HASH_DEL(symbolizer->processes, process);
	known_process__free(process);
}

void symbolizer__free(struct symbolizer *symbolizer)
{
	struct known_process *process, *next;

	if (!symbolizer)
		return;
	symbolizer__settle(symbolizer);
	HASH_ITER (hh, symbolizer->processes, process, next)
		forget_process(symbolizer, process);
	qualified_names__free(symbolizer->shared.qualified_names);
	generated_functions__free(symbolizer->shared.generated);
	doubts__free(symbolizer->shared.doubts);
	free(symbolizer->by_index);
	free(symbolizer);
}

static struct known_process *find_process(const struct symbolizer *symbolizer, uint64_t serial)
{
	struct known_process *process;

	HASH_FIND(hh, symbolizer->processes, &serial, sizeof(serial), process);
	return process;
}

bool symbolizer__knows(const struct symbolizer *symbolizer, const struct target_process *target)
{
	const struct known_process *process = find_process(symbolizer, target->key.serial);

	return process && process->target == target && !process->ended;
}

void symbolizer__add_target(struct symbolizer *symbolizer, struct target_process *target)
{
	struct known_process *process;

	if (symbolizer__knows(symbolizer, target))
		return;
	process = known_process__new(&symbolizer->shared, target);
	HASH_ADD(hh, symbolizer->processes, serial, sizeof(process->serial), process);
}

/* Most of those that live shortly are never sampled, and cost next to nothing. */
static void begin_process(struct symbolizer *symbolizer, struct known_process *process)
{
	struct known_process *parent = NULL;

	if (process->target->parent)
		parent = find_process(symbolizer, process->target->parent);
	known_process__begin(process, parent);
	process->is_new = process->has_news = true;
	DL_APPEND2(symbolizer->new_ones, process, new_prev, new_next);
}

/* Something of it was sampled: it is to be in the profile. */
static void enter_process(struct symbolizer *symbolizer, struct known_process *process)
{
	if (process->entered)
		return;
	if (!process->begun)
		begin_process(symbolizer, process);
	known_process__enter(process);
	symbolizer->by_index = xgrow(symbolizer->by_index, &symbolizer->index_capacity,
				     process->process + 1, sizeof(*symbolizer->by_index));
	symbolizer->by_index[process->process] = process;
}

bool symbolizer__take_new(struct symbolizer *symbolizer, uint64_t *serial)
{
	struct known_process *process = symbolizer->new_ones;

	if (!process)
		return false;
	*serial = process->serial;
	be_old(symbolizer, process);
	return true;
}

bool symbolizer__take_news(struct symbolizer *symbolizer, const struct target_process *target)
{
	struct known_process *process = find_process(symbolizer, target->key.serial);
	bool had_news = process && process->has_news;

	if (had_news)
		process->has_news = false;
	return had_news;
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

	if (process->entered)
		target__describe(target, symbolizer->shared.profile, process->process);
}

static uint32_t reason_location(struct symbolizer *symbolizer, enum outcome outcome)
{
	struct profile_function function = {
		.kind = FRAME_REASON,
		.name = profile__string(symbolizer->shared.profile, outcome__text(outcome)),
	};

	return profile__location(symbolizer->shared.profile,
				 profile__function(symbolizer->shared.profile, &function),
				 LINE_NONE);
}

static uint32_t add_thread(struct symbolizer *symbolizer, struct known_process *process,
			   const struct definition *definition)
{
	struct profile *profile = symbolizer->shared.profile;
	char name[sizeof(definition->thread_name) + 1] = { 0 };
	bool merged;
	/* The first one's TID is the process's number: no other one gets it. */
	const struct profile_thread seen = {
		.process = process->process,
		.tid = definition->tid,
		.start = definition->tid == definition->tgid ? 0 : definition->thread_start,
	};
	uint32_t thread =
		threads_apart__add(profile, &seen, symbolizer->threads, &process->threads, &merged);

	if (merged || thread_names__see(process->thread_names, definition, thread))
		return thread;
	want_names(symbolizer, process);
	memcpy(name, definition->thread_name, sizeof(definition->thread_name));
	profile->threads[thread].name = profile__string(profile, name);
	return thread;
}

/* Adds FRAME's location to LOCATIONS, unless it is one that Python hides; returns how many. */
static uint32_t add_location(struct symbolizer *symbolizer, struct known_process *process,
			     const struct frame *frame, uint32_t *locations)
{
	if (frame->kind == FRAME_PYTHON)
		return known_process__locate(process, frame, locations);
	if (frame->address)
		target_memory__page_in(process->pid, frame->address);
	*locations = reason_location(symbolizer, frame->detail);
	return 1;
}

void symbolizer__learn(struct symbolizer *symbolizer, const struct code_record *record, size_t size)
{
	struct known_process *process = find_process(symbolizer, record->serial);
	const struct runtime *runtime = process ? &process->target->runtime : NULL;
	struct code code;

	if (!process || code__decode(&runtime->offsets, runtime->code_type, record, size, &code))
		return;
	enter_process(symbolizer, process);
	code_table__learn(process->codes, record->address, record->identity, &code);
}

static void note_root(struct known_process *process, const struct definition *definition)
{
	uint32_t depth = definition->depth;

	if (depth && definition->frames[depth - 1].kind == FRAME_PYTHON)
		code_table__note_root(process->codes, definition->frames[depth - 1].address);
}

bool symbolizer__define(struct symbolizer *symbolizer, const struct definition *definition,
			uint32_t *thread, uint32_t *stack)
{
	uint32_t locations[STACK_FRAMES_MAX], depth = 0;
	struct known_process *process = find_process(symbolizer, definition->serial);

	if (!process || definition->depth > STACK_FRAMES_MAX)
		return false;
	enter_process(symbolizer, process);
	process->has_news = true;
	known_process__update(process);
	if (definition->several)
		known_process__see_several(process);
	for (uint32_t i = 0; i < definition->depth; i++)
		depth += add_location(symbolizer, process, &definition->frames[i],
				      &locations[depth]);
	note_root(process, definition);
	*thread = add_thread(symbolizer, process, definition);
	*stack = known_process__stack(process, locations, depth);
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
			if (process->entered)
				want_names(symbolizer, process);
		symbolizer->again_ns = naming->now_ns + AGAIN_NS;
	}
	naming->first_ns = THREAD_NAMES_NEVER;
	for (process = symbolizer->nameless; process; process = next) {
		int64_t due_ns =
			thread_names__read(process->thread_names, naming->now_ns, processes);

		next = process->next;
		if (due_ns == THREAD_NAMES_NEVER)
			stop_naming(symbolizer, process);
		naming->first_ns = due_ns < naming->first_ns ? due_ns : naming->first_ns;
	}
	qualified_names__read(symbolizer->shared.qualified_names, naming->now_ns);
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
	    !qualified_names__are_all_found(symbolizer->shared.qualified_names))
		deputy__send(read_names, &naming);
	return naming.first_ns;
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
		checking->changed |=
			known_process__check(process, checking->identify, checking->context);
	}
}

bool symbolizer__check(struct symbolizer *symbolizer, symbolizer__identify identify, void *context)
{
	struct checking checking = { symbolizer, identify, context, false };

	deputy__send(check_all, &checking);
	return checking.changed;
}

void symbolizer__see(struct symbolizer *symbolizer, uint32_t thread, uint32_t stack,
		     uint64_t samples)
{
	const struct profile *profile = symbolizer->shared.profile;
	struct known_process *process = symbolizer->by_index[profile->threads[thread].process];

	if (!process)
		return;
	process->sampled = process->has_news = true;
	code_identification__see(&process->identification, profile->stacks[stack].depth, samples);
}

bool symbolizer__doubts(const struct symbolizer *symbolizer, uint32_t thread, uint32_t stack)
{
	const struct profile *profile = symbolizer->shared.profile;
	const struct profile_stack *frames = &profile->stacks[stack];
	uint32_t process = profile->threads[thread].process;
	bool doubted = false;

	for (uint32_t i = 0; i < frames->depth && !doubted; i++)
		doubted = doubts__has(symbolizer->shared.doubts, process,
				      profile->locations[frames->locations[i]].function);
	return doubted;
}

uint32_t symbolizer__reason(struct symbolizer *symbolizer, enum outcome outcome)
{
	uint32_t location = reason_location(symbolizer, outcome);

	return profile__stack(symbolizer->shared.profile, &location, 1);
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
	doubts__end(symbolizer->shared.doubts);
	forget_ended(symbolizer);
}

void symbolizer__end_target(struct symbolizer *symbolizer, struct target_process *target)
{
	bool is_known = symbolizer__knows(symbolizer, target);

	target->ended = true;
	if (is_known)
		known_process__end(find_process(symbolizer, target->key.serial), target);
	else
		target__free(target);
}

uint32_t symbolizer__first_thread(struct symbolizer *symbolizer,
				  const struct target_process *target)
{
	struct known_process *process = find_process(symbolizer, target->key.serial);
	struct profile_thread first = { .tid = process->pid };

	enter_process(symbolizer, process);
	first.process = process->process;
	return threads_apart__add(symbolizer->shared.profile, &first, symbolizer->threads,
				  &process->threads, &(bool){ false });
}

void symbolizer__begin_anew(struct symbolizer *symbolizer)
{
	struct known_process *process;

	symbolizer->shared.stack_bytes = 0;
	for (size_t i = 0; i < symbolizer->index_capacity; i++)
		symbolizer->by_index[i] = NULL;
	for (process = symbolizer->processes; process; process = process->hh.next) {
		if (!process->begun)
			continue;
		stop_naming(symbolizer, process);
		known_process__begin_anew(process);
	}
	qualified_names__begin_anew(symbolizer->shared.qualified_names);
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
