/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that a target names or maps, and those of /proc that wait for its memory: each call is
 * one that it can have wait for ever, and fails as deputy.h says when it does. */
#ifndef PYBPFPROF_TARGET_FILES_H
#define PYBPFPROF_TARGET_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Opens the regular file at PATH for reading, for process PID.  Nothing else is opened: a device
 * may take that for a command, and a FIFO would wait.  A descriptor, or -errno. */
int target_file__open(pid_t pid, const char *path);

/* How long it is, in bytes, or -errno. */
int64_t target_file__size(pid_t pid, int fd);

/* Reads exactly LENGTH bytes at OFFSET of FD; returns whether it could. */
bool target_file__read(pid_t pid, int fd, void *buffer, size_t length, uint64_t offset);

void target_file__close(pid_t pid, int fd);

/* Whether PATH exists below the directory ROOT.  Neither a link nor ".." leads out of it, and
 * nothing is opened for reading. */
bool target_file__exists(pid_t pid, int root, const char *path);

/* As fopen(PATH), for reading. */
FILE *target_file__stream(pid_t pid, const char *path);

#endif
