/* SPDX-License-Identifier: BSD-2-Clause */
/* Python dicts of a process that runs on, and the attributes of its objects. */
#ifndef PYBPFPROF_DICT_H
#define PYBPFPROF_DICT_H

#include <stddef.h>
#include <stdint.h>

#include "python/object.h"

/* A dict with more entries, used or once used, is refused, not cut. */
#define DICT_ENTRIES_MAX 65536

/* The addresses of a dict's keys and values; a value may be 0. */
struct dict {
	uint64_t address; /* 0: what has the values has no dict */
	uint64_t *keys, *values;
	size_t count;
};

/* Reads the dict at ADDRESS, which may be anything.  0 with *DICT for dict__free; -EFAULT where
 * memory is not readable; -EINVAL where what is there is no dict. */
int dict__read(struct object_reader *reader, uint64_t address, struct dict *dict);

/* The same for the attributes of the object at ADDRESS itself: an instance's or a module's. */
int dict__read_attributes(struct object_reader *reader, uint64_t address, struct dict *dict);

/* Frees what DICT points to; a zeroed one is fine. */
void dict__free(struct dict *dict);

/* The address of the value whose key is the ASCII text NAME; 0 where there is none.  *KEY becomes
 * the address of that key.  Where it is one already, of another dict, it is tried first: what one
 * program text names is mostly one object. */
uint64_t dict__find(const struct object_reader *reader, const struct dict *dict, const char *name,
		    uint64_t *key);

#endif
