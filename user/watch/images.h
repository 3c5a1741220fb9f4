/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that hold a Python, as processes that were examined have them: what holds for each other
 * process that maps the same file. */
#ifndef PYBPFPROF_IMAGES_H
#define PYBPFPROF_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "python/runtime.h"
#include "sampling/target_map.h"

/* So many files are kept at a time. */
#define IMAGES_MAX 4096

struct images;

/* Tells MAP, which must outlive it.  Free with images__free, NULL too. */
struct images *images__new(struct target_map *map);
void images__free(struct images *images);

/* A file that the kernel knows by KEY has its code at START in a process in which RUNTIME was
 * found; NULL: no Python was.  BEGAN: it is the file that its program began with.  Tells the kernel
 * side whether it holds a Python. */
void images__learn(struct images *images, const struct file_key *key, uint64_t start, bool began,
		   const struct runtime *runtime);

/* What a process runs that has image NUMBER at BIAS; false where that is not kept any more. */
bool images__runtime(const struct images *images, uint32_t number, uint64_t bias,
		     struct runtime *runtime);

#endif
