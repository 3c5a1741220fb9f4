/* SPDX-License-Identifier: BSD-2-Clause */
/* Which Python an ELF image holds: told by its contents, never by its name. */
#ifndef PYBPFPROF_PYTHON_VERSION_H
#define PYBPFPROF_PYTHON_VERSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "elf/elf_image.h"

/* Room for "3.13.0rc12+". */
#define PYTHON_VERSION_TEXT_MAX 16

/* The address that IMAGE gives to _PyRuntime (3.7 and later): by its symbol, or from 3.10 on by the
 * section of its own, which is still there where a program that exports no symbols was stripped. */
bool python_version__find_runtime(struct elf_image *image, uint64_t *address);

/* Whether IMAGE holds a CPython by its symbols or sections. */
bool python_version__is_named(struct elf_image *image);

/* Whether IMAGE holds a CPython by these or by its constants alone, or a PyPy. */
bool python_version__is_any(struct elf_image *image);

/* PY_VERSION_HEX of the interpreter in IMAGE, which process PID has mapped with BIAS: from
 * _Py_DebugOffsets (3.13 and later), Py_Version (3.11 and later), or the constants that every
 * build carries.  Of PyPy its own version, in the same form.  0 where it cannot be told. */
uint32_t python_version__detect(pid_t pid, struct elf_image *image, uint64_t bias);

/* "3.13.0", "3.15.0rc1"; of 0 "(unknown)". */
void python_version__format(uint32_t version, char text[PYTHON_VERSION_TEXT_MAX]);

/* Pythons that are not walked, whatever their version: they are named, and their samples counted.
 */
struct python_kind {
	const char *name;      /* "a 32-bit Python" */
	const char *supported; /* what is, in its place; NULL: this architecture's */
};

/* Which kind the Python in IMAGE is; NULL: one that may be walked. */
const struct python_kind *python_kind__of(struct elf_image *image);

#endif
