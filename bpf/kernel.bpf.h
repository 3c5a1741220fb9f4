/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's own frames.
 *
 * There are some only if the kernel was interrupted, not user code.  perf walks them from the
 * interrupted instruction on, so the interrupt's own frames are not among them.  In the definition
 * they are behind the user's frames; user space puts them in front.
 */
#ifndef KERNEL_BPF_H
#define KERNEL_BPF_H

/* Reads the kernel's frames, if they are WANTED. */
static __always_inline void read_kernel_stack(struct walk *walk, void *context, bool wanted)
{
	long bytes;

	walk->kernel_depth = 0;
	if (!wanted)
		return;
	bytes = bpf_get_stack(context, walk->kernel, KERNEL_FRAMES_MAX * sizeof(__u64),
			      walk->own_frames);
	if (bytes > 0)
		walk->kernel_depth = bytes / sizeof(__u64);
}

/* Whether one of the kernel's frames that were read handles an interrupt. */
__noinline int handles_interrupt(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 0;
	for (__u32 i = 0; i < KERNEL_FRAMES_MAX && i < walk->kernel_depth; i++)
		for (__u32 j = 0; j < INTERRUPT_CODES; j++)
			if (walk->kernel[i] - config.interrupts[j].start <
			    config.interrupts[j].bytes)
				return 1;
	return 0;
}

/* Appends them to the stack, whose user part is complete. */
__noinline int push_kernel_frames(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	__u32 depth;

	if (!walk)
		return 0;
	depth = walk->depth + walk->native.depth;
	if (depth > STACK_FRAMES_MAX + NATIVE_FRAMES_MAX)
		return 0;
	for (__u32 i = 0; i < KERNEL_FRAMES_MAX && i < walk->kernel_depth; i++) {
		struct frame *frame = &walk->definition.frames[depth + i];

		set_frame(frame, walk->kernel[i], 0, FRAME_KERNEL, i > 0);
		/* Only the address counts: threads share the kernel's code. */
		walk->hash = (walk->hash ^ frame->address) * 0x9e3779b97f4a7c15ULL;
		walk->hash ^= walk->hash >> 29;
	}
	return 0;
}

#endif
