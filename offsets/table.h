/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PYBPFPROF_TABLE_H
#define PYBPFPROF_TABLE_H

#include "offsets.h"

#define PUBLISHED_MAX 64

/* Where _Py_DebugOffsets has a field's offset and the size of the field's struct: bytes from its
 * beginning. */
struct published {
	uint16_t field; /* of struct offsets */
	uint16_t offset_at;
	uint16_t size_at;
	uint16_t width; /* the field's own bytes; 0: no more fields */
};

/* One build of CPython: a column of table.txt. */
struct table {
	uint32_t major, minor;
	uint32_t last_micro; /* a minor version may have several: that with the first not before */
	enum build build;
	struct offsets offsets; /* its fields; the rest is offsets__lookup's */
	struct published published[PUBLISHED_MAX];
};

/* The table of Python 3.MINOR's last micro version; NULL where there is none. */
const struct table *table__find(uint32_t minor, enum build build);

#endif
