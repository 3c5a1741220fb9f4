// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each table of a profile is an array, for the outputs, and a hash of its entries, for adding.  A
 * hash entry has the bytes of its key.  Strings and stacks are stored in their hash entries only.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "profile/profile.h"
#include "python/unicode.h"

struct entry {
	UT_hash_handle hh;
	uint32_t id;
	uint32_t key[]; /* u32, because a stack's locations are read from here */
};

struct table {
	struct entry *entries;
	size_t capacity; /* of the table's array */
};

struct profile_index {
	struct table strings, functions, mappings, locations, processes, threads, stacks, samples;
	size_t label_capacity;
};

#define THREAD_KEY(process, tid, start)                                        \
	{                                                                      \
		(process), (tid), (uint32_t)(start), (uint32_t)((start) >> 32) \
	}

/* Keys are compared as bytes, so they must not have padding. */
#define FUNCTION_KEY_BYTES offsetof(struct profile_function, short_filename)
_Static_assert(FUNCTION_KEY_BYTES == 8 * sizeof(uint32_t), "no padding in a key");
#define LOCATION_KEY_BYTES (offsetof(struct profile_location, mapping) + sizeof(uint32_t))
_Static_assert(LOCATION_KEY_BYTES == 5 * sizeof(uint32_t), "no padding in a key");
_Static_assert(sizeof(struct profile_mapping) == 8 * sizeof(uint32_t), "no padding in a key");

static struct entry *table__find(const struct table *table, const void *key, size_t length)
{
	struct entry *entry;

	HASH_FIND(hh, table->entries, key, length, entry);
	return entry;
}

/* The entry of KEY, made with the next id if it is new. */
static struct entry *table__intern(struct table *table, const void *key, size_t length)
{
	struct entry *entry;
	unsigned int hash;

	HASH_VALUE(key, length, hash);
	HASH_FIND_BYHASHVALUE(hh, table->entries, key, length, hash, entry);
	if (entry)
		return entry;
	/* One byte more, for the NUL of a string. */
	entry = xcalloc(1, sizeof(*entry) + length + 1);
	memcpy(entry->key, key, length);
	entry->id = HASH_COUNT(table->entries);
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, table->entries, entry->key, length, hash, entry);
	return entry;
}

/* The entry of the LENGTH bytes of KEY.  If it is new, the last argument is added to the array
 * THINGS of COUNT elements. */
#define INTERN(profile, things, count, key, length, ...)                                         \
	({                                                                                       \
		struct table *table = &(profile)->index->things;                                 \
		struct entry *entry = table__intern(table, key, length);                         \
                                                                                                 \
		if (entry->id == (profile)->count) {                                             \
			(profile)->things =                                                      \
				xgrow((profile)->things, &table->capacity, (profile)->count + 1, \
				      sizeof(*(profile)->things));                               \
			(profile)->things[(profile)->count++] = __VA_ARGS__;                     \
		}                                                                                \
		entry->id;                                                                       \
	})

struct profile *profile__new(void)
{
	struct profile *profile = xcalloc(1, sizeof(*profile));

	profile->index = xcalloc(1, sizeof(*profile->index));
	profile->events[0].name = "cpu-clock";
	profile->events[0].unit = "nanoseconds";
	profile->event_count = 1;
	profile__string(profile, "");
	profile__mapping(profile, &(struct profile_mapping){ 0 });
	return profile;
}

void profile__free(struct profile *profile)
{
	if (!profile)
		return;
	HASH_EMPTY(profile->index->strings.entries, free);
	HASH_EMPTY(profile->index->functions.entries, free);
	HASH_EMPTY(profile->index->mappings.entries, free);
	HASH_EMPTY(profile->index->locations.entries, free);
	HASH_EMPTY(profile->index->processes.entries, free);
	HASH_EMPTY(profile->index->threads.entries, free);
	HASH_EMPTY(profile->index->stacks.entries, free);
	HASH_EMPTY(profile->index->samples.entries, free);
	free(profile->index);
	free(profile->strings);
	free(profile->functions);
	free(profile->mappings);
	free(profile->locations);
	free(profile->processes);
	free(profile->labels);
	free(profile->threads);
	free(profile->stacks);
	free(profile->samples);
	free(profile);
}

string_id profile__string(struct profile *profile, const char *string)
{
	const struct entry *known = table__find(&profile->index->strings, string, strlen(string));
	char *sanitized;
	string_id id;

	/* Stored strings are valid, so an equal one needs no check. */
	if (known)
		return known->id;
	sanitized = unicode__sanitize(string, strlen(string));
	id = INTERN(profile, strings, string_count, sanitized, strlen(sanitized),
		    (const char *)entry->key);
	free(sanitized);
	return id;
}

/* One process may know more of the packages on its path than another. */
static void take_longer(const struct profile *profile, struct profile_function *function,
			string_id short_filename)
{
	if (strlen(profile->strings[short_filename]) >
	    strlen(profile->strings[function->short_filename]))
		function->short_filename = function->shown_filename = short_filename;
}

uint32_t profile__function(struct profile *profile, const struct profile_function *function)
{
	struct profile_function added = *function;
	uint32_t id;

	if (!added.name)
		added.name = profile__string(profile, "<unnamed>");
	added.shown_filename = added.short_filename;
	id = INTERN(profile, functions, function_count, &added, FUNCTION_KEY_BYTES, added);
	take_longer(profile, &profile->functions[id], added.short_filename);
	return id;
}

uint32_t profile__mapping(struct profile *profile, const struct profile_mapping *mapping)
{
	return INTERN(profile, mappings, mapping_count, mapping, sizeof(*mapping), *mapping);
}

uint32_t profile__location(struct profile *profile, const struct profile_location *location)
{
	return INTERN(profile, locations, location_count, location, LOCATION_KEY_BYTES, *location);
}

uint32_t profile__line(struct profile *profile, uint32_t function, uint32_t line)
{
	return profile__location(profile,
				 &(struct profile_location){ .function = function, .line = line });
}

uint32_t profile__process(struct profile *profile, uint64_t serial, uint32_t pid)
{
	uint64_t key[] = { serial };

	return INTERN(profile, processes, process_count, key, sizeof(key),
		      (struct profile_process){ .serial = serial, .pid = pid });
}

void profile__label(struct profile *profile, uint32_t process, const char *name, const char *value)
{
	struct profile_process *entry = &profile->processes[process];

	if (!entry->label_count++)
		entry->first_label = profile->label_count;
	profile->labels = xgrow(profile->labels, &profile->index->label_capacity,
				profile->label_count + 1, sizeof(*profile->labels));
	profile->labels[profile->label_count++] =
		(struct profile_label){ profile__string(profile, name),
					profile__string(profile, value) };
}

uint32_t profile__thread(struct profile *profile, uint32_t process, uint32_t tid, uint64_t start)
{
	uint32_t key[] = THREAD_KEY(process, tid, start);

	return INTERN(profile, threads, thread_count, key, sizeof(key),
		      (struct profile_thread){ .process = process, .tid = tid, .start = start });
}

bool profile__lacks_names(const struct profile *profile, uint32_t stack)
{
	const struct profile_stack *frames = &profile->stacks[stack];

	for (uint32_t i = 0; i < frames->depth; i++) {
		uint32_t function = profile->locations[frames->locations[i]].function;

		if (profile->functions[function].nameless)
			return true;
	}
	return false;
}

bool profile__has_thread(const struct profile *profile, uint32_t process, uint32_t tid,
			 uint64_t start)
{
	uint32_t key[] = THREAD_KEY(process, tid, start);

	return table__find(&profile->index->threads, key, sizeof(key));
}

bool profile__has_stack(const struct profile *profile, const uint32_t *locations, uint32_t depth)
{
	return table__find(&profile->index->stacks, locations, depth * sizeof(*locations));
}

uint32_t profile__stack(struct profile *profile, const uint32_t *locations, uint32_t depth)
{
	return INTERN(profile, stacks, stack_count, locations, depth * sizeof(*locations),
		      (struct profile_stack){ .locations = entry->key, .depth = depth });
}

void profile__add(struct profile *profile, uint32_t thread, uint32_t stack, uint32_t event,
		  struct amount amount)
{
	uint32_t key[] = { thread, stack, event };
	uint32_t id =
		INTERN(profile, samples, sample_count, key, sizeof(key),
		       (struct profile_sample){ .thread = thread, .stack = stack, .event = event });

	amount__add(&profile->samples[id].amount, amount);
}

void profile__clear_samples(struct profile *profile)
{
	HASH_EMPTY(profile->index->samples.entries, free);
	profile->sample_count = 0;
}

struct profile *profile__retire(struct profile *profile)
{
	struct profile *fresh = profile__new(), *retired = xcalloc(1, sizeof(*retired));

	fresh->rate_hz = profile->rate_hz;
	fresh->start_unix_ns = profile->start_unix_ns;
	fresh->duration_ns = profile->duration_ns;
	memcpy(fresh->ledgers, profile->ledgers, sizeof(fresh->ledgers));
	memcpy(fresh->events, profile->events, sizeof(fresh->events));
	fresh->event_count = profile->event_count;
	*retired = *profile;
	*profile = *fresh;
	free(fresh);
	return retired;
}

/* For each of COUNT items of SIZE bytes the number of the first with the same LENGTH bytes at
 * OFFSET; the caller frees it. */
static uint32_t *first_equals(const void *items, size_t count, size_t size, size_t offset,
			      size_t length)
{
	uint32_t *first = xcalloc(count + 1, sizeof(*first));
	uint32_t *places = xcalloc(count + 1, sizeof(*places)), distinct = 0;
	struct table table = { 0 };

	for (size_t i = 0; i < count; i++) {
		struct entry *entry =
			table__intern(&table, (const char *)items + i * size + offset, length);

		if (entry->id == distinct)
			places[distinct++] = i;
		first[i] = places[entry->id];
	}
	HASH_EMPTY(table.entries, free);
	free(places);
	return first;
}

void profile__merge_functions(struct profile *profile)
{
	const size_t apart = offsetof(struct profile_function, name);
	uint32_t *functions =
		first_equals(profile->functions, profile->function_count,
			     sizeof(*profile->functions), apart, FUNCTION_KEY_BYTES - apart);
	uint32_t *locations;

	for (size_t i = 0; i < profile->location_count; i++)
		profile->locations[i].function = functions[profile->locations[i].function];
	locations = first_equals(profile->locations, profile->location_count,
				 sizeof(*profile->locations), 0, LOCATION_KEY_BYTES);
	for (size_t i = 0; i < profile->stack_count; i++) {
		/* The locations are the stack's hash key, but no stack is looked up any more. */
		uint32_t *frames = (uint32_t *)profile->stacks[i].locations;

		for (uint32_t j = 0; j < profile->stacks[i].depth; j++)
			frames[j] = locations[frames[j]];
	}
	free(locations);
	free(functions);
}

size_t profile__entries(const struct profile *profile)
{
	return profile->string_count + profile->function_count + profile->mapping_count +
	       profile->location_count + profile->process_count + profile->thread_count +
	       profile->stack_count;
}

uint64_t profile__period(const struct profile *profile, uint32_t event)
{
	return profile->events[event].period ?: ledger__period_ns(profile->rate_hz);
}

uint64_t profile__weight(const struct profile *profile, const struct profile_sample *sample)
{
	uint64_t period = profile__period(profile, sample->event);

	if (profile->events[sample->event].period)
		return sample->amount.value;
	return period ? (sample->amount.value + period / 2) / period : sample->amount.count;
}

static int compare_totals(const void *left, const void *right)
{
	const struct function_total *a = left, *b = right;

	if (a->self != b->self)
		return a->self < b->self ? 1 : -1;
	if (a->total != b->total)
		return a->total < b->total ? 1 : -1;
	return (a->function > b->function) - (a->function < b->function);
}

struct function_total *profile__totals(const struct profile *profile, unsigned int hidden,
				       size_t *count)
{
	struct function_total *totals = xcalloc(profile->function_count, sizeof(*totals));
	/* The last stack, from 1, that was added to each function's total. */
	uint32_t *last_stack = xcalloc(profile->function_count, sizeof(*last_stack));
	uint64_t *stack_counts = xcalloc(profile->stack_count, sizeof(*stack_counts));

	for (size_t i = 0; i < profile->sample_count; i++)
		stack_counts[profile->samples[i].stack] +=
			profile__weight(profile, &profile->samples[i]);
	for (size_t i = 0; i < profile->function_count; i++)
		totals[i].function = i;
	for (size_t i = 0; i < profile->stack_count; i++) {
		const struct profile_stack *stack = &profile->stacks[i];
		bool is_leaf = true;

		for (uint32_t frame = 0; frame < stack->depth; frame++) {
			uint32_t function = profile->locations[stack->locations[frame]].function;

			if (hidden & 1 << profile->functions[function].kind)
				continue;
			if (is_leaf)
				totals[function].self += stack_counts[i];
			is_leaf = false;
			if (last_stack[function] == i + 1)
				continue;
			last_stack[function] = i + 1;
			totals[function].total += stack_counts[i];
		}
	}
	qsort(totals, profile->function_count, sizeof(*totals), compare_totals);
	*count = profile->function_count;
	free(stack_counts);
	free(last_stack);
	return totals;
}
