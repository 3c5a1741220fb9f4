/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of libbpf's: what a BPF program is written with, for one that runs as an ordinary one.
 * Who includes this has the helpers. */
#ifndef BPF_HELPERS_H
#define BPF_HELPERS_H

#include <linux/bpf.h>
#include <sys/cdefs.h>

#define SEC(name)
#define __uint(name, number) int(*name)[number]
#define __type(name, of)     of *name
#define __array(name, of)    of *(*name)[]
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline	__attribute__((noinline))
#define barrier_var(var)

void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags);
long bpf_map_delete_elem(void *map, const void *key);
long bpf_probe_read_user(void *destination, __u32 size, const void *address);
long bpf_probe_read_kernel(void *destination, __u32 size, const void *address);
long bpf_probe_read_user_str(void *destination, __u32 size, const void *address);
long bpf_ringbuf_output(void *ring, void *data, __u64 size, __u64 flags);
void *bpf_ringbuf_reserve(void *ring, __u64 size, __u64 flags);
void bpf_ringbuf_submit(void *data, __u64 flags);
void bpf_ringbuf_discard(void *data, __u64 flags);
__u64 bpf_ringbuf_query(void *ring, __u64 flags);
__u64 bpf_ktime_get_ns(void);
__u64 bpf_get_current_task(void);
struct task_struct *bpf_get_current_task_btf(void);
long bpf_task_pt_regs(struct task_struct *task);
__u64 bpf_get_current_pid_tgid(void);
__u32 bpf_get_smp_processor_id(void);
__u32 bpf_get_prandom_u32(void);
long bpf_get_stack(void *context, void *buffer, __u32 size, __u64 flags);
long bpf_get_task_stack(struct task_struct *task, void *buffer, __u32 size, __u64 flags);
long bpf_seq_write(struct seq_file *file, const void *data, __u32 size);
long bpf_get_current_comm(void *buffer, __u32 size);

#endif
