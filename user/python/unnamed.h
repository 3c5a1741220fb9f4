/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the interpreters of a Python older than 3.10 by the memory of its process.  For programs
 * whose file has neither the symbols nor the section that lead to them. */
#ifndef PYBPFPROF_UNNAMED_H
#define PYBPFPROF_UNNAMED_H

#include <stdint.h>
#include <sys/types.h>

#include "elf/elf_image.h"
#include "python/runtime.h"

/* Finds the list of interpreters of the Python of VERSION in IMAGE, which process PID has mapped
 * with BIAS, and its build.  Sets RUNTIME->interpreters and ->offsets.  0; -EAGAIN with
 * RUNTIME->objection if no interpreter runs yet; -ENOTSUP, with an objection if the search was not
 * conclusive, without one if the version is not supported; -ESRCH, -EPERM and others if the process
 * cannot be read. */
int unnamed__find(pid_t pid, struct elf_image *image, uint64_t bias, uint32_t version,
		  struct runtime *runtime);

#endif
