/* SPDX-License-Identifier: BSD-2-Clause */
/* The versions that have tables, as consecutive minor versions. */
#ifndef MINOR_VERSIONS_H
#define MINOR_VERSIONS_H

#include "offsets.h"

/* 2.7 is version 5 here, below 3.6. */
#define PYTHON_2_7	    5
#define OLDEST_MINOR	    PYTHON_2_7
#define NEWEST_MINOR	    15
#define FREE_THREADED_SINCE 13
#define FIRST_PATCH	    0xf0

/* Debug builds before this version have their own tables. */
#define TABLE_FOR_DEBUG_BEFORE 8

static inline uint32_t version_of(unsigned int minor)
{
	return minor == PYTHON_2_7 ? 0x020700f0 : 3u << 24 | minor << 16 | FIRST_PATCH;
}

static inline struct offsets look_up(unsigned int minor)
{
	struct offsets offsets;

	assert_int_equal(offsets__lookup(version_of(minor), BUILD_WITH_GIL, &offsets), 0);
	return offsets;
}

static inline struct layout lay_out(unsigned int minor)
{
	struct offsets offsets = look_up(minor);
	struct layout layout;

	assert_int_equal(offsets__layout(&offsets, &layout), 0);
	return layout;
}

#endif
