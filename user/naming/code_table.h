/* SPDX-License-Identifier: BSD-2-Clause */
/* The code objects of one process that are known, by address. */
#ifndef PYBPFPROF_CODE_TABLE_H
#define PYBPFPROF_CODE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "profile/ledger.h"
#include "python/code.h"
#include "sampling/targets.h"

/* Which instruction it is, in which copy. */
struct place {
	int32_t position;
	uint32_t copy;
};

struct known_location {
	struct place place; /* key */
	uint32_t location;
	uint64_t generation; /* of the copies that it was found in */
	UT_hash_handle hh;
};

struct known_code {
	uint64_t address;  /* key, with the next for those that were replaced */
	uint64_t identity; /* as a frame has it; 0: could not be read */
	struct code code;  /* zero where it could not be read ... */
	bool gone;	   /* ... because it had been freed, and perhaps replaced, by then */
	bool surplus;	   /* it stands for all that there is no room for */
	bool named; /* the user has set FUNCTION, which is its own, like the locations, since it was
		     * read last, and since code_table__begin_anew */
	uint32_t function;
	struct known_location *locations;
	UT_hash_handle hh;
};

struct code_table;

/* One that another has replaced, or that was freed.  It may come back. */
struct replaced_code {
	bool was_named;
	uint32_t function;
	bool alike; /* the other one lives, and by its own words is the same */
};

/* An empty table for TARGET, which must outlive it.  Free with code_table__free, NULL too. */
struct code_table *code_table__new(const struct target_process *target);
void code_table__free(struct code_table *table);

/* The code object that was at ADDRESS when its identity was IDENTITY (0: not known then), read
 * where it is not known; the surplus one where too many are.  Valid until the next call. */
struct known_code *code_table__get(struct code_table *table, uint64_t address, uint64_t identity);

/* Whether CODE is at its address still, so that what was read there is its own. */
bool code_table__is_in_place(const struct code_table *table, const struct known_code *code);

/* Takes CODE for what is at ADDRESS and has IDENTITY, without reading it, unless that is known by
 * name.  What CODE points to is the table's afterwards, or freed. */
void code_table__learn(struct code_table *table, uint64_t address, uint64_t identity,
		       struct code *code);

/* Whether one that a stack began with of late is another by now, or cannot be read: some are asked
 * about, where all would take too long. */
bool code_table__has_other_roots(const struct code_table *table);

/* A stack began with the code object at ADDRESS. */
void code_table__note_root(struct code_table *table, uint64_t address);

/* Whether nothing is new since the last check, and nothing waits for one. */
bool code_table__is_checked(const struct code_table *table);

/* Reads all identities again and forgets what is another one by now; returns how many code objects
 * have got a name that had none before. */
size_t code_table__check(struct code_table *table);

/* Those that were replaced since this was last called: how many.  Valid until the next call. */
size_t code_table__take_replaced(struct code_table *table, const struct replaced_code **replaced);

/* The next one after CODE, NULL: the first, that lies where another one gave way within the last
 * REUSED_CHECKS checks: more may come and go there than is seen.  NULL at the end. */
#define REUSED_CHECKS 50
const struct known_code *code_table__next_reused(const struct code_table *table,
						 const struct known_code *code);

/* What the user has set is void. */
void code_table__begin_anew(struct code_table *table);

/* Adds to CODE_OBJECTS and UNNAMED_CODE_OBJECTS. */
void code_table__account(const struct code_table *table, struct ledger *ledger);

#endif
