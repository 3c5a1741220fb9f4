// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is refused is listed, not what is let through: that differs among the C
 * libraries' versions, and a call that one of them begins to use would end
 * recordings.  A list of the few that would harm a target or serve an intruder
 * stays true.
 */
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include <seccomp.h>

#include "system_calls.h"

static const int never[] = {
	/* Other processes. */
	SCMP_SYS(kill),
	SCMP_SYS(tkill),
	SCMP_SYS(rt_sigqueueinfo),
	SCMP_SYS(rt_tgsigqueueinfo),
	SCMP_SYS(pidfd_send_signal),
	SCMP_SYS(pidfd_getfd),
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(process_madvise),
	/* New ones. */
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
	SCMP_SYS(fork),
	SCMP_SYS(vfork),
	SCMP_SYS(clone),
	SCMP_SYS(clone3),
	/* The network. */
	SCMP_SYS(socket),
	SCMP_SYS(socketpair),
	/* What gets around such a filter, or changes the machine. */
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(setns),
	SCMP_SYS(unshare),
	SCMP_SYS(mount),
	SCMP_SYS(umount2),
	SCMP_SYS(move_mount),
	SCMP_SYS(pivot_root),
	SCMP_SYS(chroot),
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(kexec_load),
	SCMP_SYS(kexec_file_load),
	SCMP_SYS(reboot),
	SCMP_SYS(keyctl),
	SCMP_SYS(add_key),
	SCMP_SYS(request_key),
};

static int add_rules(scmp_filter_ctx filter)
{
	/* abort(3) signals this very process. */
	const struct scmp_arg_cmp other = { .arg = 0, .op = SCMP_CMP_NE, .datum_a = getpid() };
	int error =
		seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), 1, &other);

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]) && !error; i++)
		error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), never[i], 0);
	return error;
}

int system_calls__confine(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int error;

	if (!filter)
		return -ENOMEM;
	error = add_rules(filter);
	/* Up to 5.15 a filter slows a process down, unless it is told not to. */
	if (!error)
		error = seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	if (!error)
		error = seccomp_load(filter);
	seccomp_release(filter);
	return error;
}
