/* SPDX-License-Identifier: BSD-2-Clause */
/* The root directories of processes, most of which share one: what is found out below it for one
 * process holds for the others. */
#ifndef PYBPFPROF_ROOT_FOLDER_H
#define PYBPFPROF_ROOT_FOLDER_H

#include <sys/types.h>

#include "reading/target_files.h"

struct root_folder;

/* In the table *ALL, at first NULL; NULL where process PID has ended.  It is kept open until each
 * process that has it has closed it, which is to be soon after its end, for until then nobody can
 * unmount what is below. */
struct root_folder *root_folder__open(struct root_folder **all, pid_t pid);
struct root_folder *root_folder__share(struct root_folder *folder);
void root_folder__close(struct root_folder **all, struct root_folder *folder);

/* FILENAME of process PID from its top package down, "json/decoder.py": directories above it that
 * hold an __init__.py or an __init__.pyc, below the root FOLDER, belong to its name; in an archive,
 * all that could be packages.  Where they cannot be looked at, or FOLDER is NULL, its last part.  A
 * notebook's cell, which has no file, is "In [3]" if its name has that number, otherwise
 * "ipykernel/HASH.py".  The caller frees. */
char *root_folder__shorten(struct root_folder *folder, pid_t pid, const char *filename);

/* The root directory of process PID alone, and which one it is.  A descriptor, to be closed as
 * soon; or -errno. */
int root_folder__open_alone(pid_t pid, struct file_identity *identity);

#endif
