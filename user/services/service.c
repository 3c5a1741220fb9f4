// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "services/service.h"

char *service__key(const json_t *labels)
{
	char *text = json_dumps(labels, JSON_COMPACT | JSON_SORT_KEYS);

	if (!text)
		out_of_memory();
	return text;
}

static string_id label_text(struct profile *profile, const json_t *labels, const char *name)
{
	const char *value = json_string_value(json_object_get(labels, name));

	return value ? profile__string(profile, value) : 0;
}

/* "namespace/pod", or only the pod if its namespace is not known; 0: there is no pod. */
static string_id pod_name(struct profile *profile, const json_t *labels)
{
	const char *pod = json_string_value(json_object_get(labels, "pod"));
	const char *namespace = json_string_value(json_object_get(labels, "namespace"));
	char *both;
	string_id name;

	if (!pod || !namespace)
		return pod ? profile__string(profile, pod) : 0;
	both = xasprintf("%s/%s", namespace, pod);
	name = profile__string(profile, both);
	free(both);
	return name;
}

uint32_t service__add(struct profile *profile, uint64_t serial, const json_t *labels)
{
	const char *pid = json_string_value(json_object_get(labels, "pid"));
	uint32_t process = profile__process(profile, serial, pid ? strtoul(pid, NULL, 10) : 0);
	struct profile_process *entry = &profile->processes[process];
	bool is_new = !entry->label_count;
	const char *name;
	json_t *value;

	entry->short_name = label_text(profile, labels, "service_name");
	entry->python_version = label_text(profile, labels, "python_version");
	entry->container_id = label_text(profile, labels, "container_id");
	entry->pod_uid = label_text(profile, labels, "pod_uid");
	entry->pod_name = pod_name(profile, labels);
	/* The macro wants a pointer that is not const, but writes nothing. */
	json_object_foreach((json_t *)labels, name, value)
	{
		if (is_new && json_is_string(value))
			profile__label(profile, process, name, json_string_value(value));
	}
	return profile__thread(profile, process, 0, 0);
}

/* A stack shows its outcome by a reason frame, or by a function without a name. */
static enum outcome outcome_of(const struct profile *profile, const struct profile_stack *stack)
{
	enum outcome shown = OUTCOME_PYTHON;

	for (uint32_t i = 0; i < stack->depth; i++) {
		const struct profile_function *function =
			&profile->functions[profile->locations[stack->locations[i]].function];

		if (function->nameless)
			shown = OUTCOME_NAME_UNKNOWN;
		if (function->kind != FRAME_REASON)
			continue;
		for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++)
			if (strcmp(profile->strings[function->name], outcome__text(outcome)) == 0)
				return outcome;
	}
	return shown;
}

void service__judge(struct profile *profile)
{
	for (uint32_t i = 0; i < profile->event_count; i++) {
		struct ledger *ledger = &profile->ledgers[i];

		*ledger = (struct ledger){ .rate_hz = ledger->rate_hz,
					   .duration_s = ledger->duration_s };
	}
	for (size_t i = 0; i < profile->sample_count; i++) {
		const struct profile_sample *sample = &profile->samples[i];
		struct ledger *ledger = &profile->ledgers[sample->event];

		ledger->outcomes[outcome_of(profile, &profile->stacks[sample->stack])] +=
			sample->amount.count;
		ledger->events += sample->amount.count;
	}
}
