/* SPDX-License-Identifier: BSD-2-Clause */
/* Pythons that are not walked, whatever their version: they are named, and their samples counted.
 */
#ifndef PYBPFPROF_PYTHON_KIND_H
#define PYBPFPROF_PYTHON_KIND_H

#include <stdint.h>

#include "target/elf_image.h"

struct python_kind {
	const char *name;      /* "a 32-bit Python" */
	const char *supported; /* what is, in its place; NULL: this architecture's */
};

/* Which kind the Python in IMAGE is; NULL: one that may be walked. */
const struct python_kind *python_kind__of(struct elf_image *image);

/* What is supported in place of KIND: "64-bit Python". */
const char *python_kind__supported(const struct python_kind *kind);

#endif
