// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "profile/profile.h"

/* A key that several entries may have, and the first entry with it. */
struct same {
	uint32_t key[6], first;
	UT_hash_handle hh;
};

/* Returns the first number with the key of SAME, which is NUMBER if the key is new. */
static uint32_t first_of(struct same **table, struct same *same, uint32_t number)
{
	struct same *found;

	HASH_FIND(hh, *table, same->key, sizeof(same->key), found);
	if (found)
		return found->first;
	same->first = number;
	HASH_ADD(hh, *table, key, sizeof(same->key), same);
	return number;
}

/* Sets FIRST to the first equal function of each; returns whether any has one. */
static bool find_functions(const struct profile *profile, uint32_t *first)
{
	struct same *all = xcalloc(profile->function_count + 1, sizeof(*all)), *table = NULL;
	bool found = false;

	for (size_t i = 0; i < profile->function_count; i++) {
		const struct profile_function *function = &profile->functions[i];
		const uint32_t key[] = { function->name,       function->filename,
					 function->first_line, function->kind,
					 function->nameless,   function->of_interpreter };

		memcpy(all[i].key, key, sizeof(key));
		first[i] = first_of(&table, &all[i], i);
		found |= first[i] != i;
	}
	HASH_CLEAR(hh, table);
	free(all);
	return found;
}

/* Makes locations refer to the first of equal functions; FIRST: the first equal location of
 * each. */
static void merge_locations(struct profile *profile, const uint32_t *functions, uint32_t *first)
{
	struct same *all = xcalloc(profile->location_count + 1, sizeof(*all)), *table = NULL;

	for (size_t i = 0; i < profile->location_count; i++) {
		struct profile_location *location = &profile->locations[i];
		const uint32_t key[] = { functions[location->function], location->line,
					 location->mapping, (uint32_t)location->address,
					 (uint32_t)(location->address >> 32) };

		location->function = key[0];
		memcpy(all[i].key, key, sizeof(key));
		first[i] = first_of(&table, &all[i], i);
	}
	HASH_CLEAR(hh, table);
	free(all);
}

void profile__merge_functions(struct profile *profile)
{
	uint32_t *functions = xcalloc(profile->function_count + 1, sizeof(*functions));
	uint32_t *locations = xcalloc(profile->location_count + 1, sizeof(*locations));

	if (find_functions(profile, functions)) {
		merge_locations(profile, functions, locations);
		for (size_t i = 0; i < profile->stack_count; i++) {
			/* The locations are the stack's hash key, but no stack is looked up any
			 * more. */
			uint32_t *frames = (uint32_t *)profile->stacks[i].locations;

			for (uint32_t j = 0; j < profile->stacks[i].depth; j++)
				frames[j] = locations[frames[j]];
		}
	}
	free(locations);
	free(functions);
}
