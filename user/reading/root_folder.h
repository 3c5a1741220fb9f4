/* SPDX-License-Identifier: BSD-2-Clause */
/* The root directories of processes.  Most processes share one: what is found below it for one
 * process is true for the others. */
#ifndef PYBPFPROF_ROOT_FOLDER_H
#define PYBPFPROF_ROOT_FOLDER_H

#include <sys/types.h>

#include "reading/target_files.h"

struct root_folder;

/* Opens the root directory of process PID, in table *ALL, which is NULL at first.  NULL if the
 * process has ended.  The directory stays open until all its users have closed it.  Close it soon
 * after the process ends: nothing below it can be unmounted before. */
struct root_folder *root_folder__open(struct root_folder **all, pid_t pid);
struct root_folder *root_folder__share(struct root_folder *folder);
void root_folder__close(struct root_folder **all, struct root_folder *folder);

/* The name of FILENAME from its top package on: "json/decoder.py".  The folders above it that have
 * an __init__.py or __init__.pyc, below the root FOLDER, are part of the name; in an archive, all
 * that could be packages.  If they cannot be read, or FOLDER is NULL, it is the last part alone.  A
 * notebook's cell, which has no file, is "In [3]" if its name has that number, otherwise
 * "ipykernel/HASH.py".  The caller frees. */
char *root_folder__shorten(struct root_folder *folder, pid_t pid, const char *filename);

/* Opens and identifies the root directory of process PID, outside the table.  Returns a descriptor,
 * which is to be closed soon, or -errno. */
int root_folder__open_alone(pid_t pid, struct file_identity *identity);

#endif
