// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "naming/generated_functions.h"

/* A process may make functions without end. */
#define HELD_MAX 4096

/* What identifies a code object, in this process and in those that it was forked from. */
struct code_key {
	uint64_t address, identity;
};

struct shared_code {
	struct code_key key;
	uint32_t number;
	size_t users;
	UT_hash_handle hh;
};

struct generated_code {
	struct code_key key;
	struct shared_code *shared;
	UT_hash_handle hh;
};

struct generated_functions {
	struct shared_code *codes;
	uint32_t last; /* the number that was given out last */
};

struct generated_functions *generated_functions__new(void)
{
	return xcalloc(1, sizeof(struct generated_functions));
}

void generated_functions__free(struct generated_functions *all)
{
	free(all);
}

bool generated_functions__has(const struct code *code)
{
	static const char frozen[] = "<frozen ", lambda[] = "<lambda>", locals[] = "<locals>";
	const char *dot = strrchr(code->name, '.'), *name = dot ? dot + 1 : code->name;

	if (*code->filename != '<' || strncmp(code->filename, frozen, strlen(frozen)) == 0)
		return false;
	/* A module, a comprehension and the like have no other name. */
	if (*name == '<' && strcmp(name, lambda) != 0)
		return false;
	/* Its class is known where that was written around it. */
	return !dot || strstr(code->name, locals);
}

/* The code object of KEY, which one more process has. */
static struct shared_code *share(struct generated_functions *all, const struct code_key *key)
{
	struct shared_code *code;

	HASH_FIND(hh, all->codes, key, sizeof(*key), code);
	if (!code) {
		code = xcalloc(1, sizeof(*code));
		code->key = *key;
		code->number = ++all->last;
		HASH_ADD(hh, all->codes, key, sizeof(code->key), code);
	}
	code->users++;
	return code;
}

uint32_t generated_functions__number(struct generated_functions *all, struct generated_code **held,
				     uint64_t address, uint64_t identity)
{
	const struct code_key key = { address, identity };
	struct generated_code *code;

	HASH_FIND(hh, *held, &key, sizeof(key), code);
	if (code)
		return code->shared->number;
	if (HASH_COUNT(*held) == HELD_MAX)
		return 0;
	code = xcalloc(1, sizeof(*code));
	code->key = key;
	code->shared = share(all, &key);
	HASH_ADD(hh, *held, key, sizeof(code->key), code);
	return code->shared->number;
}

static void leave(struct generated_functions *all, struct shared_code *code)
{
	if (--code->users)
		return;
	HASH_DEL(all->codes, code);
	free(code);
}

void generated_functions__release(struct generated_functions *all, struct generated_code **held)
{
	struct generated_code *code, *next;

	HASH_ITER (hh, *held, code, next) {
		HASH_DEL(*held, code);
		leave(all, code->shared);
		free(code);
	}
}
