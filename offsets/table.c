// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>

#include "offsets.h"

/* The builds that have a file here, which generate.py writes: version, whether it is free-threaded,
 * the last part of its name. */
/* clang-format off */
#define BUILDS(X) \
	X(2, 7, false, 7) \
	X(3, 6, false, 6) \
	X(3, 7, false, 7) \
	X(3, 8, false, 8) \
	X(3, 9, false, 9) \
	X(3, 10, false, 10) \
	X(3, 11, false, 11) \
	X(3, 12, false, 12) \
	X(3, 13, false, 13) \
	X(3, 13, true, 13t) \
	X(3, 14, false, 14) \
	X(3, 14, true, 14t) \
	X(3, 15, false, 15) \
	X(3, 15, true, 15t)
/* clang-format on */

#define NEWEST 15 /* of Python 3 */

#define ABSENT		     OFFSET_ABSENT
#define OFFSET(field, value) offsets->field = value;

static void set_absent(struct offsets *offsets)
{
#define X(field) OFFSET(field, ABSENT)
	OFFSET_FIELDS(X)
#undef X
}

static void set_2_7(struct offsets *offsets)
{
#include "cpython-2.7.h"
}

static void set_3_6(struct offsets *offsets)
{
#include "cpython-3.6.h"
}

/* 3.7.0 to 3.7.3. */
static void set_3_7_0(struct offsets *offsets)
{
#include "cpython-3.7.0.h"
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

#define MICROS_MAX 0xff

static const struct table {
	uint32_t major, minor;
	uint32_t last_micro; /* of a minor version's tables the first that goes so far is right */
	bool free_threaded;
	void (*set)(struct offsets *offsets);
} tables[] = { { 3, 7, 3, false, set_3_7_0 },
#define X(major, minor, free_threaded, name) \
	{ major, minor, MICROS_MAX, free_threaded, set_##major##_##name },
	       BUILDS(X)
#undef X
};

static const struct table *find_table(uint32_t major, uint32_t minor, uint32_t micro,
				      bool free_threaded)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (tables[i].major == major && tables[i].minor == minor &&
		    tables[i].last_micro >= micro && tables[i].free_threaded == free_threaded)
			return &tables[i];
	return NULL;
}

int offsets__lookup(uint32_t version, bool free_threaded, struct offsets *offsets)
{
	uint32_t major = version >> 24, minor = version >> 16 & 0xff, micro = version >> 8 & 0xff;
	bool newer = major == 3 && minor > NEWEST;
	const struct table *table = find_table(major, newer ? NEWEST : minor, micro, free_threaded);

	if (!table)
		return -ENOTSUP;
	set_absent(offsets);
	table->set(offsets);
	offsets->version = version;
	offsets->unicode_width = 0;
	offsets->free_threaded = free_threaded;
	offsets->form = table->minor;
	offsets->moved = 0;
	return newer ? -ENODATA : 0;
}

const char *offsets__versions(void)
{
#define X(major, minor, free_threaded, name) ", " #major "." #name
	static const char separated[] = BUILDS(X);
#undef X

	return separated + 2;
}
