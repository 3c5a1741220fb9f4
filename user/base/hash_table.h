/* SPDX-License-Identifier: BSD-2-Clause */
/* uthash, with memory that is always there: by itself it would end the program without a word. */
#ifndef PYBPFPROF_HASH_TABLE_H
#define PYBPFPROF_HASH_TABLE_H

#include "base/xalloc.h"

#define uthash_malloc(size) xmalloc(size)

#include <uthash.h>

/* A bucket is split when it has so many.  Of ten, each is a read from somewhere else, which is what
 * a large table's time goes into; below six the table itself costs more than that. */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 6U

#endif
