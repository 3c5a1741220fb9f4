// SPDX-License-Identifier: BSD-2-Clause
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "kubernetes/pod_record.h"
#include "services/relabel.h"

#define PREFIX "__meta_kubernetes_"

/* Names and labels have fewer; what has more, as annotations may, is not for telling pods apart. */
#define TEXT_BYTES_MAX 1024

/* Of one pod: any who may start one chooses how many labels and annotations it has, and all pods of
 * a node have room in 16 MiB. */
#define HIDDEN_MAX	 256
#define HIDDEN_BYTES_MAX (32U << 10)

/* The kubelet starts this one, by a uid of its own, which is in its cgroups; the API server's is
 * another.  The kubelet has the node control it. */
#define MIRRORED "kubernetes.io/config.mirror"
#define NODE	 "Node"

/* A hash of what the kubelet starts, or the uid that this has. */
#define HASH_LENGTH 32
#define HEX_DIGITS  "0123456789abcdefABCDEF"

/* "containerd://ID". */
#define AFTER_RUNTIME "://"

/* The text that is KEY's; NULL where there is none, or one that is not for a label. */
static const char *text_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	const char *text = json_string_value(value);

	if (!text || !*text || json_string_length(value) > TEXT_BYTES_MAX ||
	    strlen(text) != json_string_length(value))
		return NULL;
	return text;
}

static void set(json_t *object, const char *key, const char *text)
{
	if (text)
		json_object_set_new(object, key, json_string(text));
}

/* As JSON has it, where a control character takes six. */
static size_t bytes_of(const char *name, const char *text)
{
	json_t *value = json_string(text);
	size_t bytes = strlen(name) + json_dumpb(value, NULL, 0, JSON_ENCODE_ANY);

	json_decref(value);
	return bytes;
}

/* As set, where *ROOM, in bytes, is left for it. */
static bool set_bounded(json_t *hidden, const char *name, const char *text, size_t *room)
{
	size_t bytes = text ? bytes_of(name, text) : 0;

	if (!text)
		return true;
	if (json_object_size(hidden) >= HIDDEN_MAX || bytes > *room)
		return false;
	*room -= bytes;
	set(hidden, name, text);
	return true;
}

/* A hidden label for each entry of MAP, and one that says that it is there.  Returns how many
 * entries had no room: what follows one that has none has none either. */
static size_t set_map(json_t *hidden, json_t *map, const char *prefix, const char *present,
		      size_t *room)
{
	size_t taken = 0;
	const char *key;
	json_t *value;

	json_object_foreach(map, key, value)
	{
		const char *text = text_of(map, key);
		char *name = relabel__name(prefix, key), *mark = relabel__name(present, key);
		bool has_room = set_bounded(hidden, mark, "true", room) &&
				set_bounded(hidden, name, text, room);

		free(name);
		free(mark);
		if (!has_room)
			break;
		taken++;
	}
	return json_object_size(map) - taken;
}

/* The owner that controls it; NULL: there is none. */
static const json_t *controller_of(const json_t *metadata)
{
	json_t *owners = json_object_get(metadata, "ownerReferences"), *owner;
	size_t i;

	json_array_foreach(owners, i, owner)
	{
		if (json_is_true(json_object_get(owner, "controller")))
			return owner;
	}
	return NULL;
}

static void set_controller(json_t *hidden, const json_t *metadata)
{
	const json_t *owner = controller_of(metadata);

	set(hidden, PREFIX "pod_controller_kind", text_of(owner, "kind"));
	set(hidden, PREFIX "pod_controller_name", text_of(owner, "name"));
}

/* *CUT is how many labels and annotations had no room. */
static json_t *hidden_of(const json_t *pod, const json_t *metadata, size_t *cut)
{
	json_t *hidden = json_object();
	size_t room = HIDDEN_BYTES_MAX;

	set(hidden, PREFIX "namespace", text_of(metadata, "namespace"));
	set(hidden, PREFIX "pod_name", text_of(metadata, "name"));
	set(hidden, PREFIX "pod_node_name", text_of(json_object_get(pod, "spec"), "nodeName"));
	set(hidden, PREFIX "pod_ip", text_of(json_object_get(pod, "status"), "podIP"));
	set_controller(hidden, metadata);
	*cut = set_map(hidden, json_object_get(metadata, "labels"), PREFIX "pod_label_",
		       PREFIX "pod_labelpresent_", &room);
	*cut += set_map(hidden, json_object_get(metadata, "annotations"), PREFIX "pod_annotation_",
			PREFIX "pod_annotationpresent_", &room);
	return hidden;
}

static void add_container(json_t *containers, const json_t *status)
{
	const char *id = text_of(status, "containerID");
	json_t *container;

	/* It has none before it starts. */
	if (!id)
		return;
	if (strstr(id, AFTER_RUNTIME))
		id = strstr(id, AFTER_RUNTIME) + strlen(AFTER_RUNTIME);
	container = json_object();
	set(container, "name", text_of(status, "name"));
	set(container, "image", text_of(status, "image"));
	json_object_set_new(containers, id, container);
}

/* Also those before the last start, whose samples may not have been given a name yet. */
static void add_containers(json_t *containers, const json_t *statuses)
{
	const json_t *status;
	size_t i;

	json_array_foreach(statuses, i, status)
	{
		const json_t *last = json_object_get(status, "lastState"), *before;
		json_t *old;

		add_container(containers, status);
		before = json_object_get(last, "terminated");
		old = json_copy((json_t *)status);
		if (old && json_object_get(before, "containerID")) {
			json_object_set(old, "containerID", json_object_get(before, "containerID"));
			add_container(containers, old);
		}
		json_decref(old);
	}
}

static json_t *containers_of(const json_t *pod)
{
	const json_t *status = json_object_get(pod, "status");
	json_t *containers = json_object();

	add_containers(containers, json_object_get(status, "initContainerStatuses"));
	add_containers(containers, json_object_get(status, "containerStatuses"));
	add_containers(containers, json_object_get(status, "ephemeralContainerStatuses"));
	return containers;
}

static const char *service_name_of(const json_t *metadata)
{
	static const struct {
		const char *map, *key;
	} places[] = {
		{ "annotations", "resource.opentelemetry.io/service.name" },
		{ "annotations", "pyroscope.io/service_name" },
		{ "labels", "app.kubernetes.io/name" },
		{ "labels", "app" },
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const char *name = text_of(json_object_get(metadata, places[i].map), places[i].key);

		if (name)
			return name;
	}
	return NULL;
}

static bool is_uid(const char *text)
{
	static const size_t groups[] = { 8, 4, 4, 4, 12 };

	if (strlen(text) == HASH_LENGTH)
		return strspn(text, HEX_DIGITS) == HASH_LENGTH;
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (i && *text++ != '-')
			return false;
		if (strspn(text, HEX_DIGITS) != groups[i])
			return false;
		text += groups[i];
	}
	return !*text;
}

/* The uid in its cgroups.  Anybody who may start a pod gives it annotations. */
static const char *key_of(const json_t *metadata)
{
	const char *mirrored = text_of(json_object_get(metadata, "annotations"), MIRRORED);
	const char *kind = text_of(controller_of(metadata), "kind");

	if (mirrored && is_uid(mirrored) && kind && strcmp(kind, NODE) == 0)
		return mirrored;
	return text_of(metadata, "uid");
}

json_t *pod_record__of(const json_t *pod, char **key)
{
	const json_t *metadata = json_object_get(pod, "metadata");
	const char *uid = text_of(metadata, "uid"), *name = text_of(metadata, "name");
	json_t *record;
	size_t cut;

	if (!uid || !name)
		return NULL;
	*key = xstrdup(key_of(metadata));
	record = json_object();
	set(record, "uid", uid);
	set(record, "name", name);
	set(record, "namespace", text_of(metadata, "namespace"));
	set(record, "service_name", service_name_of(metadata));
	json_object_set_new(record, "containers", containers_of(pod));
	json_object_set_new(record, "hidden", hidden_of(pod, metadata, &cut));
	if (cut)
		json_object_set_new(record, "cut", json_integer((json_int_t)cut));
	return record;
}
