/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of files that processes have mapped: those of one kind. */
#ifndef PYBPFPROF_FILE_PARTS_H
#define PYBPFPROF_FILE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampling/mappings.h"

struct known_part;

/* With zeroes: none. */
struct file_parts {
	struct known_part *all;
	int64_t since_ns;
};

void file_parts__add(struct file_parts *parts, const struct file_part *part);

/* Of the COUNT that are MAPPED, adds those that process PID has still: what it had before may have
 * been of another kind. */
void file_parts__add_mapped(struct file_parts *parts, pid_t pid, const struct mapped_file *mapped,
			    size_t count);

bool file_parts__has(const struct file_parts *parts, const struct file_part *part);

/* What is written to a file meanwhile nobody tells: after a while all are forgotten. */
void file_parts__age(struct file_parts *parts, int64_t now);

void file_parts__free(struct file_parts *parts);

#endif
