/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a file has the instructions that a probe traps. */
#ifndef PYBPFPROF_PROBE_PLACES_H
#define PYBPFPROF_PROBE_PLACES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "reading/target_files.h"

/* What to look for in a file. */
struct probe_name {
	const char *path;     /* as the target sees it */
	const char *provider; /* of a USDT probe; NULL: NAME is a function */
	const char *name;
};

struct probe_places {
	int fd; /* of the file */
	pid_t pid;
	struct file_identity identity;
	struct probe_place {
		uint64_t offset;  /* in the file */
		uint64_t counter; /* there, too: what the kernel increments while the probe is
				   * used; 0: nothing */
	} * places;
	size_t count;
	size_t refused; /* other places of the probe, which cannot be trapped */
};

/* None yet, for probe_places__find. */
#define NO_PROBE_PLACES       \
	(struct probe_places) \
	{                     \
		.fd = -1      \
	}

/* Finds the places of NAME, at least one, in the file that process PID has at its path.  FOUND is
 * what was found before; it is replaced unless the file is the same.  NULL, or an error message
 * that the caller frees. */
char *probe_places__find(pid_t pid, const struct probe_name *name, struct probe_places *found);
void probe_places__free(struct probe_places *found);

#endif
