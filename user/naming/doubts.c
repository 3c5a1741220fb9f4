// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "base/hash_table.h"
#include "naming/doubts.h"

struct doubted {
	uint32_t process, function;
};

struct doubt {
	struct doubted what; /* key */
	UT_hash_handle hh;
};

struct doubts {
	struct doubt *all;
};

struct doubts *doubts__new(void)
{
	return xcalloc(1, sizeof(struct doubts));
}

void doubts__free(struct doubts *doubts)
{
	if (!doubts)
		return;
	doubts__end(doubts);
	free(doubts);
}

static struct doubt *find(const struct doubts *doubts, uint32_t process, uint32_t function)
{
	const struct doubted what = { process, function };
	struct doubt *doubt;

	HASH_FIND(hh, doubts->all, &what, sizeof(what), doubt);
	return doubt;
}

void doubts__add(struct doubts *doubts, uint32_t process, uint32_t function)
{
	struct doubt *doubt;

	if (find(doubts, process, function))
		return;
	doubt = xcalloc(1, sizeof(*doubt));
	doubt->what = (struct doubted){ process, function };
	HASH_ADD(hh, doubts->all, what, sizeof(doubt->what), doubt);
}

bool doubts__has(const struct doubts *doubts, uint32_t process, uint32_t function)
{
	return doubts->all && find(doubts, process, function);
}

void doubts__end(struct doubts *doubts)
{
	struct doubt *doubt, *next;

	HASH_ITER (hh, doubts->all, doubt, next) {
		HASH_DEL(doubts->all, doubt);
		free(doubt);
	}
}
