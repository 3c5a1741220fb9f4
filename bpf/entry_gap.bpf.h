/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From 3.13 on: the first instructions of the eval loop.
 *
 * Each activation of the eval loop has a frame of the interpreter's own on the C stack, between the
 * frame that it is to run and the caller's.  In the source that frame is written before the thread
 * state points to the new frame.  But a compiler may store in another order, as gcc does on
 * aarch64.  Then, for some ten instructions, the fields are whatever the C stack held, often those
 * of another activation that has ended.  Unlike 3.11's activations, it cannot prove itself.
 *
 * So user space finds in the machine code which instructions these are, and which register has the
 * caller's frame meanwhile (user/architecture/).  The function that is being called has not begun
 * there, and its caller's stack is the true one.
 */
#ifndef ENTRY_GAP_BPF_H
#define ENTRY_GAP_BPF_H

/* If the thread is about to enter the eval loop, begins the walk with the caller's frame. */
static __always_inline void leave_entry_gap(struct walk *walk, const struct entry_gap *gap)
{
	__u64 distance;
	__u32 caller = gap->caller;

	if (!gap->length || !walk->frame || !walk->has_registers)
		return;
	distance = walk->program_counter - gap->start;
	if (distance >= gap->length)
		return;
	if (distance >= gap->unlinked)
		walk->frame = frame_behind(walk, frame_behind(walk, walk->frame));
	else if (caller < REGISTERS)
		walk->frame = walk->registers[caller];
}

#endif
