/* SPDX-License-Identifier: BSD-2-Clause */
/* Durations, sizes and moments as users write them. */
#ifndef PYBPFPROF_QUANTITY_H
#define PYBPFPROF_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

/* These return false, and leave the result undefined, if the whole TEXT is not valid. */

/* A finite number at the start of TEXT; *END is what follows. */
bool quantity__number(const char *text, double *number, char **end);

/* "30", "1.5", "90s", "2m", "10min", "1h", "1d", "1w", in seconds: more than 0, up to 10 years. */
bool quantity__duration(const char *text, double *seconds);

/* "500M", "2G", or a number of bytes: from 1M to 64T. */
bool quantity__size(const char *text, uint64_t *bytes);

/* A moment, in nanoseconds since 1970: a duration before NOW_UNIX_NS; "01:20", the last one before
 * NOW_UNIX_NS; "2026-01-02", "2026-01-02 03:04", or a time of RFC 3339.  Without a zone it is local
 * time. */
bool quantity__moment(const char *text, int64_t now_unix_ns, int64_t *unix_ns);

/* UNIX_NS to the second, as "2026-01-02T03:04:05Z"; the caller frees. */
char *quantity__moment_text(int64_t unix_ns);

#endif
