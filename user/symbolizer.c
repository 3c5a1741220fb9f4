// SPDX-License-Identifier: BSD-2-Clause
/*
 * A code object is read once, when the first stack with it is defined, while its
 * process most likely still lives.  Its address may be used again for another
 * one later, so before a known one is believed for a new stack, what identifies
 * it (its first line, the addresses of its names and line table) is read again, for
 * the whole stack in one system call; and for all that are known once in a while.
 *
 * What cannot be read any more has no name, and is shown so.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <uthash.h>

#include "code.h"
#include "lines.h"
#include "short_filename.h"
#include "symbolizer.h"
#include "xalloc.h"

#define UNREADABLE_TEXT "[code object not readable]"

/* What tells a code object from another that later lies at its address. */
struct identity {
	uint64_t name, filename, line_table;
	uint32_t first_line;
};

struct known_location {
	int32_t position; /* key */
	uint32_t location;
	UT_hash_handle hh;
};

struct known_code {
	uint64_t address; /* key */
	struct identity identity;
	struct code code;
	uint32_t function;
	uint64_t checked; /* the last stack that it was checked for */
	struct known_location *locations;
	UT_hash_handle hh;
};

struct known_process {
	pid_t pid; /* key */
	const struct target_process *target;
	uint32_t process;
	struct known_code *codes;
	UT_hash_handle hh;
};

struct symbolizer {
	struct profile *profile;
	enum line_detail lines;
	struct known_process *processes;
	uint64_t stacks;
	uint64_t code_objects, unnamed;
};

struct symbolizer *symbolizer__new(struct profile *profile, enum line_detail lines)
{
	struct symbolizer *symbolizer = xcalloc(1, sizeof(*symbolizer));

	symbolizer->profile = profile;
	symbolizer->lines = lines;
	return symbolizer;
}

static void forget_code(struct known_process *process, struct known_code *code)
{
	struct known_location *location, *next;

	HASH_ITER (hh, code->locations, location, next) {
		HASH_DEL(code->locations, location);
		free(location);
	}
	HASH_DEL(process->codes, code);
	code__free(&code->code);
	free(code);
}

void symbolizer__free(struct symbolizer *symbolizer)
{
	struct known_process *process, *next_process;
	struct known_code *code, *next_code;

	if (!symbolizer)
		return;
	HASH_ITER (hh, symbolizer->processes, process, next_process) {
		HASH_ITER (hh, process->codes, code, next_code)
			forget_code(process, code);
		HASH_DEL(symbolizer->processes, process);
		free(process);
	}
	free(symbolizer);
}

/* What the profile says of a process: of the program that it runs last. */
static void describe_process(struct symbolizer *symbolizer, const struct known_process *process)
{
	struct profile *profile = symbolizer->profile;
	struct profile_process *entry = &profile->processes[process->process];

	entry->command = profile__string(profile, process->target->command);
	entry->python_version = profile__string(profile, process->target->runtime.version);
}

void symbolizer__add_target(struct symbolizer *symbolizer, const struct target_process *target)
{
	struct known_process *process = xcalloc(1, sizeof(*process));

	process->pid = target->process.pid;
	process->target = target;
	process->process = profile__process(symbolizer->profile, process->pid);
	describe_process(symbolizer, process);
	HASH_ADD(hh, symbolizer->processes, pid, sizeof(process->pid), process);
}

/* The iovecs that read ADDRESS's identity into IDENTITY; returns how many. */
static size_t plan_identity(const struct offsets *offsets, uint64_t address,
			    struct identity *identity, struct iovec *local, struct iovec *remote)
{
	const struct {
		uint32_t offset;
		void *to;
		size_t size;
	} fields[] = {
		{ offsets->code_name, &identity->name, sizeof(identity->name) },
		{ offsets->code_filename, &identity->filename, sizeof(identity->filename) },
		{ offsets->code_linetable, &identity->line_table, sizeof(identity->line_table) },
		{ offsets->code_firstlineno, &identity->first_line, sizeof(identity->first_line) },
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		local[i] = (struct iovec){ fields[i].to, fields[i].size };
		remote[i] = (struct iovec){ (void *)(uintptr_t)(address + fields[i].offset),
					    fields[i].size };
	}
	return sizeof(fields) / sizeof(fields[0]);
}

#define IDENTITY_FIELDS	  4
#define IDENTITIES_A_READ (1024 / IDENTITY_FIELDS) /* 1024 is the kernel's IOV_MAX */

/* Reads the identities of COUNT code objects; returns how many, from the first on, could be. */
static size_t read_identities(const struct known_process *process,
			      const struct known_code *const *codes, struct identity *identities,
			      size_t count)
{
	struct iovec local[IDENTITIES_A_READ * IDENTITY_FIELDS];
	struct iovec remote[IDENTITIES_A_READ * IDENTITY_FIELDS];
	const size_t bytes = 3 * sizeof(uint64_t) + sizeof(uint32_t);
	size_t planned = 0;
	ssize_t got;

	memset(identities, 0, count * sizeof(*identities));
	for (size_t i = 0; i < count; i++)
		planned += plan_identity(&process->target->runtime.offsets, codes[i]->address,
					 &identities[i], &local[planned], &remote[planned]);
	got = process_vm_readv(process->pid, local, planned, remote, planned, 0);
	return got < 0 ? 0 : (size_t)got / bytes;
}

static struct known_code *find_code(const struct known_process *process, uint64_t address)
{
	struct known_code *code;

	HASH_FIND(hh, process->codes, &address, sizeof(address), code);
	return code;
}

/* Forgets those of the CODES, at most IDENTITIES_A_READ, that are others by now; returns how many.
 */
static size_t check_codes(struct known_process *process, struct known_code **codes, size_t count)
{
	struct identity identities[IDENTITIES_A_READ];
	size_t read = read_identities(process, (const struct known_code *const *)codes, identities,
				      count);

	size_t forgotten = 0;

	for (size_t i = 0; i < read; i++) {
		if (memcmp(&identities[i], &codes[i]->identity, sizeof(identities[i])) == 0)
			continue;
		forget_code(process, codes[i]);
		forgotten++;
	}
	return forgotten;
}

/* Makes sure that the code objects of a stack that are known are still the same. */
static void check_stack(struct symbolizer *symbolizer, struct known_process *process,
			const struct definition *definition)
{
	struct known_code *codes[IDENTITIES_A_READ];
	size_t count = 0;

	symbolizer->stacks++;
	for (uint32_t i = 0; i < definition->depth; i++) {
		const struct frame *frame = &definition->frames[i];
		struct known_code *code;

		if (frame->kind != FRAME_PYTHON)
			continue;
		code = find_code(process, frame->address);
		if (!code || code->checked == symbolizer->stacks)
			continue;
		code->checked = symbolizer->stacks;
		codes[count++] = code;
		if (count < IDENTITIES_A_READ)
			continue;
		check_codes(process, codes, count);
		count = 0;
	}
	check_codes(process, codes, count);
}

static uint32_t add_function(struct symbolizer *symbolizer, const struct known_process *process,
			     const struct code *code)
{
	struct profile *profile = symbolizer->profile;
	struct profile_function function = { .kind = FRAME_PYTHON };
	char *short_filename;

	if (!code->name) {
		function.name = profile__string(profile, UNREADABLE_TEXT);
		return profile__function(profile, &function);
	}
	short_filename = short_filename__of(process->pid, code->filename);
	function.name = profile__string(profile, code->name);
	function.filename = profile__string(profile, code->filename);
	function.short_filename = profile__string(profile, short_filename);
	function.first_line = code->first_line;
	free(short_filename);
	return profile__function(profile, &function);
}

static struct known_code *read_code(struct symbolizer *symbolizer, struct known_process *process,
				    uint64_t address)
{
	const struct runtime *runtime = &process->target->runtime;
	struct known_code *code = xcalloc(1, sizeof(*code));
	const struct known_code *only = code;

	code->address = address;
	code->checked = symbolizer->stacks;
	if (read_identities(process, &only, &code->identity, 1) != 1 ||
	    code__read(process->pid, &runtime->offsets, runtime->code_type, address, &code->code))
		symbolizer->unnamed++;
	symbolizer->code_objects++;
	code->function = add_function(symbolizer, process, &code->code);
	HASH_ADD(hh, process->codes, address, sizeof(code->address), code);
	return code;
}

static uint32_t line_of(const struct symbolizer *symbolizer, const struct known_process *process,
			const struct code *code, int32_t position)
{
	if (symbolizer->lines == LINES_NONE || !code->name)
		return LINE_NONE;
	if (symbolizer->lines == LINES_FUNCTION)
		return code->first_line;
	return lines__find(process->target->runtime.offsets.version, code->line_table,
			   code->line_table_length, code->first_line, position);
}

static uint32_t python_location(struct symbolizer *symbolizer, const struct known_process *process,
				struct known_code *code, int32_t position)
{
	struct known_location *known;

	HASH_FIND(hh, code->locations, &position, sizeof(position), known);
	if (known)
		return known->location;
	known = xcalloc(1, sizeof(*known));
	known->position = position;
	known->location = profile__location(symbolizer->profile, code->function,
					    line_of(symbolizer, process, &code->code, position));
	HASH_ADD(hh, code->locations, position, sizeof(known->position), known);
	return known->location;
}

static uint32_t reason_location(struct symbolizer *symbolizer, const struct frame *frame)
{
	struct profile_function function = {
		.kind = FRAME_REASON,
		.name = profile__string(symbolizer->profile, outcome__text(frame->detail)),
	};

	return profile__location(symbolizer->profile,
				 profile__function(symbolizer->profile, &function), LINE_NONE);
}

static uint32_t add_thread(struct symbolizer *symbolizer, const struct known_process *process,
			   const struct definition *definition)
{
	struct profile *profile = symbolizer->profile;
	char name[sizeof(definition->thread_name) + 1] = { 0 };
	uint32_t thread = profile__thread(profile, process->process, definition->tid);

	memcpy(name, definition->thread_name, sizeof(definition->thread_name));
	profile->threads[thread].name = profile__string(profile, name);
	return thread;
}

/* Adds FRAME's location to LOCATIONS, unless it is one that Python hides; returns how many. */
static uint32_t add_location(struct symbolizer *symbolizer, struct known_process *process,
			     const struct frame *frame, uint32_t *locations)
{
	struct known_code *code;

	if (frame->kind != FRAME_PYTHON) {
		*locations = reason_location(symbolizer, frame);
		return 1;
	}
	code = find_code(process, frame->address);
	if (!code)
		code = read_code(symbolizer, process, frame->address);
	if (code->code.hidden)
		return 0;
	*locations = python_location(symbolizer, process, code, frame->position);
	return 1;
}

bool symbolizer__define(struct symbolizer *symbolizer, const struct definition *definition,
			uint32_t *thread, uint32_t *stack)
{
	uint32_t locations[STACK_FRAMES_MAX], depth = 0;
	struct known_process *process;
	pid_t pid = definition->tgid;

	HASH_FIND(hh, symbolizer->processes, &pid, sizeof(pid), process);
	if (!process || definition->depth > STACK_FRAMES_MAX)
		return false;
	check_stack(symbolizer, process, definition);
	for (uint32_t i = 0; i < definition->depth; i++)
		depth += add_location(symbolizer, process, &definition->frames[i],
				      &locations[depth]);
	*thread = add_thread(symbolizer, process, definition);
	*stack = profile__stack(symbolizer->profile, locations, depth);
	return true;
}

static size_t recheck_process(struct known_process *process)
{
	struct known_code *codes[IDENTITIES_A_READ], *code, *next;
	size_t count = 0, forgotten = 0;

	HASH_ITER (hh, process->codes, code, next) {
		codes[count++] = code;
		if (count < IDENTITIES_A_READ)
			continue;
		forgotten += check_codes(process, codes, count);
		count = 0;
	}
	return forgotten + check_codes(process, codes, count);
}

bool symbolizer__recheck(struct symbolizer *symbolizer)
{
	struct known_process *process, *next;
	size_t forgotten = 0;

	HASH_ITER (hh, symbolizer->processes, process, next)
		forgotten += recheck_process(process);
	return forgotten;
}

void symbolizer__renew_target(struct symbolizer *symbolizer, const struct target_process *target)
{
	struct known_process *process;
	struct known_code *code, *next;

	HASH_FIND(hh, symbolizer->processes, &target->process.pid, sizeof(pid_t), process);
	if (!process)
		return;
	HASH_ITER (hh, process->codes, code, next)
		forget_code(process, code);
	describe_process(symbolizer, process);
}

void symbolizer__account(const struct symbolizer *symbolizer, struct ledger *ledger)
{
	ledger->code_objects = symbolizer->code_objects;
	ledger->unnamed_code_objects = symbolizer->unnamed;
}
