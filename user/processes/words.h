/* SPDX-License-Identifier: BSD-2-Clause */
/* The words of a /proc/PID/cmdline, in which a NUL ends each and one without was cut. */
#ifndef PYBPFPROF_WORDS_H
#define PYBPFPROF_WORDS_H

#include <string.h>

struct words {
	const char *next, *end;
};

/* The next word; NULL: there is none that is whole. */
static inline const char *words__take(struct words *words)
{
	const char *word = words->next;
	const char *nul = memchr(word, '\0', words->end - word);

	if (!nul)
		return NULL;
	words->next = nul + 1;
	return word;
}

#endif
