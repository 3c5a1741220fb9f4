// SPDX-License-Identifier: BSD-2-Clause
/*
 * The parts of the BPF program that walk native frames, unchanged, and what the kernel provides:
 * map lookups and reads of user memory. kernel.c is for the tests that walk Python.
 */
#include <string.h>
#include <sys/uio.h>
#include <sys/user.h>

/* User space's function has the same name. */
#define bpf_map_lookup_elem look_up

/* The programs' entry points have no prototypes: the kernel calls them. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "pybpfprof.h"
#include "registers.bpf.h"
#include "maps.bpf.h"
#include "user_memory.bpf.h"
#include "activation.bpf.h"
#include "interpreters.bpf.h"
#include "unwinding.bpf.h"
#include "rows.bpf.h"
#include "native.bpf.h"
#include "join.bpf.h"
#pragma GCC diagnostic pop

#include "unwinding.h"

const volatile struct config config = { .native = 1, .native_all = 1 };

static struct walk walk;
static void *chunks[UNWIND_CHUNKS_MAX];
static struct unwind_file files[UNWIND_FILES_MAX];
static struct unwind_rule rules[UNWIND_RULES_MAX];
static struct unwind_table table;
static pid_t read_pid;

static const struct {
	const void *definition;
	__u8 *values;
	size_t value_bytes;
	__u64 count;
} maps[] = {
	[UNWINDING_CHUNKS] = { &unwind_chunks, (__u8 *)chunks, sizeof(chunks[0]),
			       UNWIND_CHUNKS_MAX },
	[UNWINDING_FILES] = { &unwind_files, (__u8 *)files, sizeof(files[0]), UNWIND_FILES_MAX },
	[UNWINDING_RULES] = { &unwind_rules, (__u8 *)rules, sizeof(rules[0]), UNWIND_RULES_MAX },
	[UNWINDING_TABLES] = { &unwind_tables, (__u8 *)&table, sizeof(table), 1 },
};

_Static_assert(sizeof(maps) / sizeof(maps[0]) == UNWINDING_MAPS, "every map is here");

static void *value_of(enum unwinding_map map, __u32 index)
{
	return index < maps[map].count ? maps[map].values + index * maps[map].value_bytes : NULL;
}

bool unwinding__put(enum unwinding_map map, const void *key, const void *value)
{
	__u32 index = 0;
	void *place;

	/* The key of a table is its process; there is only one. */
	if (map != UNWINDING_TABLES)
		memcpy(&index, key, sizeof(index));
	place = value_of(map, index);
	if (place)
		memcpy(place, value, maps[map].value_bytes);
	return place;
}

/* The helpers, as bpf-helpers(7) describes them. */

void *bpf_map_lookup_elem(void *definition, const void *key)
{
	__u32 index;

	memcpy(&index, key, sizeof(index));
	if (definition == &walks)
		return index ? NULL : &walk;
	if (definition == &unwind_chunks)
		return index < UNWIND_CHUNKS_MAX ? chunks[index] : NULL;
	for (int i = UNWINDING_FILES; i < UNWINDING_MAPS; i++)
		if (definition == maps[i].definition)
			return value_of(i, i == UNWINDING_TABLES ? 0 : index);
	/* The only value of a map that is a value of unwind_chunks. */
	return definition;
}

long bpf_probe_read_user(void *destination, __u32 size, const void *address)
{
	struct iovec local = { .iov_base = destination, .iov_len = size };
	struct iovec remote = { .iov_base = (void *)address, .iov_len = size };

	if (process_vm_readv(read_pid, &local, 1, &remote, 1, 0) == (ssize_t)size)
		return 0;
	memset(destination, 0, size);
	return -1;
}

static struct pt_regs as_kernel_has(const struct user_regs_struct *user)
{
	return (struct pt_regs){
		.r15 = user->r15,
		.r14 = user->r14,
		.r13 = user->r13,
		.r12 = user->r12,
		.bp = user->rbp,
		.bx = user->rbx,
		.r11 = user->r11,
		.r10 = user->r10,
		.r9 = user->r9,
		.r8 = user->r8,
		.ax = user->rax,
		.cx = user->rcx,
		.dx = user->rdx,
		.si = user->rsi,
		.di = user->rdi,
		.ip = user->rip,
		.sp = user->rsp,
	};
}

struct unwinding_stack unwinding__walk(pid_t pid, pid_t tid,
				       const struct user_regs_struct *registers)
{
	const struct pt_regs regs = as_kernel_has(registers);
	struct cached_thread *cached = &walk.threads[tid & (THREAD_CACHE_ENTRIES - 1)];

	read_pid = pid;
	if (cached->tid != (__u32)tid)
		*cached = (struct cached_thread){ .tid = tid };
	/* Python's layout is unknown, and there are no Python frames. */
	memset(&walk.layout, 0xff, sizeof(walk.layout));
	walk.depth = walk.entry_count = 0;
	walk.has_registers = 1;
	COPY_REGISTERS(walk.registers, &regs);
	walk.stack_pointer = regs.STACK_POINTER;
	walk.program_counter = regs.PROGRAM_COUNTER;
	walk_native(0, tid, 0);
	return (struct unwinding_stack){
		.outcome = walk.native.outcome,
		.depth = walk.native.depth,
		.frames = walk.definition.frames,
	};
}
