/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whom the ring buffer wakes.
 *
 * To wake user space costs more than most of what it is told.  What nothing waits for, it finds
 * when it comes for something else, some ten times a second at the rates that are common.  But the
 * kernel by itself wakes only one that has taken all that came before; so what follows a record for
 * which nobody was woken has to ask for it.
 */
#ifndef WAKE_BPF_H
#define WAKE_BPF_H

/* With more than that in it, the ring buffer has no room for what can do without. */
#define RING_BYTES_BUSY (RING_BYTES / 2)

/* There may be records for which nobody was woken. */
bool unannounced;

/* The flags with which to send what user space is to be woken for. */
static __always_inline __u64 wake(void)
{
	if (!unannounced)
		return 0;
	unannounced = false;
	return BPF_RB_FORCE_WAKEUP;
}

static __always_inline bool is_ring_busy(void)
{
	return bpf_ringbuf_query(&definitions, BPF_RB_AVAIL_DATA) > RING_BYTES_BUSY;
}

/* The same of what may lie for a while. */
static __always_inline __u64 let_sleep(void)
{
	if (is_ring_busy())
		return wake();
	unannounced = true;
	return BPF_RB_NO_WAKEUP;
}

#endif
