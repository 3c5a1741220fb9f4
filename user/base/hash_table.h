/* SPDX-License-Identifier: BSD-2-Clause */
/* uthash, with memory that is always there: by itself it would end the program without a word. */
#ifndef PYBPFPROF_HASH_TABLE_H
#define PYBPFPROF_HASH_TABLE_H

#include "base/xalloc.h"

#define uthash_malloc(size) xmalloc(size)

#include <uthash.h>

#endif
