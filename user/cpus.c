// SPDX-License-Identifier: BSD-2-Clause
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "cpus.h"
#include "xalloc.h"

#define ONLINE_LIST "/sys/devices/system/cpu/online"

/* The kernel's own limit is 8,192. */
#define CPUS_MAX 65536

size_t cpus__parse_list(const char *list, uint32_t **numbers)
{
	size_t count = 0, capacity = 0;
	unsigned long first, last;
	char *end;

	*numbers = NULL;
	while (*list >= '0' && *list <= '9') {
		first = last = strtoul(list, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < CPUS_MAX; first++) {
			*numbers = xgrow(*numbers, &capacity, count + 1, sizeof(**numbers));
			(*numbers)[count++] = first;
		}
		list = *end == ',' ? end + 1 : end;
	}
	return count;
}

size_t cpus__read_online(uint32_t **numbers)
{
	FILE *file = fopen(ONLINE_LIST, "re");
	char *list = NULL;
	size_t size = 0, count = 0;

	*numbers = NULL;
	if (file && getline(&list, &size, file) > 0)
		count = cpus__parse_list(list, numbers);
	if (file)
		fclose(file);
	free(list);
	return count;
}

size_t cpus__online(uint32_t **numbers)
{
	size_t count = cpus__read_online(numbers);

	if (!count) {
		free(*numbers);
		*numbers = xcalloc(1, sizeof(**numbers));
		count = 1;
	}
	return count;
}

uint32_t cpus__array_size(void)
{
	uint32_t *numbers;
	size_t count = cpus__online(&numbers);
	uint32_t highest = numbers[count - 1];

	free(numbers);
	return highest + 1;
}

size_t cpus__visit(void)
{
	cpu_set_t before[CPUS_MAX / CPU_SETSIZE], one[CPUS_MAX / CPU_SETSIZE];
	size_t count, visited = 0;
	uint32_t *numbers;

	if (sched_getaffinity(0, sizeof(before), before))
		return 0;
	count = cpus__online(&numbers);
	for (size_t i = 0; i < count; i++) {
		CPU_ZERO_S(sizeof(one), one);
		CPU_SET_S(numbers[i], sizeof(one), one);
		visited += !sched_setaffinity(0, sizeof(one), one);
	}
	sched_setaffinity(0, sizeof(before), before);
	free(numbers);
	return visited;
}
