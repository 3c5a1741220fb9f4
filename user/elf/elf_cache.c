// SPDX-License-Identifier: BSD-2-Clause
/*
 * A machine has a hundred processes of one file, and each maps twenty others that
 * are no Python.  A file is known again by its device and inode, and is the same as
 * long as it has its size and times; a change of its contents changes one of these.
 * What is useful is kept open, with the symbols that were found in it; of the
 * others it is remembered that they are not.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "elf/elf_cache.h"
#include "elf/elf_parts.h"
#include "reading/deputy.h"
#include "reading/target_files.h"

#define IMAGES_MAX 16

/* Of files, of which a machine may make new ones without end. */
#define FILES_MAX 65536

struct cached_file {
	struct file_identity identity; /* key */
	struct elf_image *image;       /* NULL: of no use */
	UT_hash_handle hh;
};

static struct cached_file *files; /* the one that was used last at the end */
static size_t image_count;
static struct cached_file *used; /* NULL: none is in use */

/* Closes it last: who waits for its file system may be left behind there. */
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

/* Forgets what was not used for longest: IMAGE: of those that are kept open. */
static void forget_oldest(bool image)
{
	struct cached_file *file = files;

	while (file && image && !file->image)
		file = file->hh.next;
	if (file)
		forget(file);
}

/* Whether all was read that was asked for: what was left out may be what is looked for. */
static bool is_whole(const struct elf_budget *budget)
{
	return !budget->exceeded && deputy__missed(budget->pid) == budget->missed;
}

/* Has FILE at the end of the row. */
static void take(struct cached_file *file)
{
	HASH_ADD(hh, files, identity, sizeof(file->identity), file);
	used = file;
}

bool elf_cache__find(const struct file_identity *identity, struct elf_budget *budget,
		     struct elf_image **image)
{
	struct cached_file *file;

	HASH_FIND(hh, files, identity, sizeof(*identity), file);
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
