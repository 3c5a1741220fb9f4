// SPDX-License-Identifier: BSD-2-Clause
/*
 * To be preloaded: loading a program with REFUSED_ATTACH_TYPE fails, or, if that is not set,
 * creating a map that native frames need.  Both fail with ENOMEM.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OF_NATIVE "unwind_rules"

static bool is_refused(long number, const long *words)
{
	const union bpf_attr *attributes = (const union bpf_attr *)words[1];
	const char *type = getenv("REFUSED_ATTACH_TYPE");

	if (number != SYS_bpf)
		return false;
	if (type)
		return words[0] == BPF_PROG_LOAD &&
		       attributes->expected_attach_type == strtoul(type, NULL, 10);
	/* Without native frames the map has one entry. */
	return words[0] == BPF_MAP_CREATE && attributes->max_entries > 1 &&
	       strcmp(attributes->map_name, OF_NATIVE) == 0;
}

long syscall(long number, ...)
{
	long (*real)(long, ...) = dlsym(RTLD_NEXT, "syscall"), words[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		words[i] = va_arg(list, long);
	va_end(list);
	if (!is_refused(number, words))
		return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
	errno = ENOMEM;
	return -1;
}
