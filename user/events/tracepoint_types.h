/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's tracepoints and their fields, from BTF, the kernel's description of its own types.
 * A field is a number: an argument, or a member of a struct that an argument points to. */
#ifndef PYBPFPROF_TRACEPOINT_TYPES_H
#define PYBPFPROF_TRACEPOINT_TYPES_H

#include <stdbool.h>

#include "pybpfprof.h"

#define BTF_PATH "/sys/kernel/btf/vmlinux"

struct btf;

/* Whether BTF has the tracepoint NAME, such as "net_dev_queue". */
bool tracepoint_types__have(const struct btf *btf, const char *name);

/* Lists tracepoints whose names differ from NAME by a few letters, or otherwise those whose names
 * contain it: "a, b", or "" if there are none.  The caller frees it. */
char *tracepoint_types__near(const struct btf *btf, const char *name);

/* Calls VISIT with each field of the tracepoint NAME until it returns false.  The PATH of a member
 * is such as "skb.len" or "prev.se.load.weight".  That of an argument is its name, such as "ret",
 * or "arg0" if BTF does not name the first one.  TYPE is as C writes it.  PATH and TYPE are valid
 * only during the call. */
void tracepoint_types__each_field(const struct btf *btf, const char *name,
				  bool (*visit)(void *context, const char *path, const char *type,
						const struct tracepoint_field *field),
				  void *context);

/* Finds the field PATH of the tracepoint NAME, which exists.  PATH is as above, or "arg0" for the
 * first argument, or "len" for the first member of that name.  NULL with *FIELD, or an error
 * message that the caller frees. */
char *tracepoint_types__find_field(const struct btf *btf, const char *name, const char *path,
				   struct tracepoint_field *field);

#endif
