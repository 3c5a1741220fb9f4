// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "reading/reader.h"
#include "reading/process.h"
#include "reading/root_folder.h"

/* A process can make any number of names. */
#define NAMES_MAX 65536

/* Deeper than any package.  Each level costs a look at the target's file system, and a directory
 * with a link to itself has no end of levels. */
#define LEVELS_MAX 32

/* The file name of a notebook's cell begins with CELL and the number of the cell, or is in a folder
 * that KERNEL and the PID of the notebook's kernel end. */
#define CELL   "<ipython-input-"
#define KERNEL "/ipykernel_"
#define DIGITS "0123456789"

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
	int root, mounts;   /* while they are open, their inodes are not reused */
	size_t users;
	struct short_name *names;
	UT_hash_handle hh;
};

/* Whether the first LENGTH bytes of FILENAME, followed by END, exist. */
static bool has(pid_t pid, int root, const char *filename, size_t length, const char *end)
{
	char path[PATH_MAX];
	int bytes = snprintf(path, sizeof(path), "%.*s%s", (int)length, filename, end);

	return bytes > 0 && (size_t)bytes < sizeof(path) && target_file__exists(pid, root, path);
}

/* Code may come without its source. */
static bool is_package(pid_t pid, int root, const char *filename, size_t directory_length)
{
	return has(pid, root, filename, directory_length, "/__init__.py") ||
	       has(pid, root, filename, directory_length, "/__init__.pyc");
}

/* Where the last name in the first LENGTH bytes of PATH begins. */
static size_t name_start(const char *path, size_t length)
{
	while (length && path[length - 1] != '/')
		length--;
	return length;
}

/* The length of the directory above the name that begins at START of PATH; 0: the root.  "/./" and
 * "//" are no levels, as a target could add any number of them. */
static size_t directory_length(const char *path, size_t start)
{
	while (start && (path[start - 1] == '/' ||
			 (start > 1 && path[start - 1] == '.' && path[start - 2] == '/')))
		start--;
	return start;
}

/* The length of the path of the archive that the first LENGTH bytes of FILENAME are in, such as a
 * ZIP file on sys.path; 0: none.  It is a file in the place of a directory. */
static size_t archive_length(pid_t pid, int root, const char *filename, size_t length)
{
	for (int i = 0; i < LEVELS_MAX && length; i++) {
		if (has(pid, root, filename, length, "/."))
			return 0;
		if (has(pid, root, filename, length, ""))
			return length;
		length = directory_length(filename, name_start(filename, length));
	}
	return 0;
}

static bool is_letter(char byte)
{
	return byte == '_' || byte & 0x80 || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
}

/* Whether the LENGTH bytes at NAME can be a package's name: an identifier. */
static bool is_word(const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!is_letter(name[i]) && (!i || name[i] < '0' || name[i] > '9'))
			return false;
	return length;
}

/* Whether the directory that is the first LENGTH bytes of FILENAME is part of the short name.
 * Inside an archive, whose path has ARCHIVE bytes, nothing is looked up. */
static bool is_part(pid_t pid, int root, const char *filename, size_t length, size_t archive)
{
	size_t start = name_start(filename, length);

	if (!archive)
		return is_package(pid, root, filename, length);
	return length > archive && is_word(filename + start, length - start);
}

static const char *below_packages(pid_t pid, int root, const char *filename)
{
	size_t start = name_start(filename, strlen(filename));
	size_t directory = directory_length(filename, start);
	size_t archive = archive_length(pid, root, filename, directory);

	for (int i = 0; i < LEVELS_MAX && directory; i++) {
		if (!is_part(pid, root, filename, directory, archive))
			break;
		start = name_start(filename, directory);
		directory = directory_length(filename, start);
	}
	return directory ? filename + start : filename;
}

/* READER is a thread of process PID. */
static int open_root_of(pid_t pid, pid_t reader, struct file_identity *identity)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", reader);
	return target_file__open_directory(pid, path, identity);
}

int root_folder__open_alone(pid_t pid, struct file_identity *identity)
{
	int root = open_root_of(pid, pid, identity);

	return root >= 0 ? root : open_root_of(pid, process__reader(pid), identity);
}

/* The mount namespace of process PID.  While it is open, all mounts stay, even after the end of the
 * process.  Negative if it cannot be opened. */
static int open_mounts(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* "/tmp/ipykernel_PID/HASH.py": the name has no number of a cell. */
static bool is_in_kernel(const char *filename, const char *last)
{
	size_t hash = strspn(last + 1, DIGITS), length = strlen(KERNEL);
	const char *at = last;

	while (at > filename && isdigit((unsigned char)at[-1]))
		at--;
	return hash && strcmp(last + 1 + hash, ".py") == 0 && at < last &&
	       (size_t)(at - filename) >= length && strncmp(at - length, KERNEL, length) == 0;
}

/* NULL if FILENAME is no cell's. */
static char *name_cell(const char *filename)
{
	const char *last = strrchr(filename, '/'), *number = filename + strlen(CELL);

	if (last && is_in_kernel(filename, last))
		return xasprintf("ipykernel%s", last);
	if (strncmp(filename, CELL, strlen(CELL)) != 0 || !isdigit((unsigned char)*number))
		return NULL;
	return xasprintf("In [%.*s]", (int)strspn(number, DIGITS), number);
}

/* As root_folder__shorten(), below the directory ROOT. */
static char *shorten(pid_t pid, int root, const char *filename)
{
	const char *last = strrchr(filename, '/');
	char *cell = name_cell(filename);

	if (cell)
		return cell;
	if (filename[0] != '/' || !last[1])
		return xstrdup(filename);
	return xstrdup(root >= 0 ? below_packages(pid, root, filename) : last + 1);
}

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
	int root = root_folder__open_alone(pid, &directory);
	int mounts = open_mounts(pid);
	struct root_folder *folder = NULL;
	struct stat space = { 0 };
	struct place place;

	if (root < 0 || (mounts >= 0 && fstat(mounts, &space))) {
		close_both(root, mounts);
		return NULL;
	}
	place = (struct place){ directory.device, directory.inode, space.st_ino };
	folder = HASH_GET(hh, *all, &place);
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
		return shorten(pid, -1, filename);
	HASH_FIND_STR(folder->names, filename, name);
	if (name)
		return xstrdup(name->text);
	missed = reader__missed(pid);
	text = shorten(pid, folder->root, filename);
	/* Do not remember a name that is incomplete: for another process it may succeed. */
	if (HASH_COUNT(folder->names) == NAMES_MAX || reader__missed(pid) != missed)
		return text;
	name = xcalloc(1, sizeof(*name));
	name->filename = xstrdup(filename);
	name->text = xstrdup(text);
	HASH_ADD_KEYPTR(hh, folder->names, name->filename, strlen(name->filename), name);
	return text;
}
