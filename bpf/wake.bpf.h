/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When the ring buffer wakes user space.
 *
 * Waking user space costs more than most records are worth.  What nothing waits for is found when
 * user space comes for something else, about ten times per second at common rates.  But by default
 * the kernel wakes user space only if it has taken all earlier records.  So after a record that did
 * not wake it, the next one that should has to force that.
 */
#ifndef WAKE_BPF_H
#define WAKE_BPF_H

/* Above this, the ring buffer takes no optional records. */
#define RING_BYTES_BUSY (RING_BYTES / 2)

/* There may be records for which user space was not woken. */
bool unannounced;

/* The flags for a record that wakes user space. */
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

/* The flags for a record that can wait. */
static __always_inline __u64 let_sleep(void)
{
	if (is_ring_busy())
		return wake();
	unannounced = true;
	return BPF_RB_NO_WAKEUP;
}

#endif
