/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's tracepoints, and what they are called with, from BTF: the kernel's description of
 * its own types.  A field is a number: an argument, or a member of a struct that an argument points
 * to. */
#ifndef PYBPFPROF_TRACEPOINT_TYPES_H
#define PYBPFPROF_TRACEPOINT_TYPES_H

#include <stdbool.h>

#include "pybpfprof.h"

/* The kernel's own BTF. */
#define BTF_PATH "/sys/kernel/btf/vmlinux"

struct btf;

/* Whether BTF has the tracepoint NAME, such as "net_dev_queue". */
bool tracepoint_types__have(const struct btf *btf, const char *name);

/* The names of tracepoints that differ from NAME by a few letters, or have it in them, "a, b"; ""
 * if there are none.  The caller frees. */
char *tracepoint_types__near(const struct btf *btf, const char *name);

/* Calls VISIT with each field of the tracepoint NAME until it returns false.  PATH is "skb.len" or
 * "prev.se.load.weight" for a member, "ret" or "arg0" for an argument, which is also ARGUMENT.
 * TYPE is as C has it.  What PATH and TYPE point to is gone after the call. */
void tracepoint_types__each_field(const struct btf *btf, const char *name,
				  bool (*visit)(void *context, const char *path, const char *type,
						const struct tracepoint_field *field),
				  void *context);

/* Finds the field PATH of the tracepoint NAME, which exists: as above, "arg0" for the first
 * argument, or "len" for that member of the first argument that has one.  NULL with *FIELD, or an
 * error message that the caller frees. */
char *tracepoint_types__find_field(const struct btf *btf, const char *name, const char *path,
				   struct tracepoint_field *field);

#endif
