// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <unistd.h>

#include "system/own_memory.h"

uint64_t own_memory__bytes(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	unsigned long size, resident, shared;

	if (!statm)
		return 0;
	if (fscanf(statm, "%lu %lu %lu", &size, &resident, &shared) != 3 || resident < shared)
		resident = shared = 0;
	fclose(statm);
	return (uint64_t)(resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}
