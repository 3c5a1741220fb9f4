/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Byte offsets of struct fields, for each version of CPython.
 *
 * table.txt has the offsets.  generate.py says which member of CPython's structs each
 * field is.  A field that a version does not have is OFFSET_ABSENT, which is not a
 * possible offset and never 0.  A version that is not in the table is refused: it never
 * gets the offsets of another version.
 */
#ifndef PYBPFPROF_OFFSETS_H
#define PYBPFPROF_OFFSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "offset_tables.h" /* OFFSET_FIELDS, made from table.txt */
#include "pybpfprof.h"

/* Builds of one version whose objects have different layouts. */
enum build {
	BUILD_WITH_GIL,
	BUILD_FREE_THREADED, /* 3.13 and later */
	BUILD_TRACING,	     /* with Py_TRACE_REFS: up to 3.7 every debug build */
};

/* Some are not offsets of members.  object_..._before are distances from there to an instance.
 * unicode_kind_bit is the first bit of the kind in the state: 3 bits, followed by those of compact
 * and ascii.  The unicode_..._size are where compact data begins; unicode_data_any is the pointer
 * to other data. */
struct offsets {
	uint32_t version;	/* PY_VERSION_HEX of the interpreter */
	uint32_t free_threaded; /* 1: the build without a GIL */
	uint32_t form;		/* minor version of the table: its own, or the newest */
	uint32_t moved;		/* 1: a published field is not where the table has it */
#define X(field) uint32_t field;
	OFFSET_FIELDS(X)
#undef X
};

/* Fills *OFFSETS for an interpreter of VERSION (PY_VERSION_HEX), built as BUILD.  0; -ENODATA if
 * that minor version is newer than all tables: *OFFSETS then is the newest table, and valid only
 * after debug_offsets__apply; -ENOTSUP if there is no table. */
int offsets__lookup(uint32_t version, enum build build, struct offsets *offsets);

/* The minor versions that have a table, "3.8, 3.9, ...".  "3.13t" is a free-threaded build, "3.7d"
 * a debug build. */
const char *offsets__versions(void);

/* Whether no table describes this build: it is a newer minor version, or published fields have
 * moved.  Fields that are not published may have moved too. */
static inline bool offsets__is_newer(const struct offsets *offsets)
{
	return offsets->moved || (offsets->version >> 16 & 0xff) > offsets->form;
}

/* Whether the _Py_DebugOffsets in the LENGTH bytes at BYTES, the beginning of _PyRuntime in 3.13
 * and later, belong to a free-threaded build: 0 or 1.  -EINVAL if they are not such a table. */
int debug_offsets__free_threaded(const uint8_t *bytes, size_t length);

/* Sets every field that the _Py_DebugOffsets in the LENGTH bytes at BYTES publish.  Other fields
 * keep their values; if offsets__is_newer() is true afterwards, some are derived or absent.  Any
 * bytes are safe.  0; -EINVAL if they are not such a table, belong to another build, or have
 * impossible offsets; -ENOTSUP if the form of the minor version is not known. */
int debug_offsets__apply(const uint8_t *bytes, size_t length, struct offsets *offsets);

/* The length of a table that debug_offsets__apply needs for OFFSETS, in bytes. */
size_t debug_offsets__length(const struct offsets *offsets);

/* Makes the layout that BPF uses from OFFSETS.  0; -EINVAL if a field is out of its bounds. */
int offsets__layout(const struct offsets *offsets, struct layout *layout);

#endif
