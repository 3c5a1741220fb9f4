/* SPDX-License-Identifier: BSD-2-Clause */
/* Moments, as people write them. */
#ifndef PYBPFPROF_MOMENT_H
#define PYBPFPROF_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

/* "90s", "5m", "1h", "2d": so long before NOW; or RFC 3339: "2026-01-02T03:04:05Z", with fractions
 * and a zone as "+02:00".  False where TEXT is neither. */
bool moment__parse(const char *text, int64_t now_unix_ns, int64_t *unix_ns);

/* As RFC 3339, to the second, in UTC; the caller frees. */
char *moment__text(int64_t unix_ns);

#endif
