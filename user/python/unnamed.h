/* SPDX-License-Identifier: BSD-2-Clause */
/* The interpreters of a Python older than 3.10 whose file has neither symbols nor a section of its
 * own for them: found by what the process has in memory. */
#ifndef PYBPFPROF_UNNAMED_H
#define PYBPFPROF_UNNAMED_H

#include <stdint.h>
#include <sys/types.h>

#include "elf/elf_image.h"
#include "python/runtime.h"

/* Finds the list of interpreters of the Python of VERSION in IMAGE, which process PID has mapped
 * with BIAS, and how it was built: sets RUNTIME->interpreters and ->offsets.
 * 0; -EAGAIN, with RUNTIME->objection, where there is none that lives, so far; -ENOTSUP where it
 * cannot be told, with an objection, or the version is not supported, without; -ESRCH, -EPERM and
 * others where the process cannot be read. */
int unnamed__find(pid_t pid, struct elf_image *image, uint64_t bias, uint32_t version,
		  struct runtime *runtime);

#endif
