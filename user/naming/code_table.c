// SPDX-License-Identifier: BSD-2-Clause
/*
 * A code object is copied by the kernel when the first stack with it is defined, or
 * else read here, once, while its process most likely still lives.  Between the sample
 * and that moment, and later on, its address may be used again for another one.  The kernel tells
 * with each definition what identified it at the sample; here the same is read again, after the
 * names, and once in a while for all that are known, many in one system call.
 *
 * Where a few take turns at an address, each comes back when its names may be gone once
 * more, and the kernel takes it for known: those that were replaced last are kept.
 */
#include <stdlib.h>
#include <string.h>

#include "base/now.h"
#include "base/xalloc.h"
#include "naming/code_identity.h"
#include "naming/code_table.h"
#include "reading/deputy.h"

/* What all names and line tables of a process may take; a target may make one code object after
 * another. */
#define HELD_BYTES_MAX (256 * 1024 * 1024)

/* The same of all processes: a program that forks ever anew would have as much for each child. */
#define HELD_BY_ALL_MAX (4LL * HELD_BYTES_MAX)

/* To read them may take so much CPU time, and from then on one part of so many of the time that
 * passes: the others wait for the next check, for each sample may bring a thousand new ones. */
#define READING_NS   2000000000LL
#define READING_PART 4

/* So many are known of a process: each frame of each sample of a hostile one may be another's. */
#define CODES_MAX (128 * 1024)

/* So many of those that were replaced are kept, if they take no more than half of that: a CPU does
 * not copy again what it remembers to have copied, and a process that comes back to one of the few
 * that it runs on may show what was replaced there long ago. */
#define FORMER_MAX (4 * COPIED_CODES)

/* So many that stacks began with are asked about between checks. */
#define ROOTS 8

/* So many addresses at which one gave way are known: a target may have as many as it likes. Beyond,
 * those are forgotten at which nothing happened for longest. */
#define REUSED_MAX (16 * 1024)

struct reused_address {
	uint64_t address; /* key */
	uint64_t check;	  /* the last one before it was used again */
	UT_hash_handle hh;
};

struct code_table {
	const struct target_process *target;
	struct known_code *codes;  /* by address */
	struct known_code *former; /* by address and identity, the one replaced last at the end */
	struct reused_address *reused;	/* the one that was added last at the end */
	uint64_t checks;		/* so far */
	struct replaced_code *replaced; /* since they were taken */
	size_t replaced_count, replaced_capacity;
	struct known_code surplus;
	uint64_t objects, unnamed; /* so far */
	size_t unnamed_now;	   /* of those in CODES */
	size_t named;		   /* by copies, since the last check */
	uint64_t roots[ROOTS];	   /* addresses of those that stacks began with of late */
	size_t last_root;
	uint64_t checked; /* of OBJECTS, at the last check */
	size_t held;	  /* bytes, of all */
	int64_t start_ns, reading_ns;
};

/* Bytes, of all tables that there are. */
static int64_t held_by_all;

struct code_table *code_table__new(const struct target_process *target)
{
	struct code_table *table = xcalloc(1, sizeof(*table));

	table->target = target;
	table->start_ns = now_ns();
	return table;
}

static void forget_locations(struct known_code *code)
{
	struct known_location *location, *next;

	HASH_ITER (hh, code->locations, location, next) {
		HASH_DEL(code->locations, location);
		free(location);
	}
}

static size_t bytes_of(const struct code *code)
{
	return (code->name ? strlen(code->name) + strlen(code->filename) : 0) +
	       code->line_table_length;
}

/* TABLE has CODE from now on. */
static void hold(struct code_table *table, const struct code *code)
{
	table->held += bytes_of(code);
	held_by_all += bytes_of(code);
}

static bool may_hold_more(const struct code_table *table)
{
	return table->held < HELD_BYTES_MAX && held_by_all < HELD_BY_ALL_MAX;
}

static void free_code(struct code_table *table, struct known_code *code)
{
	table->held -= bytes_of(&code->code);
	held_by_all -= bytes_of(&code->code);
	code__free(&code->code);
}

static void forget(struct code_table *table, struct known_code **codes, struct known_code *code)
{
	forget_locations(code);
	HASH_DEL(*codes, code);
	free_code(table, code);
	free(code);
}

static void forget_reused(struct code_table *table, struct reused_address *reused)
{
	HASH_DEL(table->reused, reused);
	free(reused);
}

void code_table__free(struct code_table *table)
{
	if (!table)
		return;
	while (table->codes)
		forget(table, &table->codes, table->codes);
	while (table->former)
		forget(table, &table->former, table->former);
	while (table->reused)
		forget_reused(table, table->reused);
	free(table->replaced);
	free(table);
}

static struct reused_address *find_reused(const struct code_table *table, uint64_t address)
{
	struct reused_address *reused;

	HASH_FIND(hh, table->reused, &address, sizeof(address), reused);
	return reused;
}

/* One has given way at ADDRESS. */
static void note_reused(struct code_table *table, uint64_t address)
{
	struct reused_address *reused = find_reused(table, address);

	if (reused)
		HASH_DEL(table->reused, reused);
	else
		reused = xcalloc(1, sizeof(*reused));
	reused->address = address;
	reused->check = table->checks;
	HASH_ADD(hh, table->reused, address, sizeof(reused->address), reused);
	if (HASH_COUNT(table->reused) > REUSED_MAX)
		forget_reused(table, table->reused);
}

#define FORMER_KEY_BYTES offsetof(struct known_code, code) /* address and identity */

static struct known_code *find_former(const struct code_table *table, uint64_t address,
				      uint64_t identity)
{
	const struct known_code key = { .address = address, .identity = identity };
	struct known_code *code;

	HASH_FIND(hh, table->former, &key, FORMER_KEY_BYTES, code);
	return code;
}

static bool is_unnamed(const struct known_code *code)
{
	return !code->code.name && !code->code.hidden;
}

static bool lives(const struct code_table *table, const struct known_code *code)
{
	const struct runtime *runtime = &table->target->runtime;

	return code__is_alive(table->target->process.pid, &runtime->offsets, runtime->code_type,
			      code->address);
}

/* Whether what has IDENTITY is at CODE's address by now, and by its own words is CODE.  What was
 * freed may say still what it was, when its names are others' by now; and of what was replaced amid
 * the reading of IDENTITY, the words may be the old one's alone: that does not happen twice. */
static bool is_alike(const struct code_table *table, const struct known_code *code,
		     uint64_t identity)
{
	return code_identity_words(code->identity) == code_identity_words(identity) &&
	       code_identity__read(table->target, code->address) == identity && lives(table, code);
}

/* CODE has given way to one with IDENTITY.  What has no name is better read again. */
static void retire(struct code_table *table, struct known_code *code, uint64_t identity)
{
	/* First: this reads, and may not return. */
	const struct replaced_code replaced = {
		.was_named = code->named,
		.function = code->function,
		.alike = is_alike(table, code, identity),
	};

	table->replaced = xgrow(table->replaced, &table->replaced_capacity,
				table->replaced_count + 1, sizeof(*table->replaced));
	table->replaced[table->replaced_count++] = replaced;
	note_reused(table, code->address);
	table->unnamed_now -= is_unnamed(code);
	if (!code->code.name || find_former(table, code->address, code->identity)) {
		forget(table, &table->codes, code);
		return;
	}
	HASH_DEL(table->codes, code);
	HASH_ADD(hh, table->former, address, FORMER_KEY_BYTES, code);
	while (HASH_COUNT(table->former) > FORMER_MAX ||
	       (table->former && table->held > HELD_BYTES_MAX / 2))
		forget(table, &table->former, table->former);
}

/* The one with IDENTITY that was at ADDRESS before, and is again; NULL where none is kept. */
static struct known_code *revive(struct code_table *table, uint64_t address, uint64_t identity)
{
	struct known_code *code = find_former(table, address, identity);

	if (code) {
		HASH_DEL(table->former, code);
		HASH_ADD(hh, table->codes, address, sizeof(code->address), code);
	}
	return code;
}

/* Whether what has IDENTITY is not CODE.  What is hidden lives as long as the interpreter, and may
 * be no code object: what lies where a code object's fields would be changes then. */
static bool is_another(const struct known_code *code, uint64_t identity)
{
	return code_identity_differs(code->identity, identity) && !code->code.hidden;
}

/* Whether CODE, read once more, is the same.  Where code objects have no version, one may give way
 * to others and come back, alike in all that identifies it, between two of the reads. */
static bool is_consistent(const struct code_table *table, const struct known_code *code)
{
	const struct runtime *runtime = &table->target->runtime;
	const struct code *first = &code->code;
	struct code again;
	bool same;

	if (codes_have_versions(&runtime->layout))
		return true;
	if (code__read(table->target->process.pid, &runtime->offsets, runtime->code_type,
		       code->address, &again))
		return false;
	same = again.first_line == first->first_line && strcmp(again.name, first->name) == 0 &&
	       strcmp(again.filename, first->filename) == 0 &&
	       again.line_table_length == first->line_table_length &&
	       memcmp(again.line_table, first->line_table, first->line_table_length) == 0;
	code__free(&again);
	return same;
}

bool code_table__is_in_place(const struct code_table *table, const struct known_code *code)
{
	uint64_t now = code_identity__read(table->target, code->address);

	return code_identity_is_whole(now) && !is_another(code, now) && lives(table, code);
}

/* Reads CODE, which has no name where what is at its address by now is another one, or freed.  That
 * is read last: where the sample's is there and lives, so it did in between. */
static void read_code(struct code_table *table, struct known_code *code)
{
	const struct runtime *runtime = &table->target->runtime;
	bool is_whole;
	uint64_t now;
	int error = code__read(table->target->process.pid, &runtime->offsets, runtime->code_type,
			       code->address, &code->code);
	bool doubtful = !error && !code->code.hidden && !is_consistent(table, code);

	hold(table, &code->code);
	now = code_identity__read(table->target, code->address);
	is_whole = code_identity_is_whole(now);
	code->gone = is_another(code, now) ||
		     (is_whole && !code->code.hidden && (doubtful || !lives(table, code)));
	if (!error && !code->code.hidden && (!is_whole || code->gone))
		free_code(table, code);
	if (!code_identity_is_whole(code->identity) && !is_another(code, now))
		code->identity = now;
}

static bool may_read(const struct code_table *table)
{
	int64_t passed_ns = now_ns() - table->start_ns;

	return may_hold_more(table) && table->reading_ns < READING_NS + passed_ns / READING_PART;
}

/* The same within the limits. */
static void name_code(struct code_table *table, struct known_code *code)
{
	int64_t before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	if (may_read(table))
		read_code(table, code);
	code->named = false;
	table->reading_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
}

/* Of those in CODES, so many more have no name: less than 0 where some have one by now. */
static void count_unnamed(struct code_table *table, int more)
{
	table->unnamed += more;
	table->unnamed_now += more;
}

static void insert(struct code_table *table, struct known_code *code)
{
	table->objects++;
	count_unnamed(table, is_unnamed(code));
	HASH_ADD(hh, table->codes, address, sizeof(code->address), code);
}

static struct known_code *new_code(uint64_t address, uint64_t identity)
{
	struct known_code *code = xcalloc(1, sizeof(*code));

	code->address = address;
	code->identity = identity;
	return code;
}

/* The one that is known at ADDRESS, and may be what has IDENTITY. */
static struct known_code *find(struct code_table *table, uint64_t address, uint64_t identity)
{
	struct known_code *code;

	HASH_FIND(hh, table->codes, &address, sizeof(address), code);
	if (code && !is_another(code, identity))
		return code;
	if (code)
		retire(table, code, identity);
	return revive(table, address, identity);
}

static void begin_anew(struct known_code *codes)
{
	for (struct known_code *code = codes; code; code = code->hh.next) {
		forget_locations(code);
		code->named = false;
	}
}

void code_table__begin_anew(struct code_table *table)
{
	begin_anew(table->codes);
	begin_anew(table->former);
	table->surplus.named = false;
	table->replaced_count = 0;
}

static bool is_full(const struct code_table *table)
{
	return HASH_COUNT(table->codes) >= CODES_MAX;
}

struct known_code *code_table__get(struct code_table *table, uint64_t address, uint64_t identity)
{
	struct known_code *code = find(table, address, identity);

	if (code)
		return code;
	if (is_full(table)) {
		table->surplus.surplus = true;
		return &table->surplus;
	}
	code = new_code(address, identity);
	name_code(table, code);
	insert(table, code);
	return code;
}

void code_table__learn(struct code_table *table, uint64_t address, uint64_t identity,
		       struct code *code)
{
	struct known_code *known = find(table, address, identity);

	if ((known && (known->code.name || known->code.hidden)) || (!known && is_full(table)) ||
	    !may_hold_more(table)) {
		code__free(code);
		return;
	}
	if (known) {
		count_unnamed(table, -1);
		table->named++;
		known->identity = identity;
		forget_locations(known);
	} else {
		known = new_code(address, identity);
	}
	known->code = *code;
	known->gone = known->named = false;
	hold(table, code);
	if (!known->hh.tbl)
		insert(table, known);
}

/* Whether CODE, at whose address nothing can be read by now, was there. */
static bool is_unmapped(const struct known_code *code, uint64_t identity)
{
	return code->identity && !identity && !code->code.hidden;
}

/* What is at CODE's address by now has IDENTITY: retires CODE where that is another one, or none
 * though the process's memory is READABLE.  One that was not there to be read has come back where
 * equal ones are made again and again; returns whether it has a name by now. */
static bool check(struct code_table *table, struct known_code *code, uint64_t identity,
		  bool readable)
{
	if (is_another(code, identity) || (readable && is_unmapped(code, identity))) {
		retire(table, code, identity);
		return false;
	}
	if (!code_identity_is_whole(identity) || code->code.name || code->code.hidden)
		return false;
	forget_locations(code);
	name_code(table, code);
	count_unnamed(table, is_unnamed(code) - 1);
	return code->code.name;
}

void code_table__note_root(struct code_table *table, uint64_t address)
{
	for (size_t i = 0; i < ROOTS; i++)
		if (table->roots[i] == address)
			return;
	table->last_root = (table->last_root + 1) % ROOTS;
	table->roots[table->last_root] = address;
}

bool code_table__has_other_roots(const struct code_table *table)
{
	uint64_t addresses[ROOTS], identities[ROOTS];
	const struct known_code *codes[ROOTS];
	size_t count = 0;

	for (size_t i = 0; i < ROOTS; i++) {
		HASH_FIND(hh, table->codes, &table->roots[i], sizeof(table->roots[i]),
			  codes[count]);
		if (codes[count])
			addresses[count++] = table->roots[i];
	}
	code_identity__read_each(table->target, addresses, identities, count);
	for (size_t i = 0; i < count; i++)
		if (!identities[i] || is_another(codes[i], identities[i]))
			return true;
	return false;
}

bool code_table__is_checked(const struct code_table *table)
{
	return table->checked == table->objects && !table->unnamed_now && !table->named &&
	       !is_full(table);
}

size_t code_table__check(struct code_table *table)
{
	size_t count = HASH_COUNT(table->codes), named = table->named, i = 0;
	uint64_t *addresses = deputy__lend(xreallocarray(NULL, count, sizeof(*addresses)));
	uint64_t *identities = deputy__lend(xreallocarray(NULL, count, sizeof(*identities)));
	uint64_t missed = deputy__missed(table->target->process.pid);
	struct known_code *code, *next;
	bool readable = false;

	table->named = 0;
	table->checked = table->objects;
	for (code = table->codes; code; code = code->hh.next)
		addresses[i++] = code->address;
	code_identity__read_each(table->target, addresses, identities, count);
	/* Of what has ended, nothing can be read; of what does not answer for a while, not all. */
	for (i = 0; i < count && !readable; i++)
		readable = identities[i];
	readable &= deputy__missed(table->target->process.pid) == missed;
	i = 0;
	/* In the same order. */
	HASH_ITER (hh, table->codes, code, next)
		named += check(table, code, identities[i++], readable);
	free(deputy__take_back(identities));
	free(deputy__take_back(addresses));
	table->checks++;
	while (table->reused && table->checks - table->reused->check > REUSED_CHECKS)
		forget_reused(table, table->reused);
	return named;
}

size_t code_table__take_replaced(struct code_table *table, const struct replaced_code **replaced)
{
	size_t count = table->replaced_count;

	*replaced = table->replaced;
	table->replaced_count = 0;
	return count;
}

const struct known_code *code_table__next_reused(const struct code_table *table,
						 const struct known_code *code)
{
	if (!table->reused)
		return NULL;
	do
		code = code ? code->hh.next : table->codes;
	while (code && !find_reused(table, code->address));
	return code;
}

void code_table__account(const struct code_table *table, struct ledger *ledger)
{
	ledger->code_objects += table->objects;
	ledger->unnamed_code_objects += table->unnamed;
}
