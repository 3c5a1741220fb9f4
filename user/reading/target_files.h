/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that a target names or maps, and those of /proc that wait for its memory: each call is
 * one that it can have wait for ever, and fails as deputy.h says when it does. */
#ifndef PYBPFPROF_TARGET_FILES_H
#define PYBPFPROF_TARGET_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens the regular file at PATH for reading, for process PID.  Nothing else is opened: a device
 * may take that for a command, and a FIFO would wait.  A descriptor, or -errno. */
int target_file__open(pid_t pid, const char *path);

/* The same of the one at PATH below the directory ROOT, if it is OWNER's, or root's and readable
 * for all: else -EPERM.  Neither a link nor ".." is followed. */
int target_file__open_below(pid_t pid, int root, const char *path, uid_t owner);

/* Which file it is, and in what state: one whose contents were changed has another one. */
struct file_identity {
	uint64_t device, inode, size;
	int64_t modified_s, changed_s;
	uint32_t modified_ns, changed_ns;
};

/* Opens the directory at PATH, for no more than to look below it, and says which one it is.  A
 * descriptor, or -errno.  A file system over a network may be asked whether it is still there. */
int target_file__open_directory(pid_t pid, const char *path, struct file_identity *identity);

/* What the open file FD is, as far as the kernel knows without asking a file system in user space;
 * whether it can be told.  The same of the one at PATH: 0 or -errno, -ENOTSUP where it is no
 * regular file. */
bool target_file__identify(int fd, struct file_identity *identity);
int target_file__identify_path(pid_t pid, const char *path, struct file_identity *identity);

/* How long it is, in bytes, or -errno. */
int64_t target_file__size(pid_t pid, int fd);

/* Reads exactly LENGTH bytes at OFFSET of FD; returns whether it could. */
bool target_file__read(pid_t pid, int fd, void *buffer, size_t length, uint64_t offset);

void target_file__close(pid_t pid, int fd);

/* Whether PATH exists below the directory ROOT.  Neither a link nor ".." leads out of it, and
 * nothing is opened for reading. */
bool target_file__exists(pid_t pid, int root, const char *path);

#define TARGET_FILE_START_BYTES (128 * 1024)

/* The beginning of the file at PATH, which is one of /proc: reads at most LENGTH bytes of it, and
 * of these at most TARGET_FILE_START_BYTES; and *FD from which the rest can be read on, -1 where
 * there is none.  How many, or -errno. */
ssize_t target_file__begin(pid_t pid, const char *path, void *buffer, size_t length, int *fd);

/* Reads on: at most LENGTH bytes, which are fewer where it likes.  How many; 0 at the end; or
 * -errno. */
ssize_t target_file__read_on(pid_t pid, int fd, void *buffer, size_t length);

#endif
