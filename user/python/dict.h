/* SPDX-License-Identifier: BSD-2-Clause */
/* Dicts of a running process, and the attributes of its objects. */
#ifndef PYBPFPROF_DICT_H
#define PYBPFPROF_DICT_H

#include <stddef.h>
#include <stdint.h>

#include "python/object.h"

/* A dict with more entries, deleted ones included, is refused. */
#define DICT_ENTRIES_MAX 65536

/* The addresses of a dict's keys and values; a value may be 0. */
struct dict {
	uint64_t address; /* 0: the values are not those of a dict object */
	uint64_t *keys, *values;
	size_t count;
};

/* Reads the dict at ADDRESS, which may be any address.  0 with *DICT, for dict__free; -EFAULT if
 * memory is not readable; -EINVAL if there is no dict, or one that is refused. */
int dict__read(struct object_reader *reader, uint64_t address, struct dict *dict);

/* Reads the attributes of the instance or module at ADDRESS in the same way. */
int dict__read_attributes(struct object_reader *reader, uint64_t address, struct dict *dict);

/* Frees what DICT points to.  DICT may be zeroed. */
void dict__free(struct dict *dict);

/* The address of the value for the key NAME, an ASCII text; 0 if there is none.  *KEY becomes the
 * address of the key.  If it is not 0, that key, from another dict, is tried first: equal names in
 * one program are mostly one object. */
uint64_t dict__find(const struct object_reader *reader, const struct dict *dict, const char *name,
		    uint64_t *key);

#endif
