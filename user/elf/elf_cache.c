// SPDX-License-Identifier: BSD-2-Clause
/*
 * A machine may run a hundred processes of one file, and each process maps twenty other files that
 * hold no Python.  Each file is read once.  Device, inode, size and times identify it: a change of
 * its contents changes one of these.  Useful files stay open, with the symbols that were found in
 * them.  For the others the cache only keeps that they are of no use.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "elf/elf_cache.h"
#include "elf/elf_parts.h"
#include "reading/reader.h"
#include "reading/target_files.h"

#define IMAGES_MAX 16

/* A machine may create new files without end. */
#define FILES_MAX 65536

struct cached_file {
	struct file_identity identity; /* key */
	struct elf_image *image;       /* NULL if the file is of no use */
	UT_hash_handle hh;
};

static struct cached_file *files; /* least recently used first */
static size_t image_count;
static struct cached_file *used; /* NULL if none is in use */

/* The close comes last: its file system may block, and the caller is then abandoned (reader.h). */
static void forget(struct cached_file *file)
{
	struct elf_image *image = file->image;

	image_count -= image != NULL;
	if (used == file)
		used = NULL;
	HASH_DEL(files, file);
	free(file);
	elf_image__close(image);
}

/* Forgets the least recently used file; if IMAGE, the least recently used of the open ones. */
static void forget_oldest(bool image)
{
	struct cached_file *file = files;

	while (file && image && !file->image)
		file = file->hh.next;
	if (file)
		forget(file);
}

/* Whether every read was done.  A skipped part may be the one that was looked for. */
static bool is_whole(const struct elf_budget *budget)
{
	return !budget->exceeded && reader__missed(budget->pid) == budget->missed;
}

/* Adds FILE as the most recently used one. */
static void take(struct cached_file *file)
{
	HASH_ADD(hh, files, identity, sizeof(file->identity), file);
	used = file;
}

bool elf_cache__find(const struct file_identity *identity, struct elf_budget *budget,
		     struct elf_image **image)
{
	struct cached_file *file = HASH_GET(hh, files, identity);

	if (!file)
		return false;
	HASH_DEL(files, file);
	take(file);
	if (file->image)
		elf_image__set_budget(file->image, budget);
	*image = file->image;
	return true;
}

struct elf_image *elf_cache__open(int fd, struct elf_budget *budget)
{
	struct file_identity identity;
	struct elf_image *image;
	struct cached_file *file;

	if (!target_file__identify(fd, &identity)) {
		target_file__close(budget->pid, fd);
		return NULL;
	}
	if (elf_cache__find(&identity, budget, &image)) {
		target_file__close(budget->pid, fd);
		return image;
	}
	image = elf_image__open(fd, budget);
	if (!image && !is_whole(budget))
		return NULL;
	file = xcalloc(1, sizeof(*file));
	file->identity = identity;
	file->image = image;
	image_count += image != NULL;
	take(file);
	return image;
}

void elf_cache__release(struct elf_image *image, bool useful)
{
	struct cached_file *file = used;

	used = NULL;
	if (!image)
		return;
	if (!is_whole(image->budget)) {
		forget(file);
	} else if (!useful) {
		image_count--;
		file->image = NULL;
		elf_image__close(image);
	}
	if (image_count > IMAGES_MAX)
		forget_oldest(true);
	if (HASH_COUNT(files) > FILES_MAX)
		forget_oldest(false);
}

void elf_cache__forget_used(void)
{
	if (used)
		forget(used);
}

bool elf_cache__close_kept(void)
{
	bool any = image_count;

	while (image_count)
		forget_oldest(true);
	return any;
}
