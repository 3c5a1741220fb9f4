// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/small_file.h"
#include "base/xalloc.h"
#include "system/cpus.h"

/* The kernel's limit is 8,192. */
#define CPUS_MAX 65536

/* A file of sysfs has at most one page, which is 64 KiB on some kernels. */
#define LIST_BYTES_MAX 65536

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

ssize_t cpus__online(uint32_t **numbers)
{
	/* A stack may be too small for it (ulimit -s). */
	char *list = xmalloc(LIST_BYTES_MAX);
	ssize_t count = small_file__read(CPUS_ONLINE_PATH, list, LIST_BYTES_MAX);

	*numbers = NULL;
	if (count >= 0)
		count = (ssize_t)cpus__parse_list(list, numbers) ?: -ENODATA;
	free(list);
	return count;
}

ssize_t cpus__array_size(void)
{
	uint32_t *numbers;
	ssize_t count = cpus__online(&numbers);

	if (count > 0)
		count = (ssize_t)numbers[count - 1] + 1;
	free(numbers);
	return count;
}

size_t cpus__visit(void)
{
	const size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
	cpu_set_t *before = xmalloc(size), *one = xmalloc(size);
	uint32_t *numbers = NULL;
	size_t visited = 0;
	ssize_t count = 0;

	if (sched_getaffinity(0, size, before))
		goto cleanup;
	count = cpus__online(&numbers);
	for (ssize_t i = 0; i < count; i++) {
		CPU_ZERO_S(size, one);
		CPU_SET_S(numbers[i], size, one);
		visited += !sched_setaffinity(0, size, one);
	}
	sched_setaffinity(0, size, before);
cleanup:
	free(numbers);
	free(one);
	free(before);
	return visited;
}
