/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where CPython keeps what: byte offsets of struct fields, for each version.
 *
 * table.txt has them, and generate.py from which member of CPython's structs each
 * field is.  A field that a version does not have is OFFSET_ABSENT, which is no
 * offset a struct could have and never 0.  A version that is not in the table is
 * refused; it never gets its neighbour's.
 */
#ifndef PYBPFPROF_OFFSETS_H
#define PYBPFPROF_OFFSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "offset_tables.h" /* OFFSET_FIELDS, of table.txt */
#include "pybpfprof.h"

/* What a version is built as, as far as that lays out its objects in another way. */
enum build {
	BUILD_WITH_GIL,
	BUILD_FREE_THREADED, /* 3.13 and later */
	BUILD_TRACING,	     /* with Py_TRACE_REFS: up to 3.7 every debug build */
};

/* Not all are offsets of members: object_..._before are bytes from there to an instance,
 * unicode_kind_bit is a bit of the state, whose 3 bits those of compact and ascii follow, and the
 * unicode_..._size are where compact data begins; unicode_data_any is the pointer to other data. */
struct offsets {
	uint32_t version;	/* PY_VERSION_HEX of the interpreter */
	uint32_t free_threaded; /* 1: the build without a GIL */
	uint32_t form;		/* the minor version whose table this is: its own, or the newest */
	uint32_t moved;		/* 1: what is published is elsewhere than in that table */
#define X(field) uint32_t field;
	OFFSET_FIELDS(X)
#undef X
};

/* Fills *OFFSETS for an interpreter of VERSION (PY_VERSION_HEX), built as BUILD.
 * 0; -ENODATA where that minor version is newer than all tables: what *OFFSETS then has is the
 * newest one's, of which nothing is true before debug_offsets__apply; -ENOTSUP where there is no
 * table. */
int offsets__lookup(uint32_t version, enum build build, struct offsets *offsets);

/* "3.8, 3.9, ...": the minor versions that have a table; "3.13t" is a free-threaded build, "3.7d" a
 * debug build. */
const char *offsets__versions(void);

/* Whether OFFSETS are of a build that no table is of: of a newer minor version, or of one that laid
 * out in another way than its table what it publishes.  What is not published has moved then, too.
 */
static inline bool offsets__is_newer(const struct offsets *offsets)
{
	return offsets->moved || (offsets->version >> 16 & 0xff) > offsets->form;
}

/* Whether the _Py_DebugOffsets in the LENGTH bytes at BYTES (3.13 and later: the beginning of
 * _PyRuntime) are a free-threaded build's.  0 or 1; -EINVAL where they are no such table. */
int debug_offsets__free_threaded(const uint8_t *bytes, size_t length);

/* Sets every field that the _Py_DebugOffsets in the LENGTH bytes at BYTES publish; the others keep
 * their values, or where offsets__is_newer() then, become what follows from others, or absent.  The
 * bytes are a target's: any are safe. 0; -EINVAL where they are no such table, another build's, or
 * one whose offsets cannot be; -ENOTSUP where its minor version's form is not known. */
int debug_offsets__apply(const uint8_t *bytes, size_t length, struct offsets *offsets);

/* How many bytes of a table with the form of OFFSETS debug_offsets__apply takes. */
size_t debug_offsets__length(const struct offsets *offsets);

/* The kernel walker's part of OFFSETS.  0, or -EINVAL where a field does not fit its bounds. */
int offsets__layout(const struct offsets *offsets, struct layout *layout);

#endif
