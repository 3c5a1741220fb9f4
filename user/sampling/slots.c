// SPDX-License-Identifier: BSD-2-Clause
/*
 * User space maps the kernel's counters, and follows each slot's owners through the definitions.
 * They come in order, and each says what the slot had counted when its stack took it.  What the
 * slot counted from then until the next owner, or until now, belongs to that stack.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "sampling/slots.h"

/* The stack that has a slot, as far as definitions were taken. */
struct owner {
	uint64_t hash; /* 0: none yet */
	uint64_t name;
	uint64_t base;	       /* the slot's count when it took the slot */
	struct amount counted; /* the slot's amount that was handed to the sink */
	enum outcome outcome;
	bool old; /* defined before the last slots__age */
};

struct slots {
	struct sampler_sink sink;
	uint32_t cpus;
	const volatile struct bucket *buckets; /* [cpus * STACK_BUCKETS], the kernel's */
	struct owner *owners;		       /* [cpus * STACK_SLOTS] */
	uint64_t undefined[EVENTS_MAX];
};

struct slots *slots__new(const struct sampler_sink *sink, const volatile struct bucket *buckets,
			 uint32_t cpus)
{
	struct slots *slots = xcalloc(1, sizeof(*slots));

	slots->sink = *sink;
	slots->cpus = cpus;
	slots->buckets = buckets;
	slots->owners = xcalloc((size_t)cpus * STACK_SLOTS, sizeof(*slots->owners));
	return slots;
}

void slots__free(struct slots *slots)
{
	if (!slots)
		return;
	free(slots->owners);
	free(slots);
}

static const volatile struct slot *slot_at(const struct slots *slots, size_t index)
{
	return &slots->buckets[index / SLOTS_PER_BUCKET].slots[index % SLOTS_PER_BUCKET];
}

/* If a sample comes between the two reads, its value is in this amount and its count in the next.
 */
static struct amount slot_amount(const volatile struct slot *slot)
{
	return (struct amount){ __atomic_load_n(&slot->amount.count, __ATOMIC_ACQUIRE),
				__atomic_load_n(&slot->amount.value, __ATOMIC_ACQUIRE) };
}

/* Hands to the sink what the slot counted up to AMOUNT.  Where it has no owner, that is counted as
 * undefined for the event of HASH. */
static void give(struct slots *slots, struct owner *owner, struct amount amount, uint64_t hash)
{
	const struct amount more = { amount.count - owner->counted.count,
				     amount.value - owner->counted.value };

	owner->counted = amount;
	if (!more.count && !more.value)
		return;
	if (owner->hash)
		slots->sink.count(slots->sink.context, owner->name, SLOT_EVENT(owner->hash), more,
				  owner->outcome, owner->old);
	else
		slots->undefined[SLOT_EVENT(hash)] += more.count;
}

static bool is_definition(const struct slots *slots, const struct definition *definition,
			  size_t size)
{
	return size >= DEFINITION_HEADER_BYTES && definition->kind == RECORD_DEFINITION &&
	       definition->cpu < slots->cpus && definition->slot < STACK_SLOTS &&
	       definition->outcome < OUTCOME_COUNT && definition->depth <= STACK_FRAMES_MAX &&
	       definition->native_depth <= NATIVE_FRAMES_MAX &&
	       definition->kernel_depth <= KERNEL_FRAMES_MAX &&
	       size >= DEFINITION_HEADER_BYTES + (definition->depth + definition->native_depth +
						  definition->kernel_depth) *
							 sizeof(struct frame);
}

static bool is_code(const struct code_record *record, size_t size)
{
	return size >= CODE_RECORD_HEADER_BYTES && record->kind == RECORD_CODE;
}

static bool is_process(const struct process_record *record, size_t size)
{
	return size >= PROCESS_RECORD_HEADER_BYTES && record->kind == RECORD_PROCESS &&
	       record->argument_bytes <= ARGUMENT_BYTES_MAX &&
	       size >= PROCESS_RECORD_HEADER_BYTES + record->argument_bytes;
}

void slots__take(struct slots *slots, const void *record, size_t size)
{
	const struct definition *definition = record;
	struct owner *owner;

	if (is_process(record, size))
		slots->sink.note(slots->sink.watcher, record);
	if (is_code(record, size))
		slots->sink.learn(slots->sink.context, record, size);
	if (!is_definition(slots, definition, size))
		return;
	owner = &slots->owners[(size_t)definition->cpu * STACK_SLOTS + definition->slot];
	give(slots, owner, definition->base, definition->hash);
	owner->hash = definition->hash;
	owner->base = definition->base.count;
	owner->outcome = definition->outcome;
	owner->name = slots->sink.define(slots->sink.context, definition);
	owner->old = false;
}

static bool is_owner(const struct owner *owner, const volatile struct slot *slot)
{
	return __atomic_load_n(&slot->hash, __ATOMIC_ACQUIRE) == owner->hash &&
	       __atomic_load_n(&slot->defined, __ATOMIC_ACQUIRE) == owner->base + 1;
}

static void harvest_slot(struct slots *slots, struct owner *owner, const volatile struct slot *slot)
{
	bool was_owner = is_owner(owner, slot);
	struct amount amount = slot_amount(slot);

	/* If the slot has just changed owners, a definition on its way divides the amount. */
	if (was_owner && is_owner(owner, slot))
		give(slots, owner, amount, owner->hash);
}

void slots__keep(struct slots *slots, size_t index, uint64_t hash)
{
	struct owner *owner;

	if (index >= (size_t)slots->cpus * STACK_SLOTS)
		return;
	owner = &slots->owners[index];
	if (!owner->hash || owner->hash != hash || !owner->old)
		return;
	owner->name = slots->sink.rename(slots->sink.context, owner->name);
	owner->old = false;
}

void slots__harvest(struct slots *slots)
{
	size_t count = (size_t)slots->cpus * STACK_SLOTS;

	for (size_t i = 0; i < count; i++)
		if (slots->owners[i].hash)
			harvest_slot(slots, &slots->owners[i], slot_at(slots, i));
}

uint64_t slots__never_defined(const struct slots *slots, uint32_t event)
{
	return slots->undefined[event];
}

uint64_t slots__undefined(const struct slots *slots, uint32_t event)
{
	size_t count = (size_t)slots->cpus * STACK_SLOTS;
	uint64_t samples = slots__never_defined(slots, event);

	for (size_t i = 0; i < count; i++) {
		const volatile struct slot *slot = slot_at(slots, i);

		if (!slots->owners[i].hash && SLOT_EVENT(slot->hash) == event)
			samples += slot_amount(slot).count - slots->owners[i].counted.count;
	}
	return samples;
}

void slots__age(struct slots *slots)
{
	size_t count = (size_t)slots->cpus * STACK_SLOTS;

	for (size_t i = 0; i < count; i++) {
		struct owner *owner = &slots->owners[i];

		if (owner->old)
			owner->hash = 0;
		owner->old = owner->hash;
	}
}
