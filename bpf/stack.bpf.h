/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From a stack to its counter.
 *
 * Each CPU has its own slots, which user space maps.  A stack's hash selects a bucket.  A stack
 * that has a slot there costs two additions.  A new one takes an unused slot or evicts another
 * stack, and is sent as a definition.  Counters only grow, even when a slot changes owners.  The
 * definition tells at which count the new owner began: what was counted before belongs to the
 * previous owners.  So nothing is reset, and nothing is lost.
 *
 * If the ring buffer is full, a stack with its own slot is still counted, and its definition is
 * sent with its next sample.  A stack that would have to evict another is lost, and counted as
 * lost.
 */
#ifndef STACK_BPF_H
#define STACK_BPF_H

/* Sends the definition of this stack, which takes SLOT at COUNT samples of VALUE; returns whether
 * there was room.  A global function: the verifier checks it once. */
__noinline int send_definition(__u32 cpu, __u32 slot, __u64 count, __u64 value)
{
	struct cpu_counters *counter = bpf_map_lookup_elem(&counters, &cpu);
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	struct definition *definition;
	__u32 depth, native_depth, kernel_depth;

	if (!walk || !counter)
		return 0;
	walk->defining = 1;
	if (walk->identify != IDENTIFIED_WHOLLY || !versions_repeat(walk))
		identify_frames(cpu);
	definition = &walk->definition;
	name_thread(definition);
	copy_codes(cpu);
	definition->kind = RECORD_DEFINITION;
	definition->hash = walk->hash;
	definition->base.count = count;
	definition->base.value = value;
	definition->serial = walk->target.serial;
	definition->thread_id = walk->thread_id;
	definition->thread_start = walk->thread_start;
	definition->cpu = cpu;
	definition->slot = slot;
	definition->outcome = walk->outcome;
	definition->several = walk->several;
	bpf_get_current_comm(definition->thread_name, sizeof(definition->thread_name));
	depth = walk->depth;
	native_depth = walk->native.depth;
	kernel_depth = walk->kernel_depth;
	definition->depth = depth;
	definition->native_depth = native_depth;
	definition->kernel_depth = kernel_depth;
	definition->native_shift = walk->native.shift;
	definition->wait = walk->wait;
	definition->lacks_rows = walk->native.lacks_rows;
	if (depth > STACK_FRAMES_MAX || native_depth > NATIVE_FRAMES_MAX ||
	    kernel_depth > KERNEL_FRAMES_MAX)
		return 0;
	if (bpf_ringbuf_output(&definitions, definition,
			       DEFINITION_HEADER_BYTES +
				       (depth + native_depth + kernel_depth) * sizeof(struct frame),
			       wake())) {
		counter->ring_full++;
		return 0;
	}
	return 1;
}

/* Gives SLOT to this stack.  What the slot has counted remains the previous owner's.  A stack that
 * comes back has another number in DEFINED, so that user space does not credit it with what others
 * counted in between. */
static __always_inline void take_slot(struct slot *slot, __u64 hash, __u64 defined, __u64 value)
{
	slot->hash = hash;
	slot->defined = defined;
	slot->amount.value += value;
	slot->amount.count++;
}

/* Counts the stack, with VALUE, in a slot of the bucket; returns whether it could. */
static __always_inline bool count_in_bucket(struct walk *walk, __u32 cpu, struct bucket *bucket,
					    __u32 first_slot, __u64 value)
{
	__u32 chosen;
	struct slot *slot;

	for (__u32 i = 0; i < SLOTS_PER_BUCKET; i++) {
		slot = &bucket->slots[i];
		walk->slot = first_slot + i;
		if (slot->hash == walk->hash) {
			slot->amount.value += value;
			slot->amount.count++;
			if (!slot->defined)
				slot->defined = send_definition(cpu, first_slot + i, 0, 0);
			return true;
		}
		if (!slot->hash) {
			take_slot(slot, walk->hash, send_definition(cpu, first_slot + i, 0, 0),
				  value);
			return true;
		}
	}
	for (__u32 i = 0; i < SLOTS_PER_BUCKET; i++) {
		chosen = ((walk->hash >> 62) + i) % SLOTS_PER_BUCKET;
		slot = &bucket->slots[chosen];
		if (!slot->defined)
			continue;
		if (!send_definition(cpu, first_slot + chosen, slot->amount.count,
				     slot->amount.value))
			return false;
		take_slot(slot, walk->hash, slot->amount.count + 1, value);
		walk->slot = first_slot + chosen;
		return true;
	}
	return false;
}

/* Returns whether it was counted; walk->slot then says where. */
static __always_inline bool count_stack(struct walk *walk, struct event_counters *counter,
					__u32 cpu, __u32 event, __u64 value)
{
	__u32 in_cpu = walk->hash & (STACK_BUCKETS - 1);
	__u32 index = cpu * STACK_BUCKETS + in_cpu;
	struct bucket *bucket = bpf_map_lookup_elem(&stacks, &index);

	walk->hash &= ~((EVENTS_MAX - 1ULL) << SLOT_EVENT_SHIFT);
	walk->hash |= (__u64)event << SLOT_EVENT_SHIFT;
	if (!walk->hash)
		walk->hash = 1;
	if (bucket && count_in_bucket(walk, cpu, bucket, in_cpu * SLOTS_PER_BUCKET, value))
		return true;
	counter->lost++;
	return false;
}

#endif
