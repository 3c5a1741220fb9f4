// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "base/hash_table.h"
#include "naming/reused_addresses.h"

/* A target may have as many as it likes: beyond, those are forgotten at which nothing happened for
 * longest. */
#define ADDRESSES_MAX (16 * 1024)

struct reused_address {
	uint64_t address; /* key */
	uint64_t check;	  /* the last one before it was used again */
	UT_hash_handle hh;
};

static struct reused_address *find(const struct reused_addresses *addresses, uint64_t address)
{
	struct reused_address *reused;

	HASH_FIND(hh, addresses->all, &address, sizeof(address), reused);
	return reused;
}

static void forget(struct reused_addresses *addresses, struct reused_address *reused)
{
	HASH_DEL(addresses->all, reused);
	free(reused);
}

void reused_addresses__add(struct reused_addresses *addresses, uint64_t address)
{
	struct reused_address *reused = find(addresses, address);

	if (reused)
		HASH_DEL(addresses->all, reused);
	else
		reused = xcalloc(1, sizeof(*reused));
	reused->address = address;
	reused->check = addresses->checks;
	HASH_ADD(hh, addresses->all, address, sizeof(reused->address), reused);
	if (HASH_COUNT(addresses->all) > ADDRESSES_MAX)
		forget(addresses, addresses->all);
}

bool reused_addresses__has(const struct reused_addresses *addresses, uint64_t address)
{
	return addresses->all && find(addresses, address);
}

void reused_addresses__check(struct reused_addresses *addresses)
{
	addresses->checks++;
	while (addresses->all && addresses->checks - addresses->all->check > REUSED_CHECKS)
		forget(addresses, addresses->all);
}

void reused_addresses__forget_all(struct reused_addresses *addresses)
{
	while (addresses->all)
		forget(addresses, addresses->all);
}
