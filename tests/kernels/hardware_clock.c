// SPDX-License-Identifier: BSD-2-Clause
/*
 * To be preloaded into the profiler: its events are the processor's cycles in place
 * of the kernel's clock, and it says "cycles: CPU NUMBER" of each.  So its BPF
 * program is run by what a hardware event is.
 */
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARGUMENTS 6

enum { ATTRIBUTES, PID, CPU };

/* Not all processors can leave out what is idle. */
static void count_cycles(struct perf_event_attr *attributes)
{
	attributes->type = PERF_TYPE_HARDWARE;
	attributes->config = PERF_COUNT_HW_CPU_CYCLES;
	attributes->exclude_idle = 0;
}

long syscall(long number, ...)
{
	long (*call)(long, ...) = dlsym(RTLD_NEXT, __func__), arguments[ARGUMENTS], result;
	va_list given;

	va_start(given, number);
	for (int i = 0; i < ARGUMENTS; i++)
		arguments[i] = va_arg(given, long);
	va_end(given);
	if (number == SYS_perf_event_open)
		count_cycles((struct perf_event_attr *)arguments[ATTRIBUTES]);
	result = call(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
		      arguments[5]);
	if (number == SYS_perf_event_open && result >= 0)
		fprintf(stderr, "cycles: CPU %d\n", (int)arguments[CPU]);
	return result;
}
