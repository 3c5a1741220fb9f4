/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a file has the instructions that a probe traps. */
#ifndef PYBPFPROF_PROBE_PLACES_H
#define PYBPFPROF_PROBE_PLACES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What to look for in a file. */
struct probe_name {
	const char *path;     /* as the target sees it */
	const char *provider; /* of a USDT probe; NULL: NAME is a function */
	const char *name;
};

struct probe_places {
	int fd; /* of the file, for close(2) */
	struct probe_place {
		uint64_t offset;  /* in the file */
		uint64_t counter; /* there, too: what the kernel increments while the probe is
				   * used; 0: nothing */
	} * places;
	size_t count; /* at least 1 */
};

/* Finds the places of NAME in the file that process PID has at its path.  NULL with *FOUND for
 * probe_places__free, or an error message that the caller frees. */
char *probe_places__find(pid_t pid, const struct probe_name *name, struct probe_places *found);
void probe_places__free(struct probe_places *found);

#endif
