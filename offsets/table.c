// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>

#include "offsets.h"

/* The minor versions of Python 3 that have a file here, which generate.py writes. */
#define MINOR_VERSIONS(X) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)

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

static void set_3_14(struct offsets *offsets)
{
#include "cpython-3.14.h"
}

static void set_3_15(struct offsets *offsets)
{
#include "cpython-3.15.h"
}

static const struct table {
	uint32_t minor;
	void (*set)(struct offsets *offsets);
} tables[] = {
#define X(minor) { minor, set_3_##minor },
	MINOR_VERSIONS(X)
#undef X
};

int offsets__lookup(uint32_t version, bool free_threaded, struct offsets *offsets)
{
	if (free_threaded || version >> 24 != 3)
		return -ENOTSUP;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (tables[i].minor != (version >> 16 & 0xff))
			continue;
		set_absent(offsets);
		tables[i].set(offsets);
		offsets->version = version;
		return 0;
	}
	return -ENOTSUP;
}

const char *offsets__versions(void)
{
#define X(minor) ", 3." #minor
	static const char separated[] = MINOR_VERSIONS(X);
#undef X

	return separated + 2;
}
