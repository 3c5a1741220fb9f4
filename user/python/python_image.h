/* SPDX-License-Identifier: BSD-2-Clause */
/* Examines one file of a process for a Python, by its contents: its version, its layout, and where
 * its interpreters are. */
#ifndef PYBPFPROF_PYTHON_IMAGE_H
#define PYBPFPROF_PYTHON_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "elf/elf_image.h"
#include "python/runtime.h"

/* Whether IMAGE holds a CPython, by symbols, sections or constants, or a PyPy. */
bool python_image__is_any(struct elf_image *image);

/* PY_VERSION_HEX of the interpreter in IMAGE, which process PID has mapped with BIAS; 0 if it is
 * not known.  It comes from _Py_DebugOffsets (3.13 and later), Py_Version (3.11 and later), or
 * constants of the program.  For PyPy it is PyPy's own version, in the same form. */
uint32_t python_image__version(pid_t pid, struct elf_image *image, uint64_t bias);

/* "3.13.0" or "3.15.0rc1"; "(unknown)" for 0. */
void python_image__format_version(uint32_t version, char text[PYTHON_VERSION_TEXT_MAX]);

/* Examines IMAGE, which process PID has mapped with BIAS.  Sets all of RUNTIME but its text and
 * thread area.  0, or an error of runtime__find(). */
int python_image__examine(pid_t pid, struct elf_image *image, uint64_t bias,
			  struct runtime *runtime);

#endif
