/* SPDX-License-Identifier: BSD-2-Clause */
/* Where an ELF file has its call frame information. */
#ifndef PYBPFPROF_ELF_FRAMES_H
#define PYBPFPROF_ELF_FRAMES_H

#include <stdint.h>

#include "elf/elf_image.h"
#include "unwind/cfi.h"

/* More than a file with 1 GiB of code has. */
#define ELF_FRAMES_BYTES_MAX (64ULL * 1024 * 1024)

/* Reads the .eh_frame of IMAGE, which need not have section headers, and describes it in SECTION.
 * Returns its bytes, which the caller frees and SECTION refers to; NULL where there is none, or it
 * is too large, or the file is for another machine than those of cfi.h. */
void *elf_frames__load(struct elf_image *image, struct cfi_section *section);

#endif
