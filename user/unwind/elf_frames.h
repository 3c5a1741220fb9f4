/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the call frame information of an ELF file. */
#ifndef PYBPFPROF_ELF_FRAMES_H
#define PYBPFPROF_ELF_FRAMES_H

#include <stdint.h>

#include "elf/elf_image.h"
#include "unwind/cfi.h"

/* More than a file with 1 GiB of code has. */
#define ELF_FRAMES_BYTES_MAX (64ULL * 1024 * 1024)

/* Reads the .eh_frame of IMAGE into SECTION.  Section headers are not needed.  Returns its bytes,
 * which SECTION refers to and the caller frees.  NULL: there is none, it is too large, or the file
 * is for a machine that cfi.h does not know. */
void *elf_frames__load(struct elf_image *image, struct cfi_section *section);

#endif
