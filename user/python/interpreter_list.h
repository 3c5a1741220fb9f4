/* SPDX-License-Identifier: BSD-2-Clause */
/* Where an interpreter without _PyRuntime (up to 3.6) has its list of interpreters. */
#ifndef PYBPFPROF_INTERPRETER_LIST_H
#define PYBPFPROF_INTERPRETER_LIST_H

#include <stdint.h>
#include <sys/types.h>

#include "target/elf_image.h"

/* Finds the variable that points to the newest interpreter of the Python in IMAGE, which process
 * PID has mapped with BIAS.  0; -ENODATA where the image does not tell; -errno where its code could
 * not be read. */
int interpreter_list__find(pid_t pid, struct elf_image *image, uint64_t bias, uint64_t *address);

#endif
