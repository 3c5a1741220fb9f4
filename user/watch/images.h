/* SPDX-License-Identifier: BSD-2-Clause */
/* Remembers which files hold a Python, as found in processes.  What was found holds for every other
 * process that maps the same file. */
#ifndef PYBPFPROF_IMAGES_H
#define PYBPFPROF_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "python/runtime.h"
#include "sampling/mappings.h"
#include "sampling/target_map.h"

/* How many files are kept. */
#define IMAGES_MAX 4096

struct images;

/* Writes to MAP, which must outlive it.  Free with images__free, NULL too. */
struct images *images__new(struct target_map *map);
void images__free(struct images *images);

/* Tells BPF whether the file KEY holds a Python.  A process has its code at START; RUNTIME was
 * found in that process, NULL: no Python was.  BEGAN: its program began with the file. */
void images__learn(struct images *images, const struct file_key *key, uint64_t start, bool began,
		   const struct runtime *runtime);

/* The runtime of a process that maps file NUMBER at BIAS.  False if that file is not kept any more.
 */
bool images__runtime(const struct images *images, uint32_t number, uint64_t bias,
		     struct runtime *runtime);

/* Learns which of the COUNT files that process PID MAPPED holds RUNTIME; NULL: none holds a Python.
 */
void images__learn_mapped(struct images *images, pid_t pid, const struct mapped_file *mapped,
			  size_t count, const struct runtime *runtime);

/* Whether PART of a file is known to hold a Python; and whether it was learned in the last seconds
 * that it holds none. */
bool images__is_python(const struct images *images, const struct file_part *part);
bool images__is_plain(const struct images *images, const struct file_part *part, int64_t now);

#endif
