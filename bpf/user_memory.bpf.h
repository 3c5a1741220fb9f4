/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the interrupted process's memory.  A read fails if the memory is not present. */
#ifndef USER_MEMORY_BPF_H
#define USER_MEMORY_BPF_H

static __always_inline bool is_user_address(__u64 address)
{
	return address && address >> USER_ADDRESS_BITS == 0;
}

static __always_inline bool read_user(void *destination, __u32 size, __u64 address)
{
	return is_user_address(address) &&
	       bpf_probe_read_user(destination, size, (void *)address) == 0;
}

#endif
