// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel has 15 characters of a thread's name, and before 3.14 Python does not set it.  The
 * name is an attribute of the Thread object.  A dict of the module threading has all living
 * threads:
 *
 *	interpreter -> modules["threading"]._active[ident]._name
 *
 * The ident is pthread_self(), which is the thread pointer, and each sample has it.  But it is an
 * address, and the next thread may get it as soon as this one has ended.  So the Thread object must
 * also have the thread's TID, as it does from 3.8 on.  Before that, the thread must still live
 * after its name was read.
 *
 * The process runs on meanwhile, and freed memory may be reused.  So a Thread object is read twice,
 * and taken only if both reads agree.  In all other cases the thread keeps its name from the
 * kernel.
 *
 * A thread is looked for with the first stack that is seen of it.  That is often before it is in
 * the dict, as it may wait for the GIL for any time.  So a thread that was not found is looked for
 * again, soon at first, then each time that it is half as old again: a thread that Python does not
 * know is looked for only a few times.  A program may rename its threads, and the last name counts.
 * So all names are read again one second after a thread came, then after twice that time and so on,
 * then now and then, and at the end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "naming/thread_names.h"
#include "python/dict.h"
#include "python/interpreters.h"
#include "python/object.h"
#include "reading/reader.h"
#include "reading/process.h"
#include "reading/target_memory.h"

/* Thread._native_id. */
#define NATIVE_ID_SINCE 0x03080000

/* All names are read again SOON_NS after a new thread came, and at last every AGAIN_NS; less often
 * if there are many threads. */
#define SOON_NS		  1000000000LL
#define AGAIN_NS	  10000000000LL
#define AGAIN_NS_A_THREAD 50000000LL

/* The shortest time before a thread that was not found is looked for again. */
#define RETRY_NS 2000000LL

/* A search reads the idents of all living threads, in up to 0.5 us each.  So this pause gives it a
 * twentieth of the time. */
#define REST_NS_A_THREAD 10000LL

/* Limits the names that are read of one process.  After that, its threads keep their names. */
#define NAMES_BYTES_MAX (64 * 1024 * 1024)

/* How often new interpreters are looked for, while a thread is not found. */
#define ACTIVES_NS 500000000LL

/* A sampled thread; the last one that had this ident. */
struct sampled_thread {
	uint64_t ident; /* key */
	pid_t tid;
	uint32_t thread;  /* in the profile */
	int64_t since_ns; /* the first search that did not find it; 0 if there was none */
	int64_t due_ns;	  /* the next search; THREAD_NAMES_NEVER if it was found */
	bool wanted;	  /* by this search */
	UT_hash_handle hh;
};

struct thread_names {
	struct profile *profile;
	const struct target_process *target;
	struct sampled_thread *threads;
	bool nested;	    /* the process is in another PID namespace */
	int64_t due_ns;	    /* the first search of any thread */
	int64_t rested_ns;  /* no search before that */
	int64_t pause_ns;   /* before the last reading of all names; 0 if a thread came since */
	int64_t again_ns;   /* the next reading of all names */
	int64_t actives_ns; /* the next search for interpreters */
	size_t names_bytes; /* of names that were read and not known */
	/* The dicts of living threads, one per interpreter. */
	uint64_t actives[INTERPRETERS_MAX];
	size_t active_count;
};

struct thread_names *thread_names__new(struct profile *profile, const struct target_process *target,
				       const struct thread_names *parent)
{
	struct thread_names *names = xcalloc(1, sizeof(*names));

	if (parent)
		*names = *parent;
	else
		names->nested = process__inner_tid(target->process.pid, target->process.pid) !=
				target->process.pid;
	names->profile = profile;
	names->target = target;
	names->threads = NULL;
	names->due_ns = THREAD_NAMES_NEVER;
	names->rested_ns = 0;
	names->names_bytes = 0;
	return names;
}

void thread_names__forget_threads(struct thread_names *names)
{
	HASH_EMPTY(names->threads, free);
	names->due_ns = THREAD_NAMES_NEVER;
	names->names_bytes = 0;
}

void thread_names__free(struct thread_names *names)
{
	if (!names)
		return;
	thread_names__forget_threads(names);
	free(names);
}

static struct sampled_thread *find_thread(const struct thread_names *names, uint64_t ident)
{
	return HASH_GET(hh, names->threads, &ident);
}

bool thread_names__see(struct thread_names *names, const struct definition *definition,
		       uint32_t thread)
{
	uint64_t ident = definition->thread_id;
	struct profile_thread *entry = &names->profile->threads[thread];
	struct sampled_thread *known = find_thread(names, ident);

	/* A thread that is ending has no ident. */
	if (!ident)
		return entry->named;
	if (!known) {
		known = xcalloc(1, sizeof(*known));
		known->ident = ident;
		HASH_ADD(hh, names->threads, ident, sizeof(known->ident), known);
	} else if (known->thread == thread) {
		return entry->named;
	}
	known->tid = definition->tid;
	known->thread = thread;
	known->since_ns = known->due_ns = 0;
	entry->named = false;
	names->due_ns = 0;
	names->pause_ns = 0;
	return false;
}

/* The dict of an interpreter's living threads; 0 if it has not imported threading. */
static uint64_t find_active(struct object_reader *reader, uint64_t interpreter)
{
	uint64_t modules, threading = 0, active = 0, key = 0;
	struct dict dict;

	if (target_memory__read_pointer(reader->pid, interpreter + reader->offsets->interp_modules,
					&modules))
		return 0;
	if (!dict__read(reader, modules, &dict))
		threading = dict__find(reader, &dict, "threading", &key);
	dict__free(&dict);
	if (threading && !dict__read_attributes(reader, threading, &dict))
		active = dict__find(reader, &dict, "_active", &key);
	dict__free(&dict);
	return active;
}

static void find_actives(struct thread_names *names, struct object_reader *reader)
{
	struct interpreters all;

	interpreters__read(reader->pid, reader->offsets, names->target->runtime.interpreters, &all);
	names->active_count = 0;
	for (size_t i = 0; i < all.count; i++) {
		names->actives[names->active_count] = find_active(reader, all.addresses[i]);
		if (names->actives[names->active_count])
			names->active_count++;
	}
}

/* Attributes of a Thread object, and their names in 2.7 and in later versions. */
enum attribute { IDENT, NATIVE_ID, NAME, ATTRIBUTES };
static const char *const names_2[] = { "_Thread__ident", NULL, "_Thread__name" };
static const char *const names_3[] = { "_ident", "_native_id", "_name" };

struct attributes {
	uint64_t ident;
	uint64_t native_id; /* 0 if there is none */
	char *name;	    /* NULL if not readable */
};

/* Reads Thread objects, one after another. */
struct thread_reader {
	struct object_reader objects;
	uint64_t keys[ATTRIBUTES]; /* of the Thread object before */
};

static bool has_attribute(const struct thread_reader *reader, enum attribute attribute)
{
	return attribute != NATIVE_ID || reader->objects.offsets->version >= NATIVE_ID_SINCE;
}

static struct attributes read_attributes(struct thread_reader *reader, uint64_t address)
{
	struct object_reader *objects = &reader->objects;
	const char *const *names = objects->offsets->version >> 24 == 2 ? names_2 : names_3;
	uint64_t addresses[ATTRIBUTES] = { 0 }, ints[NAME];
	struct attributes attributes = { 0 };
	struct dict dict;

	if (dict__read_attributes(objects, address, &dict))
		return attributes;
	for (enum attribute i = 0; i < ATTRIBUTES; i++)
		if (has_attribute(reader, i))
			addresses[i] = dict__find(objects, &dict, names[i], &reader->keys[i]);
	dict__free(&dict);
	object__ints(objects, addresses, NAME, ints);
	attributes.ident = ints[IDENT];
	attributes.native_id = has_attribute(reader, NATIVE_ID) ? ints[NATIVE_ID] : 0;
	if (addresses[NAME])
		attributes.name = reader__lend(object__text(objects, addresses[NAME]));
	return attributes;
}

static bool are_same(const struct attributes *first, const struct attributes *second)
{
	return first->name && second->name && strcmp(first->name, second->name) == 0 &&
	       first->ident == second->ident && first->native_id == second->native_id;
}

/* Whether ATTRIBUTES are those of the sampled THREAD. */
static bool belongs_to(const struct thread_names *names, const struct sampled_thread *thread,
		       const struct attributes *attributes)
{
	const struct process *process = &names->target->process;
	/* Up to 3.13, the thread that calls os.fork() keeps the parent's number in the child. */
	bool numbered = attributes->native_id && !(process->forked && thread->tid == process->pid);
	pid_t inner_tid;

	if (attributes->ident != thread->ident)
		return false;
	if (numbered && !names->nested)
		return attributes->native_id == (uint64_t)thread->tid;
	inner_tid = process__inner_tid(process->pid, thread->tid);
	return inner_tid && (!numbered || attributes->native_id == (uint64_t)inner_tid);
}

/* Charges NAME to the limit, unless the thread has it already. */
static void spend(struct thread_names *names, const struct profile_thread *entry, const char *name)
{
	if (name && strcmp(name, names->profile->strings[entry->name]) != 0)
		names->names_bytes += strlen(name);
}

static void name_thread(struct thread_names *names, struct thread_reader *reader,
			struct sampled_thread *thread, uint64_t address)
{
	struct profile_thread *entry = &names->profile->threads[thread->thread];
	struct attributes first, second;

	if (names->names_bytes > NAMES_BYTES_MAX)
		return;
	first = read_attributes(reader, address);
	second = read_attributes(reader, address);
	spend(names, entry, first.name);
	if (are_same(&first, &second) && *first.name && belongs_to(names, thread, &first)) {
		entry->name = profile__string(names->profile, first.name);
		entry->named = true;
		thread->due_ns = THREAD_NAMES_NEVER;
		thread->wanted = false;
	}
	free(reader__take_back(first.name));
	free(reader__take_back(second.name));
}

/* Names the wanted threads in the dict at ACTIVE.  Returns how many threads are in it. */
static size_t read_active(struct thread_names *names, struct thread_reader *reader, uint64_t active)
{
	struct sampled_thread *thread;
	struct dict dict;
	uint64_t *idents;
	size_t count;

	if (dict__read(&reader->objects, active, &dict))
		return 0;
	count = dict.count;
	idents = reader__lend(xcalloc(count, sizeof(*idents)));
	object__ints(&reader->objects, dict.keys, count, idents);
	for (size_t i = 0; i < count; i++) {
		thread = find_thread(names, idents[i]);
		if (thread && thread->wanted)
			name_thread(names, reader, thread, dict.values[i]);
	}
	free(reader__take_back(idents));
	dict__free(&dict);
	return count;
}

static void want_threads(struct thread_names *names, int64_t now_ns, bool all)
{
	struct sampled_thread *thread, *next;

	HASH_ITER (hh, names->threads, thread, next)
		thread->wanted = all || now_ns >= thread->due_ns;
}

/* Schedules the next search of the threads that were not found. */
static void put_off_rest(struct thread_names *names, int64_t now_ns)
{
	struct sampled_thread *thread, *next;
	int64_t pause_ns;

	names->due_ns = THREAD_NAMES_NEVER;
	HASH_ITER (hh, names->threads, thread, next) {
		if (thread->wanted && thread->due_ns != THREAD_NAMES_NEVER) {
			if (!thread->since_ns)
				thread->since_ns = now_ns;
			pause_ns = (now_ns - thread->since_ns) / 2;
			thread->due_ns = now_ns + (pause_ns > RETRY_NS ? pause_ns : RETRY_NS);
		}
		if (thread->due_ns < names->due_ns)
			names->due_ns = thread->due_ns;
	}
}

int64_t thread_names__due(const struct thread_names *names)
{
	return names->due_ns > names->rested_ns ? names->due_ns : names->rested_ns;
}

/* Same for the dicts of all interpreters.  The main one, which most threads belong to, comes last,
 * so that its name counts. */
static size_t read_actives(struct thread_names *names, struct thread_reader *reader)
{
	size_t living = 0;

	for (size_t i = names->active_count; i > 0; i--)
		living += read_active(names, reader, names->actives[i - 1]);
	return living;
}

static bool is_any_wanted(const struct thread_names *names)
{
	const struct sampled_thread *thread = names->threads;

	while (thread && !thread->wanted)
		thread = thread->hh.next;
	return thread;
}

/* Schedules the next reading of all names.  It is later if there are many PROCESSES. */
static void put_off_all(struct thread_names *names, int64_t now_ns, size_t processes)
{
	names->pause_ns = names->pause_ns ? 2 * names->pause_ns : SOON_NS;
	if (names->pause_ns > AGAIN_NS)
		names->pause_ns = AGAIN_NS;
	names->again_ns = now_ns + names->pause_ns +
			  AGAIN_NS_A_THREAD * HASH_COUNT(names->threads) * processes;
}

int64_t thread_names__read(struct thread_names *names, int64_t now_ns, size_t processes)
{
	const struct target_process *target = names->target;
	bool all = now_ns == THREAD_NAMES_ALL || now_ns >= names->again_ns;
	struct thread_reader reader = { 0 };
	size_t living = 0;

	if (target->ended || !names->threads)
		return THREAD_NAMES_NEVER;
	if (!all && now_ns < thread_names__due(names))
		return thread_names__due(names);
	want_threads(names, now_ns, all);
	object_reader__init(&reader.objects, target->process.pid, &target->runtime.offsets);
	if (!all)
		living = read_actives(names, &reader);
	if (all || !names->active_count || (now_ns >= names->actives_ns && is_any_wanted(names))) {
		find_actives(names, &reader.objects);
		names->actives_ns = now_ns + ACTIVES_NS;
		living += read_actives(names, &reader);
	}
	put_off_rest(names, now_ns);
	if (all || !names->pause_ns)
		put_off_all(names, now_ns, processes);
	names->rested_ns = now_ns + REST_NS_A_THREAD * living;
	return thread_names__due(names);
}
