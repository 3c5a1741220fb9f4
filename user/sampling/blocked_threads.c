// SPDX-License-Identifier: BSD-2-Clause
/*
 * BPF walks a thread when it is switched out.  A thread that slept before has no stack there until
 * it wakes and waits again, which it may never do.  So user space walks it, from outside.
 *
 * That is sound only while the thread does not run.  The kernel lists it with the number of its
 * switches, then it is walked and entered among the waits, and then it is listed again.  With the
 * same number it has not run in between, and its stack counts.  Otherwise the wait is withdrawn:
 * the thread has been seen at a switch, or will be.
 *
 * A thread that was switched out since BPF began to sample it has an entry among the waits.  So one
 * without an entry has waited from then on.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "reading/reader.h"
#include "sampling/blocked_list.h"
#include "sampling/blocked_threads.h"
#include "sampling/outside_walker.h"

#define NS_PER_MS 1000000LL

/* How long threads are walked at a time, and the pause between two lists: longer where the machine
 * has many threads. */
#define SLICE_NS	 (2 * NS_PER_MS)
#define PAUSE_NS	 (100 * NS_PER_MS)
#define LIST_REST_FACTOR 10

/* A thread that was walked. */
struct walked {
	const struct blocked_thread *thread;
	uint64_t hash;
	enum outcome outcome;
	size_t begin, end; /* of its records */
	uint32_t slot;
	bool entered;
};

struct blocked_threads {
	struct blocked_list *list;
	struct slots *slots;
	struct event_counters *counted;
	uint64_t puts; /* when the threads were listed last */
	int64_t since, due;
	int64_t next_list; /* not before */
	bool begun;

	/* The threads that were listed; NEXT is to be walked. */
	struct blocked_thread *threads;
	size_t count, capacity, next;
	size_t unproved; /* that ran before they could be counted */

	/* The process that is walked. */
	uint64_t serial;
	uint64_t missed; /* of the calls for it (reader.h) */

	/* Threads that were walked and not counted yet. */
	struct walked *walked;
	size_t walked_count, walked_capacity;
	struct outside_walk walk;

	/* The threads that were entered and are listed again. */
	struct blocked_thread *waiting;
	size_t waiting_capacity;
};

struct blocked_threads *blocked_threads__new(struct pybpfprof_bpf *bpf, uint32_t cpus,
					     struct slots *slots, struct event_counters *counted)
{
	struct blocked_threads *blocked;
	struct blocked_list *list;
	int error = blocked_list__open(bpf, cpus, &list);

	if (error) {
		log__warning("threads that wait already are shown once they have run: the kernel "
			     "does not list them (%s)",
			     strerror(-error));
		return NULL;
	}
	blocked = xcalloc(1, sizeof(*blocked));
	blocked->list = list;
	outside_walker__forget_codes();
	blocked->slots = slots;
	blocked->counted = counted;
	blocked->due = INT64_MAX;
	return blocked;
}

void blocked_threads__free(struct blocked_threads *blocked)
{
	if (!blocked)
		return;
	blocked_list__close(blocked->list);
	free(blocked->threads);
	free(blocked->walked);
	free(blocked->walk.records);
	free(blocked->waiting);
	free(blocked);
}

void blocked_threads__begin(struct blocked_threads *blocked, int64_t since)
{
	if (!blocked)
		return;
	blocked->begun = true;
	blocked->since = blocked->due = since;
	blocked->puts = UINT64_MAX;
}

/* Turns to the process of THREAD; returns whether it can be walked. */
static bool enter_process(struct blocked_threads *blocked, const struct blocked_thread *thread)
{
	struct outside_settings settings;
	struct target target;
	struct layout layout;

	if (thread->serial == blocked->serial)
		return reader__missed(thread->tgid) == blocked->missed;
	if (!blocked_list__describe(blocked->list, thread, &target, &layout, &settings))
		return false;
	outside_walker__begin(&settings, thread->tgid, &target, &layout);
	blocked->serial = thread->serial;
	blocked->missed = reader__missed(thread->tgid);
	return true;
}

/* Walks threads for a while, as one errand.  If a process does not answer, the errand is begun
 * anew, with the thread that it was at. */
static void walk_some(void *context)
{
	struct blocked_threads *blocked = context;
	int64_t end = now_ns() + SLICE_NS;

	for (; blocked->next < blocked->count && now_ns() < end; blocked->next++) {
		const struct blocked_thread *thread = &blocked->threads[blocked->next];
		size_t count = blocked->walked_count;
		size_t begin = count ? blocked->walked[count - 1].end : 0;

		blocked->walk.bytes = begin;
		if (!enter_process(blocked, thread) ||
		    !outside_walker__walk(thread, &blocked->walk) ||
		    reader__missed(thread->tgid) != blocked->missed)
			continue;
		blocked->walked = xgrow(blocked->walked, &blocked->walked_capacity, count + 1,
					sizeof(*blocked->walked));
		blocked->walked[blocked->walked_count++] =
			(struct walked){ .thread = thread,
					 .hash = blocked->walk.hash,
					 .outcome = blocked->walk.outcome,
					 .begin = begin,
					 .end = blocked->walk.bytes };
	}
}

static int compare_threads(const void *left, const void *right)
{
	const struct blocked_thread *a = left, *b = right;

	return (a->kernel_tid > b->kernel_tid) - (a->kernel_tid < b->kernel_tid);
}

/* Whether THREAD is among the COUNT threads that are listed again, and has not run meanwhile. */
static bool has_slept(const struct blocked_threads *blocked, size_t count,
		      const struct blocked_thread *thread)
{
	const struct blocked_thread *now =
		bsearch(thread, blocked->waiting, count, sizeof(*thread), compare_threads);

	return now && now->start_time == thread->start_time && now->switches == thread->switches &&
	       now->state == thread->state;
}

/* Hands over the records of WALKED, whose definition is the last one. */
static void count(struct blocked_threads *blocked, const struct walked *walked)
{
	uint8_t *record = blocked->walk.records + walked->begin;
	const uint8_t *end = blocked->walk.records + walked->end;
	struct definition *definition;
	uint64_t size;

	for (; record < end; record += outside_walk__room(size)) {
		memcpy(&size, record, sizeof(size));
		record += sizeof(size);
		definition = (struct definition *)record;
		if (definition->kind == RECORD_DEFINITION) {
			definition->tgid = walked->thread->tgid;
			definition->tid = walked->thread->tid;
			blocked_list__count(blocked->list, walked->slot, definition);
			blocked->counted->events++;
			blocked->counted->outcomes[walked->outcome]++;
		}
		slots__take(blocked->slots, record, size);
	}
}

/* Enters the threads that were walked, and counts those that are proved to have slept. */
static void settle(struct blocked_threads *blocked)
{
	size_t unproved = blocked->unproved;
	ssize_t waiting;

	for (size_t i = 0; i < blocked->walked_count; i++) {
		struct walked *walked = &blocked->walked[i];

		walked->entered = blocked_list__enter(blocked->list, walked->thread, blocked->since,
						      walked->hash, &walked->slot);
	}
	waiting = blocked_list__read(blocked->list, true, &blocked->waiting,
				     &blocked->waiting_capacity);
	if (waiting > 0)
		qsort(blocked->waiting, waiting, sizeof(*blocked->waiting), compare_threads);
	for (size_t i = 0; i < blocked->walked_count; i++) {
		const struct walked *walked = &blocked->walked[i];

		if (walked->entered && waiting > 0 && has_slept(blocked, waiting, walked->thread)) {
			count(blocked, walked);
			continue;
		}
		if (walked->entered)
			blocked_list__withdraw(blocked->list, walked->thread, walked->slot);
		blocked->unproved++;
	}
	/* Their copies of code were not taken. */
	if (blocked->unproved != unproved)
		outside_walker__forget_codes();
	blocked->walked_count = 0;
}

static void list(struct blocked_threads *blocked, uint64_t puts, int64_t now)
{
	int64_t begin = now_ns(), rest;
	ssize_t count =
		blocked_list__read(blocked->list, false, &blocked->threads, &blocked->capacity);

	/* Later targets are sampled since they were put, a moment ago. */
	if (blocked->puts != UINT64_MAX)
		blocked->since = now;
	blocked->puts = puts;
	blocked->count = count > 0 ? count : 0;
	blocked->next = 0;
	blocked->unproved = 0;
	blocked->serial = 0;
	rest = LIST_REST_FACTOR * (now_ns() - begin);
	blocked->next_list = now + (rest > PAUSE_NS ? rest : PAUSE_NS);
}

void blocked_threads__work(struct blocked_threads *blocked, uint64_t puts, int64_t now)
{
	if (!blocked || !blocked->begun)
		return;
	if (blocked->next == blocked->count) {
		blocked->due = puts == blocked->puts || blocked_list__is_full(blocked->list)
				       ? INT64_MAX
				       : blocked->next_list;
		if (blocked->due > now)
			return;
		list(blocked, puts, now);
	}
	if (blocked->next < blocked->count) {
		reader__send(walk_some, blocked);
		settle(blocked);
	}
	blocked->due = now_ns();
	if (blocked->next < blocked->count)
		return;
	blocked->due = INT64_MAX;
	log__debug("%zu threads waited already; %zu of them ran before they were counted",
		   blocked->count, blocked->unproved);
}

int64_t blocked_threads__due(const struct blocked_threads *blocked)
{
	return blocked ? blocked->due : INT64_MAX;
}
