/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples at the kernel's tracepoints, and at breakpoints in user code.
 *
 * A raw tracepoint passes its arguments as they are, most of them pointers to the kernel's structs.
 * User space finds by BTF where the number lies that a sample stands for.  So the same program
 * serves every tracepoint.
 *
 * A tracepoint may be called while an interrupt is handled.  The current thread is then one that
 * has nothing to do with it: its sample has that reason in place of a stack.
 */
#ifndef TRACEPOINT_BPF_H
#define TRACEPOINT_BPF_H

/* The number FIELD of the tracepoint whose arguments are at CONTEXT; 0 if it cannot be read. */
static __always_inline __u64 read_field(const __u64 *context,
					const volatile struct tracepoint_field *field)
{
	__u32 bytes = field->bytes;
	__u64 number = 0, argument;

	if (bpf_probe_read_kernel(&argument, sizeof(argument), context + field->argument))
		return 0;
	if (!field->is_member)
		number = argument;
	else if (bytes > sizeof(number) ||
		 bpf_probe_read_kernel(&number, bytes, (void *)(argument + field->offset)))
		return 0;
	number <<= field->left;
	return field->is_signed ? (__u64)((__s64)number >> field->right) : number >> field->right;
}

/* Takes a sample of EVENT where the current thread is at its tracepoint.  A number that is not
 * above 0 is none of anything: a call that failed, for one. */
static __always_inline int take_tracepoint(const __u64 *context, __u32 event)
{
	const volatile struct tracepoint *tracepoint = &config.tracepoints[event];
	struct target *target;
	__u64 value = 1;

	if (tracepoint->filter.bytes &&
	    read_field(context, &tracepoint->filter) != tracepoint->filtered)
		return 0;
	target = current_target();
	if (!target)
		return 0;
	if (tracepoint->value.bytes)
		value = read_field(context, &tracepoint->value);
	if (value && !(tracepoint->value.is_signed && (__s64)value < 0))
		sample_thread((void *)context, 0, target, event, value);
	return 0;
}

/* The same where user code meets a breakpoint: it has called a function, or is at a USDT probe. */
static __always_inline int take_probe(__u32 event)
{
	struct target *target = current_target();

	if (target)
		sample_thread(0, 0, target, event, 1);
	return 0;
}

#define TRACEPOINT_PROGRAM(name, event)                 \
	SEC("?raw_tp")                                  \
	int name(__u64 *context)                        \
	{                                               \
		return take_tracepoint(context, event); \
	}

TRACEPOINT_PROGRAM(tracepoint, 0)
TRACEPOINT_PROGRAM(tracepoint_1, 1)
TRACEPOINT_PROGRAM(tracepoint_2, 2)
TRACEPOINT_PROGRAM(tracepoint_3, 3)

#define PROBE_PROGRAM(name, event)        \
	SEC("?kprobe")                    \
	int name(void *registers)         \
	{                                 \
		(void)registers;          \
		return take_probe(event); \
	}

PROBE_PROGRAM(probe, 0)
PROBE_PROGRAM(probe_1, 1)
PROBE_PROGRAM(probe_2, 2)
PROBE_PROGRAM(probe_3, 3)

#endif
