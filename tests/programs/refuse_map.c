// SPDX-License-Identifier: BSD-2-Clause
/*
 * To be preloaded: the creation of the map REFUSED_MAP fails with ENOMEM, by default of one that
 * native frames need.
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

/* A map that is not used has one entry. */
static bool is_refused(long number, const long *words)
{
	const union bpf_attr *map = (const union bpf_attr *)words[1];
	const char *refused = getenv("REFUSED_MAP");

	return number == SYS_bpf && words[0] == BPF_MAP_CREATE && map->max_entries > 1 &&
	       strcmp(map->map_name, refused ? refused : OF_NATIVE) == 0;
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
