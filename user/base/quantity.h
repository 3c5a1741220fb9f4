/* SPDX-License-Identifier: BSD-2-Clause */
/* Durations, sizes and moments, as people write them. */
#ifndef PYBPFPROF_QUANTITY_H
#define PYBPFPROF_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

/* Each returns false, and leaves the result undefined, if TEXT is not one as a whole. */

/* A finite number at the start of TEXT; *END is what follows it. */
bool quantity__number(const char *text, double *number, char **end);

/* "30", "1.5", "90s", "2m", "10min", "1h", "1d", "1w" as seconds: more than 0, up to 10 years. */
bool quantity__duration(const char *text, double *seconds);

/* "500M", "2G" as bytes, without a letter bytes: from 1M to 64T. */
bool quantity__size(const char *text, uint64_t *bytes);

/* A moment as nanoseconds since 1970: a duration before NOW_UNIX_NS; "01:20", the last one before
 * it; "2026-01-02", "2026-01-02 03:04", or a time of RFC 3339.  Local time, without a zone. */
bool quantity__moment(const char *text, int64_t now_unix_ns, int64_t *unix_ns);

/* UNIX_NS, in seconds, as "2026-01-02T03:04:05Z"; the caller frees. */
char *quantity__moment_text(int64_t unix_ns);

#endif
