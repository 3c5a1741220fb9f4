/* SPDX-License-Identifier: BSD-2-Clause */
/* How what leaves here is compressed, by zlib. */
#ifndef PYBPFPROF_GZIP_H
#define PYBPFPROF_GZIP_H

#include <zlib.h>

/* The default level takes three times as long, for a twentieth less. */
#define GZIP_LEVEL Z_BEST_SPEED

/* The largest window, with gzip's header and trailer; as much memory as by default. */
#define GZIP_WINDOW_BITS (15 + 16)
#define GZIP_MEMORY	 8

#endif
