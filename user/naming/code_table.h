/* SPDX-License-Identifier: BSD-2-Clause */
/* The known code objects of one process, by address. */
#ifndef PYBPFPROF_CODE_TABLE_H
#define PYBPFPROF_CODE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "profile/ledger.h"
#include "python/code.h"
#include "sampling/targets.h"

/* An instruction, and the copy of the bytecode that it is in. */
struct place {
	int32_t position;
	uint32_t copy;
};

struct known_location {
	struct place place; /* key */
	uint32_t location;
	uint64_t generation; /* process_symbols.generation when it was found */
	UT_hash_handle hh;
};

struct known_code {
	uint64_t address;  /* key; in the table of replaced ones, with IDENTITY */
	uint64_t identity; /* 0 if it was not readable */
	struct code code;  /* zero if not readable ... */
	bool gone;	   /* ... because it had been freed or replaced */
	bool surplus;	   /* stands for all that the table has no room for */
	bool named;	   /* the user has set FUNCTION since the code object was read and since
			      code_table__begin_anew; the user owns FUNCTION and LOCATIONS */
	uint32_t function;
	struct known_location *locations;
	UT_hash_handle hh;
};

struct code_table;

/* A code object that was replaced or freed.  It may come back. */
struct replaced_code {
	bool was_named;
	uint32_t function;
	bool alike; /* its successor lives, and has the same words */
};

/* An empty table.  TARGET must outlive it.  Free with code_table__free, which takes NULL. */
struct code_table *code_table__new(const struct target_process *target);
void code_table__free(struct code_table *table);

/* The code object at ADDRESS with IDENTITY, 0 if that is not known.  A new one is read.  If the
 * table is full, the surplus one.  Valid until the next call. */
struct known_code *code_table__get(struct code_table *table, uint64_t address, uint64_t identity);

/* Whether CODE still is at its address.  If so, what was read there is its own. */
bool code_table__is_in_place(const struct code_table *table, const struct known_code *code);

/* Adds a copy of the code object with IDENTITY at ADDRESS, unless its names are known.  Takes over
 * what CODE points to. */
void code_table__learn(struct code_table *table, uint64_t address, uint64_t identity,
		       struct code *code);

/* Whether one of some recent outermost code objects was replaced, or cannot be read.  This replaces
 * a check of all where that would take too long. */
bool code_table__has_other_roots(const struct code_table *table);

/* A stack's outermost code object is at ADDRESS. */
void code_table__note_root(struct code_table *table, uint64_t address);

/* Whether the last check saw all code objects, and none has to be read again. */
bool code_table__is_checked(const struct code_table *table);

/* Reads all identities again, and retires what was replaced.  Returns how many code objects got
 * their first name. */
size_t code_table__check(struct code_table *table);

/* Returns the number of code objects that were replaced since the last call.  *REPLACED is valid
 * until the next call of any function. */
size_t code_table__take_replaced(struct code_table *table, const struct replaced_code **replaced);

/* The code object after CODE, or the first if CODE is NULL, whose address was reused within the
 * last REUSED_CHECKS checks.  Others may come and go there unseen.  NULL at the end. */
#define REUSED_CHECKS 50
const struct known_code *code_table__next_reused(const struct code_table *table,
						 const struct known_code *code);

/* Forgets everything that the user has set. */
void code_table__begin_anew(struct code_table *table);

/* Adds to code_objects and unnamed_code_objects of LEDGER. */
void code_table__account(const struct code_table *table, struct ledger *ledger);

#endif
