// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "naming/left_out.h"

#define SETTLED_UNTIL_FORGOTTEN 2

struct left_process {
	uint64_t serial;
	uint32_t number; /* the second key */
	enum leaving why;
	char *command;
	uint64_t unknown;     /* samples */
	unsigned int settled; /* how often, since */
	UT_hash_handle hh, by_number;
};

struct left_out {
	struct left_process *processes, *by_number;
	uint32_t last_number;
	struct unknown_processes unknown; /* of those that are forgotten */
};

struct left_out *left_out__new(void)
{
	return xcalloc(1, sizeof(struct left_out));
}

static void forget(struct left_out *left_out, struct left_process *process)
{
	unknown_processes__add(&left_out->unknown, process->command, process->unknown);
	HASH_DELETE(hh, left_out->processes, process);
	HASH_DELETE(by_number, left_out->by_number, process);
	free(process->command);
	free(process);
}

void left_out__free(struct left_out *left_out)
{
	if (!left_out)
		return;
	left_out__end(left_out);
	free(left_out);
}

void left_out__end(struct left_out *left_out)
{
	while (left_out->processes)
		forget(left_out, left_out->processes);
}

static struct left_process *find(const struct left_out *left_out, uint64_t serial)
{
	struct left_process *process;

	HASH_FIND(hh, left_out->processes, &serial, sizeof(serial), process);
	return process;
}

static struct left_process *add(struct left_out *left_out, uint64_t serial)
{
	struct left_process *process = xcalloc(1, sizeof(*process));

	process->serial = serial;
	process->number = ++left_out->last_number;
	HASH_ADD(hh, left_out->processes, serial, sizeof(process->serial), process);
	HASH_ADD(by_number, left_out->by_number, number, sizeof(process->number), process);
	return process;
}

void left_out__add(struct left_out *left_out, uint64_t serial, enum leaving why,
		   const char *command)
{
	struct left_process *process = find(left_out, serial);

	if (!process)
		process = add(left_out, serial);
	if (command) {
		free(process->command);
		process->command = xstrdup(command);
	}
	if (why == LEFT_UNWANTED)
		process->unknown = 0;
	process->why = why;
	process->settled = 0;
}

void left_out__take_in(struct left_out *left_out, uint64_t serial)
{
	struct left_process *process = find(left_out, serial);

	if (process)
		process->why = LEFT_IN;
}

void left_out__settle(struct left_out *left_out)
{
	struct left_process *process, *next;

	HASH_ITER (hh, left_out->processes, process, next)
		if (++process->settled == SETTLED_UNTIL_FORGOTTEN)
			forget(left_out, process);
}

enum leaving left_out__find(const struct left_out *left_out, uint64_t serial)
{
	const struct left_process *process = find(left_out, serial);

	return process ? process->why : LEFT_IN;
}

uint32_t left_out__number(const struct left_out *left_out, uint64_t serial)
{
	const struct left_process *process = find(left_out, serial);

	return process ? process->number : 0;
}

void left_out__count(struct left_out *left_out, uint32_t number, uint64_t samples)
{
	struct left_process *process;

	HASH_FIND(by_number, left_out->by_number, &number, sizeof(number), process);
	if (!process)
		unknown_processes__add(&left_out->unknown, NULL, samples);
	else if (process->why != LEFT_UNWANTED)
		process->unknown += samples;
}

void left_out__account(const struct left_out *left_out, struct unknown_processes *unknown)
{
	unknown_processes__add_all(unknown, &left_out->unknown);
}
