// SPDX-License-Identifier: BSD-2-Clause
/*
 * A code object is read once, when the first stack with it is defined, while its
 * process most likely still lives.  Between the sample and that moment, and later
 * on, its address may be used again for another one.  The kernel tells with each
 * definition what identified it at the sample; here the same is read again, after
 * the names, and once in a while for all that are known: 64 in one system call
 * of some 20 us.
 */
#include <stdlib.h>
#include <string.h>

#include "code_table.h"
#include "target_memory.h"
#include "xalloc.h"

struct code_table {
	const struct target_process *target;
	code_table__added added;
	code_table__replaced replaced;
	void *context;
	struct known_code *codes;
	uint64_t objects, unnamed; /* so far */
};

struct code_table *code_table__new(const struct target_process *target, code_table__added added,
				   code_table__replaced replaced, void *context)
{
	struct code_table *table = xcalloc(1, sizeof(*table));

	table->target = target;
	table->added = added;
	table->replaced = replaced;
	table->context = context;
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

static void forget(struct code_table *table, struct known_code *code)
{
	forget_locations(code);
	HASH_DEL(table->codes, code);
	code__free(&code->code);
	free(code);
}

void code_table__clear(struct code_table *table)
{
	struct known_code *code, *next;

	HASH_ITER (hh, table->codes, code, next)
		forget(table, code);
}

void code_table__free(struct code_table *table)
{
	if (!table)
		return;
	code_table__clear(table);
	free(table);
}

/* What code_identity is made of. */
struct identity_fields {
	uint64_t name, filename, line_table;
	uint32_t first_line;
};

#define FIELDS		  4
#define IDENTITIES_A_READ (1024 / FIELDS) /* 1024 is the kernel's IOV_MAX */

/* The iovecs that read the fields of the code object at ADDRESS. */
static void plan(const struct offsets *offsets, uint64_t address, struct identity_fields *fields,
		 struct iovec *local, struct iovec *remote)
{
	const struct {
		uint32_t offset;
		void *to;
		size_t size;
	} parts[FIELDS] = {
		{ offsets->code_name, &fields->name, sizeof(fields->name) },
		{ offsets->code_filename, &fields->filename, sizeof(fields->filename) },
		{ offsets->code_linetable, &fields->line_table, sizeof(fields->line_table) },
		{ offsets->code_firstlineno, &fields->first_line, sizeof(fields->first_line) },
	};

	for (size_t i = 0; i < FIELDS; i++) {
		local[i] = (struct iovec){ parts[i].to, parts[i].size };
		remote[i] = (struct iovec){ (void *)(uintptr_t)(address + parts[i].offset),
					    parts[i].size };
	}
}

/* Reads the identities of what is at the COUNT ADDRESSES by now; returns how many, from the first
 * on, could be. */
static size_t read_identities(const struct code_table *table, const uint64_t *addresses,
			      uint64_t *identities, size_t count)
{
	const size_t bytes = 3 * sizeof(uint64_t) + sizeof(uint32_t);
	struct iovec local[IDENTITIES_A_READ * FIELDS], remote[IDENTITIES_A_READ * FIELDS];
	struct identity_fields fields[IDENTITIES_A_READ];
	ssize_t got;

	for (size_t i = 0; i < count; i++)
		plan(&table->target->runtime.offsets, addresses[i], &fields[i], &local[i * FIELDS],
		     &remote[i * FIELDS]);
	got = target_memory__read_pieces(table->target->process.pid, local, remote, count * FIELDS);
	count = got < 0 ? 0 : (size_t)got / bytes;
	for (size_t i = 0; i < count; i++)
		identities[i] = code_identity(fields[i].name, fields[i].filename,
					      fields[i].line_table, fields[i].first_line);
	return count;
}

/* Whether what has IDENTITY is not CODE.  What is hidden lives as long as the interpreter, and may
 * be no code object: what lies where a code object's fields would be changes then. */
static bool is_another(const struct known_code *code, uint64_t identity)
{
	return identity && code->identity && identity != code->identity && !code->code.hidden;
}

/* Reads CODE, which has no name where what is at its address by now is another one.  The identity
 * is read last: where it is the sample's, so was all in between. */
static void read_code(struct code_table *table, struct known_code *code)
{
	const struct runtime *runtime = &table->target->runtime;
	uint64_t now = 0;
	int error = code__read(table->target->process.pid, &runtime->offsets, runtime->code_type,
			       code->address, &code->code);

	read_identities(table, &code->address, &now, 1);
	code->replaced = is_another(code, now);
	if (!error && !code->code.hidden && (!now || code->replaced))
		code__free(&code->code);
	if (!code->identity)
		code->identity = now;
	table->added(table->context, code);
}

static struct known_code *add(struct code_table *table, uint64_t address, uint64_t identity)
{
	struct known_code *code = xcalloc(1, sizeof(*code));

	code->address = address;
	code->identity = identity;
	read_code(table, code);
	table->objects++;
	table->unnamed += !code->code.name && !code->code.hidden;
	HASH_ADD(hh, table->codes, address, sizeof(code->address), code);
	return code;
}

struct known_code *code_table__get(struct code_table *table, uint64_t address, uint64_t identity)
{
	struct known_code *code;

	HASH_FIND(hh, table->codes, &address, sizeof(address), code);
	if (code && is_another(code, identity)) {
		table->replaced(table->context, code);
		forget(table, code);
		code = NULL;
	}
	return code ? code : add(table, address, identity);
}

/* What is at CODE's address by now has IDENTITY: forgets CODE where that is another one.  One that
 * was not there to be read has come back where equal ones are made again and again; returns whether
 * it has a name by now. */
static bool check(struct code_table *table, struct known_code *code, uint64_t identity)
{
	if (is_another(code, identity)) {
		table->replaced(table->context, code);
		forget(table, code);
		return false;
	}
	if (!identity || code->code.name || code->code.hidden)
		return false;
	forget_locations(code);
	read_code(table, code);
	table->unnamed -= !!code->code.name;
	return code->code.name;
}

/* The same for COUNT codes, at most IDENTITIES_A_READ; how many have a name by now. */
static size_t check_all(struct code_table *table, struct known_code **codes, size_t count)
{
	uint64_t addresses[IDENTITIES_A_READ], identities[IDENTITIES_A_READ];
	size_t named = 0;

	for (size_t i = 0; i < count; i++) {
		addresses[i] = codes[i]->address;
		identities[i] = 0;
	}
	/* One that is not mapped any more ends a read, and is passed over. */
	for (size_t i = 0; i < count; i++)
		i += read_identities(table, &addresses[i], &identities[i], count - i);
	for (size_t i = 0; i < count; i++)
		named += check(table, codes[i], identities[i]);
	return named;
}

size_t code_table__check(struct code_table *table)
{
	struct known_code *codes[IDENTITIES_A_READ], *code, *next;
	size_t count = 0, named = 0;

	HASH_ITER (hh, table->codes, code, next) {
		codes[count++] = code;
		if (count < IDENTITIES_A_READ)
			continue;
		named += check_all(table, codes, count);
		count = 0;
	}
	return named + check_all(table, codes, count);
}

void code_table__account(const struct code_table *table, struct ledger *ledger)
{
	ledger->code_objects += table->objects;
	ledger->unnamed_code_objects += table->unnamed;
}
