// SPDX-License-Identifier: BSD-2-Clause
/*
 * A map is a sorted list of ranges that do not overlap.  New lines are first turned into such a
 * list, half by half as in a merge sort, which is then laid over the old one.  So a line costs the
 * same for any addresses that a program writes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "base/xalloc.h"
#include "unwind/perf_map.h"

/* Lines that are taken at the same time. */
#define LINES_MAX 65536

struct range {
	uint64_t start; /* first, for look-ups */
	uint64_t end;
	size_t name; /* its offset in NAMES */
};

struct perf_map {
	struct range *ranges;
	size_t count;
	char *names;
	size_t names_bytes, names_capacity;
	bool skips; /* the next bytes belong to a line that is too long */
};

struct perf_map *perf_map__new(void)
{
	return xcalloc(1, sizeof(struct perf_map));
}

void perf_map__free(struct perf_map *map)
{
	if (!map)
		return;
	free(map->ranges);
	free(map->names);
	free(map);
}

/* Lays the NEWER ranges over the OLDER ones.  Returns the number of ranges in INTO, which has room
 * for all of both, and for one more per newer range: it may cut an older one in two. */
static size_t overlay(const struct range *older, size_t older_count, const struct range *newer,
		      size_t newer_count, struct range *into)
{
	const struct range *newer_end = newer + newer_count;
	uint64_t covered = 0;
	size_t count = 0;

	for (size_t i = 0; i < older_count; i++) {
		struct range rest = older[i];

		for (;;) {
			if (rest.start < covered)
				rest.start = covered;
			if (newer == newer_end || newer->start >= rest.end)
				break;
			if (rest.start < newer->start) {
				into[count] = rest;
				into[count++].end = newer->start;
			}
			into[count++] = *newer;
			covered = newer++->end;
		}
		if (rest.start < rest.end)
			into[count++] = rest;
	}
	while (newer < newer_end)
		into[count++] = *newer++;
	return count;
}

/* Turns COUNT lines into ranges that do not overlap.  Returns the number of ranges, up to twice
 * COUNT: so line I is LINES[2 * I], and the ranges fill LINES from its start.  SPARE is as large as
 * LINES. */
static size_t settle(struct range *lines, size_t count, struct range *spare)
{
	size_t half = count / 2, older, newer;

	if (count < 2)
		return count;
	older = settle(lines, half, spare);
	newer = settle(lines + 2 * half, count - half, spare);
	count = overlay(lines, older, lines + 2 * half, newer, spare);
	memcpy(lines, spare, count * sizeof(*lines));
	return count;
}

static void add(struct perf_map *map, struct range *lines, size_t count)
{
	struct range *spare = xcalloc(2 * count, sizeof(*spare)), *all;

	count = settle(lines, count, spare);
	free(spare);
	all = xcalloc(map->count + 2 * count, sizeof(*all));
	map->count = overlay(map->ranges, map->count, lines, count, all);
	free(map->ranges);
	map->ranges = xreallocarray(all, map->count, sizeof(*all));
}

/* Reads a hexadecimal number of 64 bits.  Returns what follows the blanks behind it; NULL if there
 * is no number or no blank before END. */
static const char *parse_number(const char *at, const char *end, uint64_t *number)
{
	static const char digits[] = "0123456789abcdef";
	const char *first, *digit;

	if (end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
		at += 2;
	*number = 0;
	for (first = at; at < end; at++) {
		digit = memchr(digits, *at >= 'A' && *at <= 'F' ? *at | 0x20 : *at, 16);
		if (!digit)
			break;
		if (*number >> 60)
			return NULL;
		*number = *number << 4 | (uint64_t)(digit - digits);
	}
	if (at == first || at == end || *at != ' ')
		return NULL;
	while (at < end && *at == ' ')
		at++;
	return at;
}

/* Reads the line from AT to END into RANGE, and stores the name.  False if the line is invalid. */
static bool parse_line(struct perf_map *map, const char *at, const char *end, struct range *range)
{
	uint64_t size;
	size_t length;

	at = parse_number(at, end, &range->start);
	if (at)
		at = parse_number(at, end, &size);
	if (!at)
		return false;
	if (end > at && end[-1] == '\r')
		end--;
	length = end - at;
	if (!length || !size || size > UINT64_MAX - range->start || memchr(at, '\0', length))
		return false;
	range->end = range->start + size;
	range->name = map->names_bytes;
	map->names = xgrow(map->names, &map->names_capacity, map->names_bytes + length + 1, 1);
	memcpy(map->names + map->names_bytes, at, length);
	map->names[map->names_bytes + length] = '\0';
	map->names_bytes += length + 1;
	return true;
}

size_t perf_map__take(struct perf_map *map, const char *bytes, size_t length)
{
	size_t taken = 0, count = 0, capacity = 0;
	struct range *lines = NULL;

	if (perf_map__is_full(map))
		return 0;
	while (count < LINES_MAX && taken < length) {
		const char *line = bytes + taken, *end = memchr(line, '\n', length - taken);

		if (!end && length - taken < PERF_MAP_LINE_BYTES)
			break;
		taken = end ? (size_t)(end + 1 - bytes) : length;
		lines = xgrow(lines, &capacity, 2 * count + 2, sizeof(*lines));
		if (end && !map->skips && end - line < PERF_MAP_LINE_BYTES)
			count += parse_line(map, line, end, &lines[2 * count]);
		map->skips = !end;
	}
	if (count)
		add(map, lines, count);
	free(lines);
	return taken;
}

bool perf_map__is_full(const struct perf_map *map)
{
	return map->count >= PERF_MAP_RANGES_MAX;
}

const char *perf_map__name(const struct perf_map *map, uint64_t address)
{
	size_t count = sorted__count_up_to(map->ranges, map->count, sizeof(*map->ranges), address);

	return count && address < map->ranges[count - 1].end
		       ? map->names + map->ranges[count - 1].name
		       : NULL;
}

size_t perf_map__bytes(const struct perf_map *map)
{
	return map->count * sizeof(*map->ranges) + map->names_capacity;
}
