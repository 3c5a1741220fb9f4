// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "python/interpreters.h"
#include "reading/reader.h"
#include "reading/target_memory.h"
#include "sampling/thread_states.h"

/* A state takes a system call of about a microsecond: they may take a hundredth of the time. */
#define PAUSE_A_STATE_NS 100000LL
#define PAUSE_NS_MIN	 100000000LL

struct thread_states {
	struct sampler *sampler;
	uint64_t missed; /* samples with the outcome TOO_MANY_THREADS, at the last look */
	int64_t due_ns;
};

struct told {
	uint64_t thread_id, address;
};

/* The states of one process. */
struct list {
	const struct target_process *target;
	struct told *states;
	size_t count, capacity;
};

struct thread_states *thread_states__new(struct sampler *sampler)
{
	struct thread_states *states = xcalloc(1, sizeof(*states));

	states->sampler = sampler;
	states->missed = UINT64_MAX;
	return states;
}

void thread_states__free(struct thread_states *states)
{
	free(states);
}

static uint64_t word_at(const uint8_t *bytes, uint16_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

static void list_states_of(pid_t pid, const struct layout *layout, uint64_t interpreter,
			   struct list *list)
{
	uint8_t bytes[THREAD_STATE_BYTES];
	uint64_t address = 0;

	target_memory__read_pointer(pid, interpreter + layout->interp_tstate_head, &address);
	while (address && list->count < TOLD_STATES_MAX &&
	       !target_memory__read(pid, address, bytes, layout->tstate_bytes)) {
		list->states = xgrow(list->states, &list->capacity, list->count + 1,
				     sizeof(*list->states));
		list->states[list->count++] =
			(struct told){ word_at(bytes, layout->tstate_thread_id), address };
		address = word_at(bytes, layout->tstate_next);
	}
}

/* Fills the list CONTEXT.  It runs as one errand: one errand for each read would take longer. */
static void list_states(void *context)
{
	struct list *list = context;
	const struct runtime *runtime = &list->target->runtime;
	struct interpreters all;
	pid_t pid = list->target->process.pid;

	list->count = 0;
	interpreters__read(pid, &runtime->offsets, runtime->interpreters, &all);
	for (size_t i = 0; i < all.count; i++)
		list_states_of(pid, &runtime->layout, all.addresses[i], list);
}

/* 0; -E2BIG where there is no room for all states. */
static int tell(struct target_map *map, pid_t kernel_pid, const struct list *list)
{
	int error = 0;

	for (size_t i = 0; i < list->count && !error; i++)
		error = target_map__tell_state(map, kernel_pid, list->states[i].thread_id,
					       list->states[i].address);
	return error;
}

bool thread_states__are_due(const struct thread_states *states, int64_t now)
{
	return now >= states->due_ns &&
	       sampler__outcomes(states->sampler, 0, OUTCOME_TOO_MANY_THREADS) != states->missed;
}

void thread_states__look(struct thread_states *states, struct target_process *const *targets,
			 size_t count, int64_t now)
{
	struct target_map *map = sampler__targets(states->sampler);
	struct list list = { 0 };
	size_t seen = 0;

	states->missed = sampler__outcomes(states->sampler, 0, OUTCOME_TOO_MANY_THREADS);
	for (size_t i = 0; i < count; i++) {
		const struct target_process *target = targets[i];

		/* BPF uses no such hints in a forked process of 2.7 (bpf/thread.bpf.h). */
		if (target->runtime.layout.tstate_gilstate_counter != OFFSET_ABSENT)
			continue;
		list.target = target;
		reader__send(list_states, &list);
		seen += list.count;
		if (list.count <= THREAD_STATES_MAX || !tell(map, target->key.kernel_pid, &list))
			continue;
		/* The map also has the states of threads that have ended. */
		target_map__forget_states(map);
		if (tell(map, target->key.kernel_pid, &list))
			log__debug("process %d has too many threads to find each",
				   target->process.pid);
	}
	states->due_ns = now + PAUSE_NS_MIN + seen * PAUSE_A_STATE_NS;
	free(list.states);
}
