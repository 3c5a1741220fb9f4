// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "base/xalloc.h"
#include "profile/copy.h"

void profile_copy__init(struct profile_copy *copy, const struct profile *from, struct profile *to)
{
	*copy = (struct profile_copy){ .from = from, .to = to, .turn = 1 };
	copy->functions = xcalloc(from->function_count + 1, sizeof(uint64_t));
	copy->locations = xcalloc(from->location_count + 1, sizeof(uint64_t));
	copy->stacks = xcalloc(from->stack_count + 1, sizeof(uint64_t));
}

void profile_copy__turn(struct profile_copy *copy, struct profile *to)
{
	copy->to = to;
	copy->turn++;
}

static bool is_copied(const struct profile_copy *copy, uint64_t known)
{
	return known >> 32 == copy->turn;
}

static uint64_t copied(const struct profile_copy *copy, uint32_t index)
{
	return (uint64_t)copy->turn << 32 | index;
}

void profile_copy__free(struct profile_copy *copy)
{
	free(copy->functions);
	free(copy->locations);
	free(copy->stacks);
}

static string_id string_of(struct profile_copy *copy, string_id string)
{
	return profile__string(copy->to, copy->from->strings[string]);
}

/* Field "apart" has a meaning in FROM only. */
static uint32_t function_of(struct profile_copy *copy, uint32_t index)
{
	struct profile_function function = copy->from->functions[index];
	uint64_t *known = &copy->functions[index];

	if (!is_copied(copy, *known)) {
		function.apart = 0;
		function.name = string_of(copy, function.name);
		function.filename = string_of(copy, function.filename);
		function.short_filename = copy->without_short_filenames
						  ? 0
						  : string_of(copy, function.short_filename);
		*known = copied(copy, profile__function(copy->to, &function));
	}
	return *known;
}

static uint32_t mapping_of(struct profile_copy *copy, uint32_t index)
{
	struct profile_mapping mapping = copy->from->mappings[index];

	if (!index)
		return 0;
	mapping.file = string_of(copy, mapping.file);
	mapping.build_id = string_of(copy, mapping.build_id);
	return profile__mapping(copy->to, &mapping);
}

static uint32_t location_of(struct profile_copy *copy, uint32_t index)
{
	struct profile_location location = copy->from->locations[index];
	uint64_t *known = &copy->locations[index];

	if (!is_copied(copy, *known)) {
		location.function = function_of(copy, location.function);
		location.mapping = mapping_of(copy, location.mapping);
		*known = copied(copy, profile__location(copy->to, &location));
	}
	return *known;
}

uint32_t profile_copy__stack(struct profile_copy *copy, uint32_t index)
{
	const struct profile_stack *stack = &copy->from->stacks[index];
	uint64_t *known = &copy->stacks[index];
	uint32_t locations[STACK_DEPTH_MAX];

	if (!is_copied(copy, *known)) {
		for (uint32_t i = 0; i < stack->depth; i++)
			locations[i] = location_of(copy, stack->locations[i]);
		*known = copied(copy, profile__stack(copy->to, locations, stack->depth));
	}
	return *known;
}

/* A process that TO has already stays as it is: its data is newer.  Only services have labels, and
 * they are not copied. */
static uint32_t process_of(struct profile_copy *copy, uint32_t index)
{
	static const size_t strings[] = {
		offsetof(struct profile_process, command),
		offsetof(struct profile_process, short_name),
		offsetof(struct profile_process, comm),
		offsetof(struct profile_process, service_name),
		offsetof(struct profile_process, python_version),
		offsetof(struct profile_process, user),
		offsetof(struct profile_process, cgroup),
		offsetof(struct profile_process, container_id),
		offsetof(struct profile_process, pod_uid),
		offsetof(struct profile_process, pod_name),
		offsetof(struct profile_process, unit),
	};
	struct profile_process process = copy->from->processes[index];
	size_t before = copy->to->process_count;
	uint32_t number = profile__process(copy->to, process.serial, process.pid);

	if (number < before)
		return number;
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		string_id *string = (string_id *)((char *)&process + strings[i]);

		*string = string_of(copy, *string);
	}
	copy->to->processes[number] = process;
	return number;
}

uint32_t profile_copy__thread(struct profile_copy *copy, uint32_t index)
{
	const struct profile_thread *thread = &copy->from->threads[index];
	size_t before = copy->to->thread_count;
	uint32_t number = profile__thread(copy->to, process_of(copy, thread->process), thread->tid,
					  thread->start);

	if (number == before) {
		copy->to->threads[number].name = string_of(copy, thread->name);
		copy->to->threads[number].named = thread->named;
	}
	return number;
}
