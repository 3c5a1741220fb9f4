// SPDX-License-Identifier: BSD-2-Clause
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash_table.h"
#include "target/deputy.h"
#include "target/root_folder.h"
#include "target/short_filename.h"

/* A process may have names without end. */
#define NAMES_MAX 65536

struct short_name {
	char *filename; /* key */
	char *text;
	UT_hash_handle hh;
};

struct place {
	uint64_t device, inode, mounts;
};

struct root_folder {
	struct place place; /* key */
	int root, mounts;   /* as long as they are open, no other one has their numbers */
	size_t users;
	struct short_name *names;
	UT_hash_handle hh;
};

static void close_both(int root, int mounts)
{
	if (root >= 0)
		close(root);
	if (mounts >= 0)
		close(mounts);
}

struct root_folder *root_folder__open(struct root_folder **all, pid_t pid)
{
	struct file_identity directory;
	int root = short_filename__open_root(pid, &directory);
	int mounts = short_filename__open_mounts(pid);
	struct root_folder *folder = NULL;
	struct stat space = { 0 };
	struct place place;

	if (root < 0 || (mounts >= 0 && fstat(mounts, &space))) {
		close_both(root, mounts);
		return NULL;
	}
	place = (struct place){ directory.device, directory.inode, space.st_ino };
	HASH_FIND(hh, *all, &place, sizeof(place), folder);
	if (folder) {
		close_both(root, mounts);
	} else {
		folder = xcalloc(1, sizeof(*folder));
		folder->place = place;
		folder->root = root;
		folder->mounts = mounts;
		HASH_ADD(hh, *all, place, sizeof(folder->place), folder);
	}
	folder->users++;
	return folder;
}

struct root_folder *root_folder__share(struct root_folder *folder)
{
	if (folder)
		folder->users++;
	return folder;
}

void root_folder__close(struct root_folder **all, struct root_folder *folder)
{
	struct short_name *name, *next;

	if (!folder || --folder->users)
		return;
	HASH_ITER (hh, folder->names, name, next) {
		HASH_DEL(folder->names, name);
		free(name->filename);
		free(name->text);
		free(name);
	}
	close_both(folder->root, folder->mounts);
	HASH_DEL(*all, folder);
	free(folder);
}

char *root_folder__shorten(struct root_folder *folder, pid_t pid, const char *filename)
{
	struct short_name *name = NULL;
	uint64_t missed;
	char *text;

	if (!folder)
		return short_filename__of(pid, -1, filename);
	HASH_FIND_STR(folder->names, filename, name);
	if (name)
		return xstrdup(name->text);
	missed = deputy__missed(pid);
	text = short_filename__of(pid, folder->root, filename);
	/* What one process cannot be told, the next may. */
	if (HASH_COUNT(folder->names) == NAMES_MAX || deputy__missed(pid) != missed)
		return text;
	name = xcalloc(1, sizeof(*name));
	name->filename = xstrdup(filename);
	name->text = xstrdup(text);
	HASH_ADD_KEYPTR(hh, folder->names, name->filename, strlen(name->filename), name);
	return text;
}
