/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that a program made while it ran.  A line of its perf map is "START SIZE NAME": two
 * hexadecimal numbers, and a name up to the end of the line.  Where lines overlap, the later one
 * wins, because addresses are used again.
 */
#ifndef PYBPFPROF_PERF_MAP_H
#define PYBPFPROF_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer lines are skipped. */
#define PERF_MAP_LINE_BYTES 4096

/* A map with this number of functions, or parts of them, takes no more lines. */
#define PERF_MAP_RANGES_MAX (1 << 20)

struct perf_map;

/* An empty one.  Free with perf_map__free, NULL too. */
struct perf_map *perf_map__new(void);
void perf_map__free(struct perf_map *map);

/* Takes whole lines from the beginning of LENGTH arbitrary BYTES.  Returns the number of bytes
 * taken.  The caller passes the rest again, which may contain whole lines, with more bytes behind
 * it.  0: there is no whole line, or the map is full. */
size_t perf_map__take(struct perf_map *map, const char *bytes, size_t length);

bool perf_map__is_full(const struct perf_map *map);

/* The name of the function at ADDRESS: any bytes but NUL.  The map owns it, and perf_map__take
 * invalidates it.  NULL: there is none. */
const char *perf_map__name(const struct perf_map *map, uint64_t address);

/* Bytes of memory in use. */
size_t perf_map__bytes(const struct perf_map *map);

#endif
