/* SPDX-License-Identifier: BSD-2-Clause */
/* Caches the files of targets.  A file is read once, however many processes map it. */
#ifndef PYBPFPROF_ELF_CACHE_H
#define PYBPFPROF_ELF_CACHE_H

#include <stdbool.h>

#include "elf/elf_image.h"
#include "reading/target_files.h"

/* Same as elf_image__open, but also NULL if the file is known to be of no use.  The cache owns the
 * image; the caller calls elf_cache__release.  BUDGET must live until then. */
struct elf_image *elf_cache__open(int fd, struct elf_budget *budget);

/* Same as elf_cache__open, for a file that was read before.  Returns false if IDENTITY is not
 * known. */
bool elf_cache__find(const struct file_identity *identity, struct elf_budget *budget,
		     struct elf_image **image);

/* Ends the use of IMAGE, which may be NULL.  USEFUL: the file is worth keeping open, because other
 * processes map it too. */
void elf_cache__release(struct elf_image *image, bool useful);

/* Forgets the image in use, if any.  Call it if the user was abandoned before it called
 * elf_cache__release. */
void elf_cache__forget_used(void);

/* Closes all images that are kept open.  Returns whether there were any.  No image may be in
 * use. */
bool elf_cache__close_kept(void);

#endif
