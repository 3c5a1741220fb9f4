/* SPDX-License-Identifier: BSD-2-Clause */
/* Examines one file of a process for a Python: its layout, and where its interpreters are. */
#ifndef PYBPFPROF_PYTHON_IMAGE_H
#define PYBPFPROF_PYTHON_IMAGE_H

#include <stdint.h>
#include <sys/types.h>

#include "elf/elf_image.h"
#include "python/runtime.h"

/* Examines IMAGE, which process PID has mapped with BIAS.  Sets all of RUNTIME but its text and
 * thread area.  0, or an error of runtime__find(). */
int python_image__examine(pid_t pid, struct elf_image *image, uint64_t bias,
			  struct runtime *runtime);

#endif
