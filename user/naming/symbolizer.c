// SPDX-License-Identifier: BSD-2-Clause
/*
 * Addresses are turned into names by the table of each process's code objects (code_table.c).  A
 * stack is known by the addresses of its code objects.  If one of them is replaced, and BPF did not
 * identify code objects in each sample, samples of both may have been counted under one stack since
 * the last check that saw the old one.  So the functions of replaced code objects are in doubt:
 * samples of them since that check get no name.  After that, BPF identifies the process's code
 * objects in each sample until none was replaced for a while.  It also does so from a process's
 * first sample on, so that code which runs once at the start gets its name.  If that would cost too
 * much, all stacks are defined anew after each replacement, and what is at the address stays in
 * doubt for a while (code_table__next_reused).
 *
 * Two code objects that take turns at an address, at the same place of a stack, may be seen as the
 * first one at both checks.  So BPF always identifies code objects if rate and depth allow it
 * (code_identification.c), at least by their own words.  Words tell two code objects apart unless
 * all their parts have the same addresses.  Beyond that, both have one name until a check notices.
 * From 3.14 on, the interpreters count the code objects that they free: one read of each per check
 * notices that some may have been replaced.
 *
 * Code that cannot be read any more is shown without a name.
 */
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/xalloc.h"
#include "naming/frames.h"
#include "naming/process_symbols.h"
#include "naming/symbolizer.h"
#include "python/lines.h"
#include "reading/reader.h"

/* After its process ended, a sample may still be on its way. */
#define SETTLED_UNTIL_FORGOTTEN 2

/* How often all processes' threads are considered for new names. */
#define AGAIN_NS 1000000000LL

/* No thread has this number. */
#define FURTHER_TID  0
#define FURTHER_TEXT "[other threads]"

struct symbolizer {
	struct naming_context shared;
	struct process_symbols *processes;
	struct process_symbols *nameless; /* with threads whose names are looked for */
	int64_t again_ns;		  /* when all processes are considered */
	struct process_symbols *new_ones; /* for symbolizer__take_new */
	struct ledger forgotten;	  /* counts of code objects of forgotten processes */
};

struct symbolizer *symbolizer__new(struct profile *profile,
				   const struct symbolizer_options *options)
{
	struct symbolizer *symbolizer = xcalloc(1, sizeof(*symbolizer));

	symbolizer->shared = (struct naming_context){
		.profile = profile,
		.options = options,
		.qualified_names = qualified_names__new(profile),
	};
	return symbolizer;
}

/* Makes BPF walk its native frames. */
static void unwind_process(const struct symbolizer *symbolizer,
			   const struct process_symbols *process)
{
	const struct symbolizer_options *options = symbolizer->shared.options;
	const struct runtime *runtime = &process->target->runtime;

	if (options->unwinder && !process->target->ended)
		unwinder__add(options->unwinder, process->serial, process->pid,
			      runtime->code_type ?: runtime->interpreters, process->target->parent,
			      options->early);
}

/* Adds it to the list of NAMELESS. */
static void want_names(struct symbolizer *symbolizer, struct process_symbols *process)
{
	if (process->is_nameless)
		return;
	process->is_nameless = true;
	DL_APPEND(symbolizer->nameless, process);
}

static void stop_naming(struct symbolizer *symbolizer, struct process_symbols *process)
{
	if (!process->is_nameless)
		return;
	process->is_nameless = false;
	DL_DELETE(symbolizer->nameless, process);
}

static void be_old(struct symbolizer *symbolizer, struct process_symbols *process)
{
	if (process->is_new)
		DL_DELETE2(symbolizer->new_ones, process, new_prev, new_next);
	process->is_new = false;
}

/* Keeps the counts of its code objects. */
static void forget_process(struct symbolizer *symbolizer, struct process_symbols *process)
{
	if (process->begun)
		code_table__account(process->codes, &symbolizer->forgotten);
	stop_naming(symbolizer, process);
	be_old(symbolizer, process);
	if (symbolizer->shared.options->unwinder)
		unwinder__forget(symbolizer->shared.options->unwinder, process->serial);
	HASH_DEL(symbolizer->processes, process);
	process_symbols__free(process);
}

void symbolizer__free(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	while (symbolizer->processes)
		forget_process(symbolizer, symbolizer->processes);
	qualified_names__free(symbolizer->shared.qualified_names);
	frames__begin_anew(&symbolizer->shared);
	free(symbolizer);
}

static struct process_symbols *find_process(const struct symbolizer *symbolizer, uint64_t serial)
{
	return HASH_GET(hh, symbolizer->processes, &serial);
}

bool symbolizer__knows(const struct symbolizer *symbolizer, const struct target_process *target)
{
	const struct process_symbols *process = find_process(symbolizer, target->key.serial);

	return process && process->target == target && !target->ended;
}

void symbolizer__add_target(struct symbolizer *symbolizer, struct target_process *target)
{
	struct process_symbols *process;

	if (symbolizer__knows(symbolizer, target))
		return;
	process = process_symbols__new(&symbolizer->shared, target);
	HASH_ADD(hh, symbolizer->processes, serial, sizeof(process->serial), process);
	if (symbolizer->shared.options->early)
		unwind_process(symbolizer, process);
}

/* This is not done before: most short-lived processes are never sampled, and cost next to
 * nothing. */
static void begin_process(struct symbolizer *symbolizer, struct process_symbols *process)
{
	struct process_symbols *parent = NULL;

	if (process->target->parent)
		parent = find_process(symbolizer, process->target->parent);
	process_symbols__begin(process, parent);
	unwind_process(symbolizer, process);
	process->is_new = process->has_news = true;
	DL_APPEND2(symbolizer->new_ones, process, new_prev, new_next);
}

/* Adds it to the profile, with its first sample. */
static void enter_process(struct symbolizer *symbolizer, struct process_symbols *process)
{
	if (process->entered)
		return;
	if (!process->begun)
		begin_process(symbolizer, process);
	process_symbols__enter(process);
}

bool symbolizer__take_new(struct symbolizer *symbolizer, uint64_t *serial)
{
	struct process_symbols *process = symbolizer->new_ones;

	if (!process)
		return false;
	*serial = process->serial;
	be_old(symbolizer, process);
	return true;
}

bool symbolizer__take_news(struct symbolizer *symbolizer, const struct target_process *target)
{
	struct process_symbols *process = find_process(symbolizer, target->key.serial);

	if (!process || !process->has_news)
		return false;
	process->has_news = false;
	return true;
}

bool symbolizer__has_sampled(const struct symbolizer *symbolizer,
			     const struct target_process *target)
{
	const struct process_symbols *process = find_process(symbolizer, target->key.serial);

	return process && process->begun;
}

void symbolizer__describe(struct symbolizer *symbolizer, const struct target_process *target)
{
	const struct process_symbols *process = find_process(symbolizer, target->key.serial);

	if (process->entered)
		target__describe(target, symbolizer->shared.profile, process->process);
}

/* The number of a thread of PROCESS in the profile.  A sampled thread stays in the profile with
 * each of its stacks, and a server may begin one per request.  So threads beyond THREADS_APART are
 * one.  *MERGED: the number stands for several threads, and needs no name. */
static uint32_t find_thread(struct symbolizer *symbolizer, struct process_symbols *process,
			    uint32_t tid, uint64_t start, bool *merged)
{
	struct profile *profile = symbolizer->shared.profile;
	size_t before = profile->thread_count;
	uint32_t thread;

	*merged = symbolizer->shared.options->threads == THREADS_MERGED;
	if (*merged)
		return profile__thread(profile, process->process, process->pid, 0);
	*merged = symbolizer->shared.options->threads == THREADS_SOME &&
		  process->threads >= THREADS_APART &&
		  !profile__has_thread(profile, process->process, tid, start);
	thread = *merged ? profile__thread(profile, process->process, FURTHER_TID, 0)
			 : profile__thread(profile, process->process, tid, start);
	if (*merged)
		profile->threads[thread].name = profile__string(profile, FURTHER_TEXT);
	else
		process->threads += profile->thread_count - before;
	return thread;
}

static uint32_t add_thread(struct symbolizer *symbolizer, struct process_symbols *process,
			   const struct definition *definition)
{
	struct profile *profile = symbolizer->shared.profile;
	char name[sizeof(definition->thread_name) + 1] = { 0 };
	bool merged;
	/* Only the first thread ever has the process's number. */
	uint64_t start = definition->tid == definition->tgid ? 0 : definition->thread_start;
	uint32_t thread = find_thread(symbolizer, process, definition->tid, start, &merged);

	if (merged || thread_names__see(process->thread_names, definition, thread))
		return thread;
	want_names(symbolizer, process);
	memcpy(name, definition->thread_name, sizeof(definition->thread_name));
	profile->threads[thread].name = profile__string(profile, name);
	return thread;
}

void symbolizer__learn(struct symbolizer *symbolizer, const struct code_record *record, size_t size)
{
	struct process_symbols *process = find_process(symbolizer, record->serial);

	if (!process)
		return;
	if (!process->begun)
		begin_process(symbolizer, process);
	process_symbols__learn(process, record, size);
}

static void note_root(struct process_symbols *process, const struct definition *definition)
{
	uint32_t depth = definition->depth;

	if (depth && definition->frames[depth - 1].kind == FRAME_PYTHON)
		code_table__note_root(process->codes, definition->frames[depth - 1].address);
}

/* Orders the rows that the native walk lacked. */
static void note_native(const struct symbolizer *symbolizer, const struct definition *definition)
{
	if (symbolizer->shared.options->unwinder && definition->lacks_rows)
		unwinder__want(symbolizer->shared.options->unwinder, definition->serial,
			       definition->lacks_rows);
}

bool symbolizer__define(struct symbolizer *symbolizer, const struct definition *definition,
			uint32_t *thread, uint32_t *stack)
{
	uint32_t locations[STACK_DEPTH_MAX], depth;
	struct process_symbols *process = find_process(symbolizer, definition->serial);

	if (!process || !frames__are_sound(definition))
		return false;
	enter_process(symbolizer, process);
	process->has_news = true;
	process_symbols__update(process, definition);
	depth = frames__locate(process, definition, locations);
	note_native(symbolizer, definition);
	note_root(process, definition);
	*thread = add_thread(symbolizer, process, definition);
	*stack = process_symbols__stack(process, locations, depth);
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
	struct process_symbols *process, *next;

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
	const struct process_symbols *process;

	for (process = symbolizer->nameless; process; process = process->next) {
		int64_t due_ns = thread_names__due(process->thread_names);

		naming.first_ns = due_ns < naming.first_ns ? due_ns : naming.first_ns;
	}
	if (now_ns >= naming.first_ns || now_ns >= symbolizer->again_ns ||
	    !qualified_names__are_all_found(symbolizer->shared.qualified_names))
		reader__send(read_names, &naming);
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
	struct process_symbols *process, *next;

	HASH_ITER (hh, checking->symbolizer->processes, process, next) {
		/* An ended process cannot be read, and its PID may be reused. */
		if (!process->sampled || process->target->ended)
			continue;
		/* First, so that a process that does not answer is not tried again. */
		process->sampled = false;
		checking->changed |=
			process_symbols__check(process, checking->identify, checking->context);
	}
}

bool symbolizer__check(struct symbolizer *symbolizer, symbolizer__identify identify, void *context)
{
	struct checking checking = { symbolizer, identify, context, false };

	reader__send(check_all, &checking);
	return unwinder__have_names(symbolizer->shared.options->unwinder) || checking.changed;
}

/* The process of a THREAD of the profile; NULL if it was forgotten. */
static struct process_symbols *process_of(const struct symbolizer *symbolizer, uint32_t thread)
{
	const struct profile *profile = symbolizer->shared.profile;

	return find_process(symbolizer,
			    profile->processes[profile->threads[thread].process].serial);
}

void symbolizer__see(struct symbolizer *symbolizer, uint32_t thread, uint32_t stack, uint32_t event,
		     uint64_t samples)
{
	struct process_symbols *process = process_of(symbolizer, thread);

	if (process)
		process_symbols__see(process, stack, event, samples);
}

bool symbolizer__is_exact(const struct symbolizer *symbolizer, uint32_t thread)
{
	const struct process_symbols *process = process_of(symbolizer, thread);

	return process && code_identification__was_whole(&process->identification);
}

bool symbolizer__is_stale(const struct symbolizer *symbolizer, uint32_t thread, uint32_t stack)
{
	const struct profile *profile = symbolizer->shared.profile;
	const struct profile_stack *frames = &profile->stacks[stack];
	const struct process_symbols *process = process_of(symbolizer, thread);
	bool stale = false;

	for (uint32_t i = 0; process && i < frames->depth && !stale; i++)
		stale = process_symbols__is_stale(
			process, profile->locations[frames->locations[i]].function);
	return stale;
}

uint32_t symbolizer__reason(struct symbolizer *symbolizer, enum outcome outcome)
{
	uint32_t location = frames__reason(symbolizer->shared.profile, outcome);

	return profile__stack(symbolizer->shared.profile, &location, 1);
}

void symbolizer__settle(struct symbolizer *symbolizer)
{
	struct process_symbols *process, *next;

	HASH_ITER (hh, symbolizer->processes, process, next) {
		process_symbols__end_stale(process);
		if (process->target->ended && ++process->settled == SETTLED_UNTIL_FORGOTTEN)
			forget_process(symbolizer, process);
	}
}

void symbolizer__end_target(struct symbolizer *symbolizer, struct target_process *target)
{
	if (symbolizer->shared.options->unwinder)
		unwinder__end(symbolizer->shared.options->unwinder, target->key.serial);
	if (symbolizer__knows(symbolizer, target))
		process_symbols__end(find_process(symbolizer, target->key.serial));
	else
		target__free(target);
}

uint32_t symbolizer__first_thread(struct symbolizer *symbolizer,
				  const struct target_process *target)
{
	struct process_symbols *process = find_process(symbolizer, target->key.serial);

	enter_process(symbolizer, process);
	return find_thread(symbolizer, process, process->pid, 0, &(bool){ false });
}

void symbolizer__begin_anew(struct symbolizer *symbolizer)
{
	struct process_symbols *process;

	symbolizer->shared.stack_bytes = 0;
	for (process = symbolizer->processes; process; process = process->hh.next) {
		if (!process->begun)
			continue;
		stop_naming(symbolizer, process);
		process_symbols__begin_anew(process);
	}
	qualified_names__begin_anew(symbolizer->shared.qualified_names);
	frames__begin_anew(&symbolizer->shared);
}

void symbolizer__account(const struct symbolizer *symbolizer, struct ledger *ledger)
{
	const struct process_symbols *process;

	ledger->code_objects = symbolizer->forgotten.code_objects;
	ledger->unnamed_code_objects = symbolizer->forgotten.unnamed_code_objects;
	ledger->unwind_bytes = unwinder__bytes(symbolizer->shared.options->unwinder);
	for (process = symbolizer->processes; process; process = process->hh.next)
		if (process->begun)
			code_table__account(process->codes, ledger);
}
