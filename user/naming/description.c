// SPDX-License-Identifier: BSD-2-Clause
#include "naming/description.h"

static string_id add_text(struct profile *profile, const char *text)
{
	return text ? profile__string(profile, text) : 0;
}

void target__describe(const struct target_process *target, struct profile *profile,
		      uint32_t process)
{
	const struct identity *identity = &target->identity;
	struct profile_process *entry = &profile->processes[process];

	entry->command = add_text(profile, identity->command);
	entry->short_name = add_text(profile, identity->short_name);
	entry->comm = add_text(profile, identity->comm);
	entry->service_name = add_text(profile, identity->service_name);
	entry->python_version = profile__string(profile, target->runtime.version);
	entry->user = add_text(profile, identity->user);
	entry->cgroup = add_text(profile, identity->cgroup);
	entry->container_id = add_text(profile, identity->container_id);
	entry->pod_uid = add_text(profile, identity->pod_uid);
	entry->unit = add_text(profile, identity->unit);
	entry->start_unix_ns = identity->start_unix_ns;
	entry->halvings = target->halvings;
}
