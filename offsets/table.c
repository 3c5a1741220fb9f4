// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>

#include "table.h"

/* By version; of the same minor version and build, by the last micro version. */
static const struct table tables[] = { OFFSET_TABLES };

#define TABLES	   (sizeof(tables) / sizeof(tables[0]))
#define MICROS_ALL 255

static const struct table *find_table(uint32_t major, uint32_t minor, uint32_t micro,
				      enum build build)
{
	for (size_t i = 0; i < TABLES; i++) {
		const struct table *table = &tables[i];

		if (table->major == major && table->minor == minor && table->build == build &&
		    table->last_micro >= micro)
			return table;
	}
	return NULL;
}

const struct table *table__find(uint32_t minor, enum build build)
{
	return find_table(3, minor, MICROS_ALL, build);
}

int offsets__lookup(uint32_t version, enum build build, struct offsets *offsets)
{
	uint32_t major = version >> 24, minor = version >> 16 & 0xff, micro = version >> 8 & 0xff;
	uint32_t newest = tables[TABLES - 1].minor;
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

const char *offsets__versions(void)
{
	return OFFSET_VERSIONS;
}
