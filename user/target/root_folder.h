/* SPDX-License-Identifier: BSD-2-Clause */
/* The root directories of processes, most of which share one: what is found out below it for one
 * process holds for the others. */
#ifndef PYBPFPROF_ROOT_FOLDER_H
#define PYBPFPROF_ROOT_FOLDER_H

#include <sys/types.h>

struct root_folder;

/* In the table *ALL, at first NULL; NULL where process PID has ended.  It is kept open until each
 * process that has it has closed it, which is to be soon after its end, for until then nobody can
 * unmount what is below. */
struct root_folder *root_folder__open(struct root_folder **all, pid_t pid);
struct root_folder *root_folder__share(struct root_folder *folder);
void root_folder__close(struct root_folder **all, struct root_folder *folder);

/* What short_filename__of() has for FILENAME; FOLDER may be NULL.  The caller frees. */
char *root_folder__shorten(struct root_folder *folder, pid_t pid, const char *filename);

#endif
