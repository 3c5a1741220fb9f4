/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of targets that were read: each once, however many processes have it. */
#ifndef PYBPFPROF_ELF_CACHE_H
#define PYBPFPROF_ELF_CACHE_H

#include <stdbool.h>

#include "elf/elf_image.h"
#include "reading/target_files.h"

/* As elf_image__open, but NULL also where the same file was found to be of no use before.  BUDGET
 * must live until elf_cache__release. */
struct elf_image *elf_cache__open(int fd, struct elf_budget *budget);

/* As elf_cache__open, for the file IDENTITY where that was read before.  Whether it was. */
bool elf_cache__find(const struct file_identity *identity, struct elf_budget *budget,
		     struct elf_image **image);

/* Ends the use of IMAGE, NULL too.  USEFUL: other processes that have it will be asked the same. */
void elf_cache__release(struct elf_image *image, bool useful);

/* Forgets the image whose use did not come to its end, for that who used it was left behind; where
 * there is one. */
void elf_cache__forget_used(void);

/* Closes what is only kept for the next one that asks.  Whether there was any; while none is in
 * use.
 */
bool elf_cache__close_kept(void);

#endif
