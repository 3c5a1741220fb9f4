// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <string.h>

#include "cgroup.h"
#include "labels.h"

#define SERVICE ".service"

/* Runs what a user starts by hand, whatever that is. */
#define USER_MANAGER "user@"

static void set(json_t *labels, const char *name, const char *value)
{
	if (*value)
		json_object_set_new(labels, name, json_string(value));
}

/* Sets the name by the systemd unit UNIT; false where that is none of one service. */
static bool set_by_unit(json_t *labels, const char *unit)
{
	size_t length = strlen(unit), end = strlen(SERVICE);

	if (length <= end || strcmp(unit + length - end, SERVICE) != 0 ||
	    strncmp(unit, USER_MANAGER, strlen(USER_MANAGER)) == 0)
		return false;
	json_object_set_new(labels, "service_name", json_stringn(unit, length - end));
	return true;
}

/* Most runtimes' containers have an ID and no name. */
static bool is_id(const char *container)
{
	size_t digits = strspn(container, "0123456789abcdef-");

	return !container[digits] && digits >= CONTAINER_ID_LENGTH / 2;
}

static void set_service_name(json_t *labels, const struct profile *profile,
			     const struct profile_process *process)
{
	const char *own = profile->strings[process->service_name];
	const char *container = profile->strings[process->container_id];

	if (*own)
		set(labels, "service_name", own);
	else if (set_by_unit(labels, profile->strings[process->unit]))
		return;
	else if (*container && !is_id(container))
		set(labels, "service_name", container);
	else
		set(labels, "service_name", profile->strings[process->short_name]);
}

json_t *labels__of(const struct profile *profile, uint32_t index, const char *node, bool with_pid)
{
	const struct profile_process *process = &profile->processes[index];
	json_t *labels = json_object();
	char pid[16];

	set_service_name(labels, profile, process);
	set(labels, "comm", profile->strings[process->comm]);
	set(labels, "container_id", profile->strings[process->container_id]);
	set(labels, "pod", profile->strings[process->pod_uid]);
	set(labels, "node", node);
	set(labels, "python_version", profile->strings[process->python_version]);
	snprintf(pid, sizeof(pid), "%u", process->pid);
	if (with_pid)
		set(labels, "pid", pid);
	return labels;
}
