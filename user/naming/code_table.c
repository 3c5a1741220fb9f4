// SPDX-License-Identifier: BSD-2-Clause
/*
 * BPF copies a code object when it defines the first stack with it.  Without a copy, the code
 * object is read here, once, while its process most likely still lives.  Its address may be used
 * for another code object between the sample and that read, and at any time later.  So BPF sends
 * the identity at the sample with each definition.  Here the identity is read again after the
 * names, and now and then for all known code objects, many in one system call.
 *
 * If a few code objects take turns at an address, each may come back when its names can no longer
 * be read, and BPF does not copy it again.  So the table keeps those that were replaced last.
 */
#include <stdlib.h>
#include <string.h>

#include "base/now.h"
#include "base/xalloc.h"
#include "naming/code_identity.h"
#include "naming/code_table.h"
#include "reading/reader.h"

/* Limits the names and line tables of a process: a target may make any number of code objects. */
#define HELD_BYTES_MAX (256 * 1024 * 1024)

/* Limits them for all processes: a program that keeps forking has a new table for each child. */
#define HELD_BY_ALL_MAX (4LL * HELD_BYTES_MAX)

/* Reads may take READING_NS of CPU time, and then one READING_PART of the time that passes: each
 * sample may bring a thousand new code objects.  The others are read at the next check. */
#define READING_NS   2000000000LL
#define READING_PART 4

/* Limits the code objects of a process: a hostile one may have another in each frame. */
#define CODES_MAX (128 * 1024)

/* Limits the replaced code objects that are kept; they also hold at most half of HELD_BYTES_MAX.
 * BPF does not copy again what a CPU remembers as copied.  If a process comes back to a CPU, it may
 * run code that was replaced there long ago. */
#define FORMER_MAX (4 * COPIED_CODES)

/* How many outermost code objects are looked at between checks. */
#define ROOTS 8

/* Limits the addresses that are known to be reused: a target may have any number.  The oldest are
 * forgotten first. */
#define REUSED_MAX (16 * 1024)

struct reused_address {
	uint64_t address; /* key */
	uint64_t check;	  /* the last check before it was reused */
	UT_hash_handle hh;
};

struct code_table {
	const struct target_process *target;
	struct known_code *codes;	/* by address */
	struct known_code *former;	/* by address and identity, last replaced last */
	struct reused_address *reused;	/* last reused last */
	uint64_t checks;		/* so far */
	struct replaced_code *replaced; /* since code_table__take_replaced */
	size_t replaced_count, replaced_capacity;
	struct known_code surplus;
	uint64_t objects, unnamed; /* since the table was made */
	size_t unnamed_now;	   /* in CODES */
	size_t named;		   /* from copies, since the last check */
	uint64_t roots[ROOTS];	   /* of the outermost code objects of recent stacks */
	size_t last_root;
	uint64_t checked; /* OBJECTS at the last check */
	size_t held;	  /* bytes in CODES and FORMER */
	int64_t start_ns, reading_ns;
};

/* Bytes in all tables. */
static int64_t held_by_all;

struct code_table *code_table__new(const struct target_process *target)
{
	struct code_table *table = xcalloc(1, sizeof(*table));

	table->target = target;
	table->start_ns = now_ns();
	return table;
}

static size_t bytes_of(const struct code *code)
{
	return (code->name ? strlen(code->name) + strlen(code->filename) : 0) +
	       code->line_table_length;
}

/* Counts the bytes of CODE, which TABLE owns from now on. */
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
	HASH_EMPTY(code->locations, free);
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
	return HASH_GET(hh, table->reused, &address);
}

/* A code object at ADDRESS was replaced. */
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

/* Whether the code object at CODE's address has IDENTITY, lives, and is CODE by its own words.  A
 * freed code object may keep its words when its names are gone.  If it was replaced while IDENTITY
 * was read, the words alone may be the old one's; that does not happen twice in a row. */
static bool is_alike(const struct code_table *table, const struct known_code *code,
		     uint64_t identity)
{
	return code_identity_words(code->identity) == code_identity_words(identity) &&
	       code_identity__read(table->target, code->address) == identity && lives(table, code);
}

/* Removes CODE, as one with IDENTITY took its address.  Keeps it in FORMER if it has a name:
 * otherwise it is better read again. */
static void retire(struct code_table *table, struct known_code *code, uint64_t identity)
{
	/* First, because this reads the process, and may be abandoned. */
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

/* The code object with IDENTITY, back at ADDRESS; NULL if it is not in FORMER. */
static struct known_code *revive(struct code_table *table, uint64_t address, uint64_t identity)
{
	struct known_code *code = find_former(table, address, identity);

	if (code) {
		HASH_DEL(table->former, code);
		HASH_ADD(hh, table->codes, address, sizeof(code->address), code);
	}
	return code;
}

/* Whether IDENTITY is another code object's.  A hidden one lives as long as the interpreter.  It
 * may be no code object at all, and then its fields may change. */
static bool is_another(const struct known_code *code, uint64_t identity)
{
	return code_identity_differs(code->identity, identity) && !code->code.hidden;
}

/* Whether CODE is the same when it is read again.  Without versions, its address may be used by
 * others, and then by an identical code object, between two reads. */
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

/* Reads CODE.  It gets no name if its address is reused, or it is freed.  The identity is read
 * last: if it is the sample's, and the code object lives, then the names are its own. */
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

/* Same, within the limits. */
static void name_code(struct code_table *table, struct known_code *code)
{
	int64_t before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	if (may_read(table))
		read_code(table, code);
	code->named = false;
	table->reading_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
}

/* MORE code objects of CODES have no name; negative if they got one. */
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

/* The known code object at ADDRESS, unless IDENTITY is another one's. */
static struct known_code *find(struct code_table *table, uint64_t address, uint64_t identity)
{
	struct known_code *code = HASH_GET(hh, table->codes, &address);

	if (code && !is_another(code, identity))
		return code;
	if (code)
		retire(table, code, identity);
	return revive(table, address, identity);
}

static void begin_anew(struct known_code *codes)
{
	for (struct known_code *code = codes; code; code = code->hh.next) {
		HASH_EMPTY(code->locations, free);
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
		HASH_EMPTY(known->locations, free);
	} else {
		known = new_code(address, identity);
	}
	known->code = *code;
	known->gone = known->named = false;
	hold(table, code);
	if (!known->hh.tbl)
		insert(table, known);
}

/* Whether CODE was readable, and is not any more. */
static bool is_unmapped(const struct known_code *code, uint64_t identity)
{
	return code->identity && !identity && !code->code.hidden;
}

/* Compares CODE with IDENTITY, which was read at its address.  Retires CODE if it is another one,
 * or cannot be read although the process is READABLE.  A code object that was not readable may be
 * back, if the program makes equal ones again and again.  Returns whether it got a name. */
static bool check(struct code_table *table, struct known_code *code, uint64_t identity,
		  bool readable)
{
	if (is_another(code, identity) || (readable && is_unmapped(code, identity))) {
		retire(table, code, identity);
		return false;
	}
	if (!code_identity_is_whole(identity) || code->code.name || code->code.hidden)
		return false;
	HASH_EMPTY(code->locations, free);
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
		codes[count] = HASH_GET(hh, table->codes, &table->roots[i]);
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
	uint64_t *addresses = reader__lend(xreallocarray(NULL, count, sizeof(*addresses)));
	uint64_t *identities = reader__lend(xreallocarray(NULL, count, sizeof(*identities)));
	uint64_t missed = reader__missed(table->target->process.pid);
	struct known_code *code, *next;
	bool readable = false;

	table->named = 0;
	table->checked = table->objects;
	for (code = table->codes; code; code = code->hh.next)
		addresses[i++] = code->address;
	code_identity__read_each(table->target, addresses, identities, count);
	/* Nothing of an ended process is readable, and only a part of one that did not answer. */
	for (i = 0; i < count && !readable; i++)
		readable = identities[i];
	readable &= reader__missed(table->target->process.pid) == missed;
	i = 0;
	/* Same order as ADDRESSES. */
	HASH_ITER (hh, table->codes, code, next)
		named += check(table, code, identities[i++], readable);
	free(reader__take_back(identities));
	free(reader__take_back(addresses));
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
