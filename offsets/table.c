// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "table.h"

#define ABSENT		     OFFSET_ABSENT
#define OFFSET(field, value) .field = (value),
#define PUBLISHED(name, offset_at, size_at, width) \
	{ offsetof(struct offsets, name), offset_at, size_at, width },

static const struct table tables[] = {
#include "offset_tables.h" /* includes every cpython-*.h */
};

#define TABLES	   (sizeof(tables) / sizeof(tables[0]))
#define MICROS_ALL 255
#define NAME_BYTES sizeof("255.255t, ")

static const struct table *find_table(uint32_t major, uint32_t minor, uint32_t micro,
				      enum build build)
{
	const struct table *found = NULL;

	for (size_t i = 0; i < TABLES; i++) {
		const struct table *table = &tables[i];

		if (table->major == major && table->minor == minor && table->build == build &&
		    table->last_micro >= micro && (!found || table->last_micro < found->last_micro))
			found = table;
	}
	return found;
}

const struct table *table__find(uint32_t minor, enum build build)
{
	return find_table(3, minor, MICROS_ALL, build);
}

/* Of Python 3. */
static uint32_t newest_minor(void)
{
	uint32_t newest = 0;

	for (size_t i = 0; i < TABLES; i++)
		if (tables[i].major == 3 && tables[i].minor > newest)
			newest = tables[i].minor;
	return newest;
}

int offsets__lookup(uint32_t version, enum build build, struct offsets *offsets)
{
	uint32_t major = version >> 24, minor = version >> 16 & 0xff, micro = version >> 8 & 0xff;
	uint32_t newest = newest_minor();
	bool newer = major == 3 && minor > newest;
	const struct table *table =
		find_table(major, newer ? newest : minor, newer ? MICROS_ALL : micro, build);

	if (!table)
		return -ENOTSUP;
	*offsets = table->offsets;
	offsets->version = version;
	offsets->free_threaded = build == BUILD_FREE_THREADED;
	offsets->form = table->minor;
	return newer ? -ENODATA : 0;
}

static int by_version(const void *one, const void *other)
{
	const struct table *a = *(const struct table *const *)one;
	const struct table *b = *(const struct table *const *)other;

	if (a->major != b->major)
		return a->major < b->major ? -1 : 1;
	if (a->minor != b->minor)
		return a->minor < b->minor ? -1 : 1;
	return (int)a->build - (int)b->build;
}

const char *offsets__versions(void)
{
	static const char *const letters[] = {
		[BUILD_WITH_GIL] = "", [BUILD_FREE_THREADED] = "t", [BUILD_TRACING] = "d"
	};
	static char text[TABLES * NAME_BYTES];
	const struct table *sorted[TABLES] = { 0 };
	size_t count = 0, length = 0;

	for (size_t i = 0; i < TABLES; i++)
		if (tables[i].last_micro == MICROS_ALL)
			sorted[count++] = &tables[i];
	qsort(sorted, count, sizeof(sorted[0]), by_version);
	for (size_t i = 0; i < count; i++)
		length += snprintf(text + length, sizeof(text) - length, "%s%u.%u%s", i ? ", " : "",
				   sorted[i]->major, sorted[i]->minor, letters[sorted[i]->build]);
	return text;
}
