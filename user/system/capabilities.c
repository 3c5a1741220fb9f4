// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "system/capabilities.h"

const struct capability capabilities__needed[] = {
	{ CAP_BPF, CAP_SYS_ADMIN, "CAP_BPF", "load BPF programs", false, false },
	{ CAP_PERFMON, CAP_SYS_ADMIN, "CAP_PERFMON",
	  "sample other processes (whatever kernel.perf_event_paranoid is)", false, false },
	{ CAP_SYS_PTRACE, CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "read other processes' memory", true,
	  true },
	{ CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN, "CAP_CHECKPOINT_RESTORE",
	  "open the files that processes map", false, true },
	{ CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE, "CAP_DAC_READ_SEARCH",
	  "read other users' directories under /proc", true, true },
	{ 0 },
};

static int read_sets(struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3])
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &header, sets) ? -errno : 0;
}

uint64_t capabilities__effective(void)
{
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (read_sets(sets))
		return 0;
	return sets[0].effective | (uint64_t)sets[1].effective << 32;
}

bool capabilities__have(uint64_t set, int number)
{
	return set >> number & 1;
}

int capability__find(const struct capability *capability, uint64_t set)
{
	if (capabilities__have(set, capability->number))
		return capability->number;
	return capabilities__have(set, capability->instead) ? capability->instead : -1;
}

int capabilities__limit(uint64_t set, bool kept)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { 0 };
	int error = read_sets(sets);

	if (error)
		return error;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		sets[i].effective = sets[i].permitted & (uint32_t)(set >> 32 * i);
		sets[i].inheritable = 0;
		if (!kept)
			sets[i].permitted = sets[i].effective;
	}
	return syscall(SYS_capset, &header, sets) ? -errno : 0;
}

void capabilities__disown(void)
{
	/* The profiler also needs these on some kernels, or for some events. */
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, CAP_SYS_RESOURCE, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, CAP_SYS_ADMIN, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, CAP_SYSLOG, 0, 0);
	for (const struct capability *needed = capabilities__needed; needed->name; needed++)
		prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, needed->number, 0, 0);
}
