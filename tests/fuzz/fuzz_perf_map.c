// SPDX-License-Identifier: BSD-2-Clause
/* The input: the size of the parts in which a perf map arrives, and the map.  It must give the
 * same names as at once. */
#include <string.h>

#include "input.h"
#include "unwind/perf_map.h"

#define LOW_ADDRESSES 1024

/* Reads SIZE bytes as a growing file: LOT more each time. */
static struct perf_map *take(const uint8_t *bytes, size_t size, size_t lot)
{
	struct perf_map *map = perf_map__new();
	size_t there = 0, taken = 0, now;

	while (there < size) {
		there += lot < size - there ? lot : size - there;
		do {
			now = perf_map__take(map, (const char *)bytes + taken, there - taken);
			taken += now;
			CHECK(taken <= there);
		} while (now);
		CHECK(there - taken < PERF_MAP_LINE_BYTES);
	}
	return map;
}

static void check(const struct perf_map *map, const struct perf_map *other, uint64_t address)
{
	const char *name = perf_map__name(map, address);
	const char *same = perf_map__name(other, address);

	CHECK(!name == !same);
	CHECK(!name || (strcmp(name, same) == 0 && *name && strlen(name) < PERF_MAP_LINE_BYTES));
	CHECK(!name || !strchr(name, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input input = { bytes, size };
	size_t lot = input__number(&input, 1) + 1;
	struct perf_map *map = take(input.next, input.left, lot);
	struct perf_map *other = take(input.next, input.left, input.left + 1);

	for (uint64_t address = 0; address < LOW_ADDRESSES; address++) {
		check(map, other, address);
		check(map, other, UINT64_MAX - address);
	}
	CHECK(perf_map__bytes(map) <= 64 * input.left + 64);
	perf_map__free(map);
	perf_map__free(other);
	return 0;
}
