// SPDX-License-Identifier: BSD-2-Clause
/*
 * To be preloaded into the profiler: capget() claims every capability, so that the
 * profiler goes on until the kernel refuses something.
 */
#include <dlfcn.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARGUMENTS 6

enum { HEADER, SETS };

/* Leaves the permitted set alone: the profiler drops it later. */
static void claim_all(struct __user_cap_data_struct *sets)
{
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		sets[i].effective = UINT32_MAX;
}

long syscall(long number, ...)
{
	long (*call)(long, ...) = dlsym(RTLD_NEXT, __func__), arguments[ARGUMENTS], result;
	va_list given;

	va_start(given, number);
	for (int i = 0; i < ARGUMENTS; i++)
		arguments[i] = va_arg(given, long);
	va_end(given);
	result = call(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
		      arguments[5]);
	if (number == SYS_capget && !result)
		claim_all((struct __user_cap_data_struct *)arguments[SETS]);
	return result;
}
