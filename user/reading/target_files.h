/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that a target names or maps, and those of /proc for which the kernel reads its memory.
 * The target can block each of these calls for ever; then they fail as in reader.h. */
#ifndef PYBPFPROF_TARGET_FILES_H
#define PYBPFPROF_TARGET_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens the regular file at PATH for reading, on behalf of process PID.  Other files are not
 * opened: that may trigger a device, and would block on a FIFO.  Returns a descriptor, or -errno.
 */
int target_file__open(pid_t pid, const char *path);

/* The same for PATH below the directory ROOT.  -EPERM unless the file is OWNER's, or root's and
 * readable for all.  No link and no ".." is followed. */
int target_file__open_below(pid_t pid, int root, const char *path, uid_t owner);

/* The same for PATH as a process whose root directory is ROOT sees it: no link leads out of it. */
int target_file__open_in(pid_t pid, int root, const char *path);

/* A file and its state: changed contents give another identity. */
struct file_identity {
	uint64_t device, inode, size;
	int64_t modified_s, changed_s;
	uint32_t modified_ns, changed_ns;
};

/* Opens the directory at PATH as a starting point for other calls, and identifies it.  Returns a
 * descriptor, or -errno.  A network file system may be asked whether it still exists. */
int target_file__open_directory(pid_t pid, const char *path, struct file_identity *identity);

/* Identifies the open file FD, or the file at PATH, without asking a file system in user space.
 * Returns whether it could; for PATH 0 or -errno, -ENOTSUP if it is no regular file. */
bool target_file__identify(int fd, struct file_identity *identity);
int target_file__identify_path(pid_t pid, const char *path, struct file_identity *identity);

/* Its length in bytes, or -errno. */
int64_t target_file__size(pid_t pid, int fd);

/* Reads exactly LENGTH bytes at OFFSET of FD.  Returns whether it could. */
bool target_file__read(pid_t pid, int fd, void *buffer, size_t length, uint64_t offset);

void target_file__close(pid_t pid, int fd);

/* Whether PATH exists below the directory ROOT.  No link and no ".." leads out of it, and no file
 * is opened for reading. */
bool target_file__exists(pid_t pid, int root, const char *path);

#define TARGET_FILE_BLOCK_BYTES (128 * 1024)

/* Reads on in *FD, or from the start of PATH, a file of /proc, if *FD is -1: LENGTH bytes, but at
 * most TARGET_FILE_BLOCK_BYTES.  *FD is for reading on, or for close(2); -1 at the end of the file
 * and after an error.  Returns how many bytes, or -errno. */
ssize_t target_file__read_on(pid_t pid, const char *path, int *fd, void *buffer, size_t length);

#endif
