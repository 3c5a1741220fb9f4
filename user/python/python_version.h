/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds which Python an ELF image holds, by its contents.  Its name does not matter. */
#ifndef PYBPFPROF_PYTHON_VERSION_H
#define PYBPFPROF_PYTHON_VERSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "elf/elf_image.h"

/* Room for "3.13.0rc12+". */
#define PYTHON_VERSION_TEXT_MAX 16

/* The address of _PyRuntime in IMAGE, from 3.7 on: by its symbol, or from 3.10 on by its section,
 * which remains if a program that exports no symbols is stripped. */
bool python_version__find_runtime(struct elf_image *image, uint64_t *address);

/* Whether symbols or sections show that IMAGE holds a CPython. */
bool python_version__is_named(struct elf_image *image);

/* Whether IMAGE holds a CPython, by these or by its constants alone, or a PyPy. */
bool python_version__is_any(struct elf_image *image);

/* PY_VERSION_HEX of the interpreter in IMAGE, which process PID has mapped with BIAS; 0 if it is
 * not known.  It comes from _Py_DebugOffsets (3.13 and later), Py_Version (3.11 and later), or
 * constants of the program.  For PyPy it is PyPy's own version, in the same form. */
uint32_t python_version__detect(pid_t pid, struct elf_image *image, uint64_t bias);

/* "3.13.0" or "3.15.0rc1"; "(unknown)" for 0. */
void python_version__format(uint32_t version, char text[PYTHON_VERSION_TEXT_MAX]);

/* A kind of Python that is not walked, whatever its version.  Its samples are counted. */
struct python_kind {
	const char *name;      /* "a 32-bit Python" */
	const char *supported; /* what is supported instead; NULL: this architecture's Python */
};

/* The kind of the Python in IMAGE; NULL if it may be walked. */
const struct python_kind *python_kind__of(struct elf_image *image);

#endif
