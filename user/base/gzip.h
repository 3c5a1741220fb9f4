/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of zlib for everything that is compressed. */
#ifndef PYBPFPROF_GZIP_H
#define PYBPFPROF_GZIP_H

#include <zlib.h>

/* The default level takes three times as long and saves a twentieth. */
#define GZIP_LEVEL Z_BEST_SPEED

/* The largest window, with gzip's header and trailer; zlib's default memory. */
#define GZIP_WINDOW_BITS (15 + 16)
#define GZIP_MEMORY	 8

#endif
