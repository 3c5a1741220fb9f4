// SPDX-License-Identifier: BSD-2-Clause
/*
 * The filter lists what is refused, not what is allowed.  The calls that a C library makes differ
 * between versions, and a new one would end recordings.  A list of the few calls that would harm a
 * target or serve an intruder stays correct.
 *
 * The filter is built here, not by libseccomp: when memory is short, its seccomp_load (2.5.4) loops
 * for ever with all signals blocked.
 */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "architecture/architecture.h"
#include "system/system_calls.h"

/* The same on all architectures.  Debian 12's headers lack it. */
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

#define REFUSE (SECCOMP_RET_ERRNO | EPERM)

static const uint32_t never[] = {
	/* Other processes. */
	SYS_kill,
	SYS_tkill,
	SYS_rt_sigqueueinfo,
	SYS_rt_tgsigqueueinfo,
	SYS_pidfd_open,
	SYS_pidfd_send_signal,
	SYS_pidfd_getfd,
	SYS_ptrace,
	SYS_process_vm_writev,
	SYS_process_madvise,
	/* New programs.  The architecture may have more such calls. */
	SYS_execve,
	SYS_execveat,
	/* Files without a path.  With CAP_DAC_READ_SEARCH, which is kept, this opens any file of a
	 * file system, also outside of a container. */
	SYS_open_by_handle_at,
	/* What bypasses a filter, or changes the machine. */
	SYS_io_uring_setup,
	SYS_userfaultfd,
	SYS_setns,
	SYS_unshare,
	SYS_mount,
	SYS_umount2,
	SYS_fsopen,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fspick,
	SYS_open_tree,
	SYS_open_tree_attr,
	SYS_move_mount,
	SYS_mount_setattr,
	SYS_pivot_root,
	SYS_chroot,
	SYS_swapon,
	SYS_swapoff,
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_kexec_load,
	SYS_kexec_file_load,
	SYS_reboot,
	SYS_keyctl,
	SYS_add_key,
	SYS_request_key,
};

static const uint32_t of_the_network[] = {
	SYS_socket,
	SYS_socketpair,
};

#define NETWORK_COUNT (sizeof(of_the_network) / sizeof(of_the_network[0]))
#define NEVER_COUNT   (sizeof(never) / sizeof(never[0]))

#define LOAD(field)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define SKIP_UNLESS(comparison, number, count) \
	BPF_JUMP(BPF_JMP | BPF_K | (comparison), number, 0, count)

/* Five instructions: refuses CALL unless COMPARISON of its first argument with NUMBER is true. */
#define ALLOW_IF(call, comparison, number)                                              \
	SKIP_UNLESS(BPF_JEQ, call, 4), LOAD(args[0]),                                   \
		BPF_JUMP(BPF_JMP | BPF_K | (comparison), number, 1, 0), RETURN(REFUSE), \
		RETURN(SECCOMP_RET_ALLOW)

/* Writes instructions that refuse COUNT calls.  Returns how many instructions. */
static size_t write_refusals(struct sock_filter *code, const uint32_t *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		code[2 * i] = (struct sock_filter)SKIP_UNLESS(BPF_JEQ, calls[i], 1);
		code[2 * i + 1] = (struct sock_filter)RETURN(REFUSE);
	}
	return 2 * count;
}

/* Writes the filter.  Returns how many instructions it has. */
static size_t write_filter(struct sock_filter *code, enum network network)
{
	const struct sock_filter head[] = {
		/* Other architectures number their calls differently. */
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_K | BPF_JEQ,
			 ARCHITECTURE.machine | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE, 1, 0),
		RETURN(REFUSE),
		LOAD(nr),
		SKIP_UNLESS(BPF_JGE, ARCHITECTURE.other_calls ?: UINT32_MAX, 1),
		RETURN(REFUSE),
		/* Only of this process. */
		ALLOW_IF(SYS_prlimit64, BPF_JEQ, 0),
		/* abort(3) signals its own process. */
		ALLOW_IF(SYS_tgkill, BPF_JEQ, (uint32_t)getpid()),
		/* A thread, but no process.  A filter cannot see what clone3 creates; without
		 * clone3, the C library uses clone. */
		ALLOW_IF(SYS_clone, BPF_JSET, CLONE_THREAD),
		SKIP_UNLESS(BPF_JEQ, SYS_clone3, 1),
		RETURN(SECCOMP_RET_ERRNO | ENOSYS),
	};
	size_t count = 0;

	for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
		code[count++] = head[i];
	count += write_refusals(code + count, never, NEVER_COUNT);
	count += write_refusals(code + count, ARCHITECTURE.starting_calls,
				ARCHITECTURE.starting_call_count);
	if (network == NETWORK_REFUSED)
		count += write_refusals(code + count, of_the_network, NETWORK_COUNT);
	code[count++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	return count;
}

int system_calls__confine(enum network network)
{
	struct sock_filter code[2 * (NEVER_COUNT + NETWORK_COUNT + STARTING_CALLS_MAX) + 32];
	struct sock_fprog filter = { .filter = code, .len = write_filter(code, network) };

	/* Up to Linux 5.15 a filter slows the process down without this flag. */
	long flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW | SECCOMP_FILTER_FLAG_TSYNC;
	long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);

	/* A positive result is a thread to which the filter could not be applied. */
	return result < 0 ? -errno : result ? -ESRCH : 0;
}
