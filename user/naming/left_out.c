// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "naming/left_out.h"

#define SETTLED_UNTIL_FORGOTTEN 2

struct left_process {
	uint64_t serial;
	enum leaving why;
	unsigned int settled; /* how often, since */
	UT_hash_handle hh;
};

struct left_out {
	struct left_process *processes;
};

struct left_out *left_out__new(void)
{
	return xcalloc(1, sizeof(struct left_out));
}

static void forget(struct left_out *left_out, struct left_process *process)
{
	HASH_DEL(left_out->processes, process);
	free(process);
}

void left_out__free(struct left_out *left_out)
{
	struct left_process *process, *next;

	if (!left_out)
		return;
	HASH_ITER (hh, left_out->processes, process, next)
		forget(left_out, process);
	free(left_out);
}

static struct left_process *find(const struct left_out *left_out, uint64_t serial)
{
	struct left_process *process;

	HASH_FIND(hh, left_out->processes, &serial, sizeof(serial), process);
	return process;
}

void left_out__add(struct left_out *left_out, uint64_t serial, enum leaving why)
{
	struct left_process *process = find(left_out, serial);

	if (!process) {
		process = xcalloc(1, sizeof(*process));
		process->serial = serial;
		HASH_ADD(hh, left_out->processes, serial, sizeof(serial), process);
	}
	process->why = why;
	process->settled = 0;
}

void left_out__take_in(struct left_out *left_out, uint64_t serial)
{
	struct left_process *process = find(left_out, serial);

	if (process)
		forget(left_out, process);
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
