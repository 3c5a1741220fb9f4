/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that one program made while it ran, as the lines of a perf map have them:
 * "START SIZE NAME", hexadecimal, the name up to the end of the line.  Where lines overlap, the
 * later one holds: an address may be used again.
 */
#ifndef PYBPFPROF_PERF_MAP_H
#define PYBPFPROF_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line that is longer is skipped. */
#define PERF_MAP_LINE_BYTES 4096

/* A map takes no more lines once it has this many functions or parts of such. */
#define PERF_MAP_RANGES_MAX (1 << 20)

struct perf_map;

/* An empty one.  Free with perf_map__free, NULL too. */
struct perf_map *perf_map__new(void);
void perf_map__free(struct perf_map *map);

/* Takes whole lines from the beginning of the LENGTH bytes at BYTES, which may be any.  Returns how
 * many bytes it has taken: the rest, which may have whole lines, is to be given again, with more
 * behind it.  0: there is no whole line, or the map is full. */
size_t perf_map__take(struct perf_map *map, const char *bytes, size_t length);

bool perf_map__is_full(const struct perf_map *map);

/* The name of the function that has ADDRESS, any bytes but NUL; the map's own, until it takes more.
 * NULL: none has. */
const char *perf_map__name(const struct perf_map *map, uint64_t address);

/* How much memory it takes. */
size_t perf_map__bytes(const struct perf_map *map);

#endif
