// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/labels.h"
#include "base/xalloc.h"
#include "processes/cgroup.h"
#include "services/service.h"

#define SERVICE ".service"

/* The unit of a user's manager, which runs whatever the user starts: it names no service. */
#define USER_MANAGER "user@"

static void set(json_t *labels, const char *name, const char *value)
{
	if (*value)
		json_object_set_new(labels, name, json_string(value));
}

/* Sets the name from the systemd unit UNIT; false if that is not the unit of a service. */
static bool set_by_unit(json_t *labels, const char *unit)
{
	size_t length = strlen(unit), end = strlen(SERVICE);

	if (length <= end || strcmp(unit + length - end, SERVICE) != 0 ||
	    strncmp(unit, USER_MANAGER, strlen(USER_MANAGER)) == 0)
		return false;
	json_object_set_new(labels, "service_name", json_stringn(unit, length - end));
	return true;
}

/* Whether CONTAINER is an ID: most runtimes give containers no name. */
static bool is_id(const char *container)
{
	size_t digits = strspn(container, "0123456789abcdef-");

	return !container[digits] && digits >= CONTAINER_ID_LENGTH / 2;
}

static void set_service_name(json_t *labels, const struct profile *profile,
			     const struct profile_process *process, const json_t *pod)
{
	const char *own = profile->strings[process->service_name];
	const char *container = profile->strings[process->container_id];
	const char *pods = pods__text(pod, "service_name");
	const char *containers = pods__container_text(pod, container, "name");

	if (*own)
		set(labels, "service_name", own);
	else if (*pods)
		set(labels, "service_name", pods);
	else if (set_by_unit(labels, profile->strings[process->unit]))
		return;
	else if (*containers)
		set(labels, "service_name", containers);
	else if (*container && !is_id(container))
		set(labels, "service_name", container);
	else
		set(labels, "service_name", profile->strings[process->short_name]);
}

/* Sets the labels that only rules see. */
static void set_hidden(json_t *labels, const struct profile *profile,
		       const struct profile_process *process, const json_t *pod)
{
	const char *container = profile->strings[process->container_id];

	set(labels, "__meta_process_comm", profile->strings[process->comm]);
	set(labels, "__meta_process_cmdline", profile->strings[process->command]);
	set(labels, "__meta_process_script", profile->strings[process->short_name]);
	set(labels, "__meta_process_user", profile->strings[process->user]);
	set(labels, "__meta_process_cgroup", profile->strings[process->cgroup]);
	set(labels, "__meta_systemd_unit", profile->strings[process->unit]);
	set(labels, "__meta_container_id", container);
	set(labels, "__meta_kubernetes_pod_uid", profile->strings[process->pod_uid]);
	if (!pod)
		return;
	json_object_update(labels, json_object_get(pod, "hidden"));
	set(labels, "__meta_kubernetes_pod_container_name",
	    pods__container_text(pod, container, "name"));
	set(labels, "__meta_kubernetes_pod_container_image",
	    pods__container_text(pod, container, "image"));
}

/* Removes the labels that only rules see, and makes sure that there is a name, which backends need.
 * The default is OpenTelemetry's. */
static void finish(json_t *labels)
{
	const char *name;
	json_t *value;
	void *next;

	json_object_foreach_safe(labels, next, name, value)
	{
		if (strncmp(name, RELABEL_HIDDEN, strlen(RELABEL_HIDDEN)) == 0)
			json_object_del(labels, name);
	}
	if (!json_object_get(labels, "service_name"))
		set(labels, "service_name", "unknown_service");
}

json_t *labels__of(const struct profile *profile, uint32_t index, const char *thread,
		   const struct labelling *labelling)
{
	const struct profile_process *process = &profile->processes[index];
	const char *container = profile->strings[process->container_id];
	const char *pod_uid = profile->strings[process->pod_uid];
	const json_t *pod = pods__find(labelling->pods, pod_uid, container);
	json_t *labels = json_object();
	char pid[16];

	set_service_name(labels, profile, process, pod);
	set(labels, "comm", profile->strings[process->comm]);
	set(labels, "container_id", container);
	set(labels, "pod_uid", pod_uid);
	set(labels, "pod", pods__text(pod, "name"));
	set(labels, "namespace", pods__text(pod, "namespace"));
	set(labels, "node", labelling->node);
	set(labels, "python_version", profile->strings[process->python_version]);
	snprintf(pid, sizeof(pid), "%u", process->pid);
	if (labelling->with_pid)
		set(labels, "pid", pid);
	if (thread)
		set(labels, "thread", thread);
	if (labelling->rules->count) {
		set_hidden(labels, profile, process, pod);
		if (!relabel__apply(labelling->rules, labels)) {
			json_decref(labels);
			return NULL;
		}
	}
	finish(labels);
	return labels;
}

/* The labels of each process that has samples, or with BY_THREAD of each such thread. */
static json_t **find_labels(const struct profile *profile, const struct labelling *labelling,
			    bool by_thread)
{
	size_t count = by_thread ? profile->thread_count : profile->process_count;
	json_t **labels = xcalloc(count + 1, sizeof(*labels));
	bool *asked = xcalloc(count + 1, sizeof(*asked));

	for (size_t i = 0; i < profile->sample_count; i++) {
		const struct profile_thread *thread = &profile->threads[profile->samples[i].thread];
		const char *name = by_thread ? profile->strings[thread->name] : NULL;
		uint32_t index = by_thread ? profile->samples[i].thread : thread->process;

		if (!asked[index])
			labels[index] = labels__of(profile, thread->process, name, labelling);
		asked[index] = true;
	}
	free(asked);
	return labels;
}

static void free_labels(json_t **labels, size_t count)
{
	for (size_t i = 0; labels && i < count; i++)
		json_decref(labels[i]);
	free(labels);
}

static bool is_kept(const struct labelled *labelled, const struct profile_sample *sample)
{
	return labelled_window__labels(&labelled->window, sample->thread);
}

static bool is_whole(const struct labelled *labelled, const struct profile *profile)
{
	bool whole = true;

	for (size_t i = 0; i < profile->sample_count && whole; i++)
		whole = is_kept(labelled, &profile->samples[i]);
	return whole;
}

/* Keeps the samples of PROFILE that rules do not drop. */
static void keep_rest(struct labelled *labelled, const struct profile *profile)
{
	struct profile *kept = &labelled->profile;

	*kept = *profile;
	kept->samples = xcalloc(profile->sample_count + 1, sizeof(*kept->samples));
	kept->sample_count = 0;
	labelled->numbers = xcalloc(profile->sample_count + 1, sizeof(*labelled->numbers));
	for (size_t i = 0; i < profile->sample_count; i++) {
		if (!is_kept(labelled, &profile->samples[i])) {
			labelled->dropped += profile->samples[i].amount.count;
			continue;
		}
		labelled->numbers[kept->sample_count] = i;
		kept->samples[kept->sample_count++] = profile->samples[i];
	}
	labelled->window.profile = kept;
	labelled->window.numbers = labelled->numbers;
}

/* Makes the ledgers of the samples that are kept.  Lost samples have no labels, so all of them
 * count. */
static void account(struct labelled *labelled, const struct ledger *all)
{
	service__judge(&labelled->profile);
	for (uint32_t i = 0; i < labelled->profile.event_count; i++) {
		struct ledger *ledger = &labelled->ledgers[i];

		*ledger = all[i];
		memcpy(ledger->outcomes, labelled->profile.ledgers[i].outcomes,
		       sizeof(ledger->outcomes));
		ledger->events = ledger__samples(ledger) + ledger->lost;
	}
	labelled->window.ledgers = labelled->ledgers;
}

struct labelled *labelled__new(const struct window *window, const struct labelling *labelling)
{
	struct labelled *labelled = xcalloc(1, sizeof(*labelled));

	labelled->process_count = window->profile->process_count;
	labelled->labels = find_labels(window->profile, labelling, false);
	labelled->thread_count = window->profile->thread_count;
	if (labelling->with_thread)
		labelled->thread_labels = find_labels(window->profile, labelling, true);
	labelled->window = (struct labelled_window){
		.start_unix_ns = window->start_unix_ns,
		.end_unix_ns = window->end_unix_ns,
		.profile = window->profile,
		.ledgers = window->ledgers,
		.labels = labelled->labels,
		.thread_labels = labelled->thread_labels,
	};
	if (!is_whole(labelled, window->profile)) {
		keep_rest(labelled, window->profile);
		account(labelled, window->ledgers);
	}
	return labelled;
}

void labelled__free(struct labelled *labelled)
{
	if (labelled->numbers)
		free(labelled->profile.samples);
	free(labelled->numbers);
	free_labels(labelled->labels, labelled->process_count);
	free_labels(labelled->thread_labels, labelled->thread_count);
	free(labelled);
}
