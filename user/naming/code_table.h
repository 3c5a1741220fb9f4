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
	bool added;	   /* the user has set FUNCTION, which is its own, like the locations */
	uint32_t function;
	struct known_location *locations;
	UT_hash_handle hh;
};

struct code_table;

/* The user's word for a code object that was just read, or read again, or comes first since
 * code_table__begin_anew; sets CODE->function and CODE->added. */
typedef void (*code_table__added)(void *context, struct known_code *code);

/* The same for one that another has replaced, which is ALIKE: it lives, and by its own words is the
 * same; or that was freed.  It may come back, and is not added anew then. */
typedef void (*code_table__replaced)(void *context, const struct known_code *code, bool alike);

/* An empty table for TARGET, which must outlive it.  Free with code_table__free, NULL too. */
struct code_table *code_table__new(const struct target_process *target, code_table__added added,
				   code_table__replaced replaced, void *context);
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

/* Calls VISIT for each that lies where another one gave way within the last REUSED_CHECKS checks.
 */
typedef void (*code_table__visit)(void *context, const struct known_code *code);
void code_table__visit_reused(const struct code_table *table, code_table__visit visit,
			      void *context);

/* What the user has set is void: each is added anew when it is next got. */
void code_table__begin_anew(struct code_table *table);

/* Adds to CODE_OBJECTS and UNNAMED_CODE_OBJECTS. */
void code_table__account(const struct code_table *table, struct ledger *ledger);

#endif
