// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>

#include "offsets.h"

/* The builds of Python 3 that have a file here, which generate.py writes: minor version, whether it
 * is free-threaded, name. */
/* clang-format off */
#define BUILDS(X) \
	X(7, false, 7) \
	X(8, false, 8) \
	X(9, false, 9) \
	X(10, false, 10) \
	X(11, false, 11) \
	X(12, false, 12) \
	X(13, false, 13) \
	X(13, true, 13t) \
	X(14, false, 14) \
	X(14, true, 14t) \
	X(15, false, 15) \
	X(15, true, 15t)
/* clang-format on */

#define NEWEST 15

#define ABSENT		     OFFSET_ABSENT
#define OFFSET(field, value) offsets->field = value;

static void set_absent(struct offsets *offsets)
{
#define X(field) OFFSET(field, ABSENT)
	OFFSET_FIELDS(X)
#undef X
}

static void set_3_7(struct offsets *offsets)
{
#include "cpython-3.7.h"
}

static void set_3_8(struct offsets *offsets)
{
#include "cpython-3.8.h"
}

static void set_3_9(struct offsets *offsets)
{
#include "cpython-3.9.h"
}

static void set_3_10(struct offsets *offsets)
{
#include "cpython-3.10.h"
}

static void set_3_11(struct offsets *offsets)
{
#include "cpython-3.11.h"
}

static void set_3_12(struct offsets *offsets)
{
#include "cpython-3.12.h"
}

static void set_3_13(struct offsets *offsets)
{
#include "cpython-3.13.h"
}

static void set_3_13t(struct offsets *offsets)
{
#include "cpython-3.13t.h"
}

static void set_3_14(struct offsets *offsets)
{
#include "cpython-3.14.h"
}

static void set_3_14t(struct offsets *offsets)
{
#include "cpython-3.14t.h"
}

static void set_3_15(struct offsets *offsets)
{
#include "cpython-3.15.h"
}

static void set_3_15t(struct offsets *offsets)
{
#include "cpython-3.15t.h"
}

static const struct table {
	uint32_t minor;
	bool free_threaded;
	void (*set)(struct offsets *offsets);
} tables[] = {
#define X(minor, free_threaded, name) { minor, free_threaded, set_3_##name },
	BUILDS(X)
#undef X
};

static const struct table *find_table(uint32_t minor, bool free_threaded)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (tables[i].minor == minor && tables[i].free_threaded == free_threaded)
			return &tables[i];
	return NULL;
}

int offsets__lookup(uint32_t version, bool free_threaded, struct offsets *offsets)
{
	uint32_t minor = version >> 16 & 0xff;
	const struct table *table;

	if (version >> 24 != 3)
		return -ENOTSUP;
	table = find_table(minor > NEWEST ? NEWEST : minor, free_threaded);
	if (!table)
		return -ENOTSUP;
	set_absent(offsets);
	table->set(offsets);
	offsets->version = version;
	offsets->free_threaded = free_threaded;
	offsets->form = table->minor;
	return minor > NEWEST ? -ENODATA : 0;
}

const char *offsets__versions(void)
{
#define X(minor, free_threaded, name) ", 3." #name
	static const char separated[] = BUILDS(X);
#undef X

	return separated + 2;
}
