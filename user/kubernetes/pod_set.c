// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/xalloc.h"
#include "kubernetes/pod_set.h"
#include "services/relabel.h"

/* How long a deleted pod is kept: some windows, but not so long that the pods of a job that runs
 * each minute pile up. */
#define KEPT_NS 600000000000LL

#define STATUS_GONE 410

/* An annotation may contain a NUL.  The list is valid all the same. */
#define FLAGS JSON_ALLOW_NUL

#define PREFIX "__meta_kubernetes_"

/* Names and labels are shorter.  A longer annotation does not serve to tell pods apart. */
#define TEXT_BYTES_MAX 1024

/* Bounds of one pod's hidden labels.  Any user that may start a pod chooses its labels and
 * annotations, and all pods of a node share 16 MiB. */
#define HIDDEN_MAX	 256
#define HIDDEN_BYTES_MAX (32U << 10)

/* The annotation of a static pod, which the kubelet starts under a uid of its own.  That uid is in
 * the names of its cgroups; the API server's is another.  The node controls such a pod. */
#define MIRRORED "kubernetes.io/config.mirror"
#define NODE	 "Node"

/* The kubelet's uid of a static pod is a UUID, or a hash. */
#define UUID_PATTERN "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
#define HASH_PATTERN "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

/* "containerd://ID". */
#define AFTER_RUNTIME "://"

struct pod_set {
	json_t *records; /* by key */
	json_t *gone;	 /* when each deleted pod was deleted, by key */
	char *version;
};

struct pod_set *pod_set__new(void)
{
	struct pod_set *set = xcalloc(1, sizeof(*set));

	set->records = json_object();
	set->gone = json_object();
	set->version = xstrdup("");
	return set;
}

void pod_set__free(struct pod_set *set)
{
	json_decref(set->records);
	json_decref(set->gone);
	free(set->version);
	free(set);
}

/* The text of KEY; NULL if there is none, or none that can be a label. */
static const char *text_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	const char *text = json_string_value(value);

	if (!text || !*text || json_string_length(value) > TEXT_BYTES_MAX ||
	    strlen(text) != json_string_length(value))
		return NULL;
	return text;
}

static void set_text(json_t *object, const char *key, const char *text)
{
	if (text)
		json_object_set_new(object, key, json_string(text));
}

/* As set_text.  False if *ROOM, bytes of JSON, is too small: there a control character takes six.
 */
static bool set_bounded(json_t *hidden, const char *name, const char *text, size_t *room)
{
	json_t *value = json_string(text);
	size_t bytes = strlen(name) + json_dumpb(value, NULL, 0, JSON_ENCODE_ANY);
	bool has_room = json_object_size(hidden) < HIDDEN_MAX && bytes <= *room;

	if (has_room) {
		*room -= bytes;
		json_object_set(hidden, name, value);
	}
	json_decref(value);
	return has_room;
}

/* Sets two hidden labels for each entry of MAP: PREFIX's has its value, and PRESENT's says that it
 * is there.  Stops at the first entry without room.  Returns how many entries were not taken. */
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
				(!text || set_bounded(hidden, name, text, room));

		free(name);
		free(mark);
		if (!has_room)
			break;
		taken++;
	}
	return json_object_size(map) - taken;
}

/* The owner that controls the pod; NULL: none does. */
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

/* *CUT is how many labels and annotations had no room. */
static json_t *hidden_of(const json_t *pod, const json_t *metadata, size_t *cut)
{
	const json_t *controller = controller_of(metadata);
	json_t *hidden = json_object();
	size_t room = HIDDEN_BYTES_MAX;

	set_text(hidden, PREFIX "namespace", text_of(metadata, "namespace"));
	set_text(hidden, PREFIX "pod_name", text_of(metadata, "name"));
	set_text(hidden, PREFIX "pod_node_name", text_of(json_object_get(pod, "spec"), "nodeName"));
	set_text(hidden, PREFIX "pod_ip", text_of(json_object_get(pod, "status"), "podIP"));
	set_text(hidden, PREFIX "pod_controller_kind", text_of(controller, "kind"));
	set_text(hidden, PREFIX "pod_controller_name", text_of(controller, "name"));
	*cut = set_map(hidden, json_object_get(metadata, "labels"), PREFIX "pod_label_",
		       PREFIX "pod_labelpresent_", &room);
	*cut += set_map(hidden, json_object_get(metadata, "annotations"), PREFIX "pod_annotation_",
			PREFIX "pod_annotationpresent_", &room);
	return hidden;
}

/* Adds the container of STATUS that has the ID in HOLDER; it has none before it starts. */
static void add_container(json_t *containers, const json_t *status, const json_t *holder)
{
	const char *id = text_of(holder, "containerID");
	json_t *container;

	if (!id)
		return;
	if (strstr(id, AFTER_RUNTIME))
		id = strstr(id, AFTER_RUNTIME) + strlen(AFTER_RUNTIME);
	container = json_object();
	set_text(container, "name", text_of(status, "name"));
	set_text(container, "image", text_of(status, "image"));
	json_object_set_new(containers, id, container);
}

/* The containers of POD, with those from before their last restart: windows with samples of these
 * may still have no labels. */
static json_t *containers_of(const json_t *pod)
{
	static const char *const lists[] = { "initContainerStatuses", "containerStatuses",
					     "ephemeralContainerStatuses" };
	json_t *containers = json_object(), *list, *status;
	size_t at;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		list = json_object_get(json_object_get(pod, "status"), lists[i]);
		json_array_foreach(list, at, status)
		{
			const json_t *last = json_object_get(status, "lastState");

			add_container(containers, status, status);
			add_container(containers, status, json_object_get(last, "terminated"));
		}
	}
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

/* Whether TEXT has a hexadecimal digit for each x of PATTERN, and equals it otherwise. */
static bool matches(const char *text, const char *pattern)
{
	for (; *pattern; pattern++, text++)
		if (*pattern == 'x' ? !isxdigit((unsigned char)*text) : *text != *pattern)
			return false;
	return !*text;
}

/* The uid of the pod in the names of its cgroups; NULL: it has none.  Any user that may start a pod
 * gives it annotations, so these alone prove nothing. */
static const char *key_of(const json_t *metadata)
{
	const char *mirrored = text_of(json_object_get(metadata, "annotations"), MIRRORED);
	const char *kind = text_of(controller_of(metadata), "kind");

	if (mirrored && kind && strcmp(kind, NODE) == 0 &&
	    (matches(mirrored, UUID_PATTERN) || matches(mirrored, HASH_PATTERN)))
		return mirrored;
	return text_of(metadata, "uid");
}

static json_t *record_of(const json_t *pod, const json_t *metadata)
{
	json_t *record = json_object();
	size_t cut;

	set_text(record, "uid", text_of(metadata, "uid"));
	set_text(record, "name", text_of(metadata, "name"));
	set_text(record, "namespace", text_of(metadata, "namespace"));
	set_text(record, "service_name", service_name_of(metadata));
	json_object_set_new(record, "containers", containers_of(pod));
	json_object_set_new(record, "hidden", hidden_of(pod, metadata, &cut));
	if (cut)
		json_object_set_new(record, "cut", json_integer((json_int_t)cut));
	return record;
}

const char *pod_set__version(const struct pod_set *set)
{
	return set->version;
}

/* Takes the version of OBJECT; false if it has none. */
static bool take_version(struct pod_set *set, const json_t *object)
{
	const json_t *metadata = json_object_get(object, "metadata");
	const char *version = json_string_value(json_object_get(metadata, "resourceVersion"));

	/* It goes into a URL. */
	if (!version || !*version || version[strspn(version, "0123456789")])
		return false;
	free(set->version);
	set->version = xstrdup(version);
	return true;
}

/* The uid in the API of the pod that has KEY now; NULL: none has it. */
static const char *holder_of(const struct pod_set *set, const char *key)
{
	return json_string_value(json_object_get(json_object_get(set->records, key), "uid"));
}

/* Whether the pod UID may have KEY.  The pod that has KEY as its uid in the API always may.
 * Another, which claims KEY by an annotation, may only replace a deleted pod that claimed it too:
 * the kubelet replaces its pods so. */
static bool may_hold(const struct pod_set *set, const char *key, const char *uid)
{
	const char *holder = holder_of(set, key);

	if (!holder || strcmp(holder, uid) == 0 || strcmp(uid, key) == 0)
		return true;
	return strcmp(holder, key) != 0 && json_object_get(set->gone, key);
}

/* Takes POD, known or new.  GONE_NS: when it was deleted, NULL: it is not.  False if it is no pod.
 */
static bool put(struct pod_set *set, const json_t *pod, const int64_t *gone_ns)
{
	const json_t *metadata = json_object_get(pod, "metadata");
	const char *uid = text_of(metadata, "uid"), *key = key_of(metadata);

	if (!uid || !text_of(metadata, "name"))
		return false;
	if (!may_hold(set, key, uid))
		return true;
	json_object_set_new(set->records, key, record_of(pod, metadata));
	if (gone_ns)
		json_object_set_new(set->gone, key, json_integer(*gone_ns));
	else
		json_object_del(set->gone, key);
	return true;
}

/* Whether POD already has its key. */
static bool is_known(const struct pod_set *set, const json_t *pod)
{
	const json_t *metadata = json_object_get(pod, "metadata");
	const char *uid = text_of(metadata, "uid");
	const char *holder = uid ? holder_of(set, key_of(metadata)) : NULL;

	return holder && strcmp(holder, uid) == 0;
}

/* Takes the known pods first, so that no new one takes the key of a known one. */
static void put_all(struct pod_set *set, json_t *pods)
{
	json_t *pod;
	size_t i;

	json_array_foreach(pods, i, pod)
	{
		if (is_known(set, pod))
			put(set, pod, NULL);
	}
	json_array_foreach(pods, i, pod) put(set, pod, NULL);
}

static void mark_all_gone(struct pod_set *set, int64_t now_ns)
{
	const char *key;
	json_t *record;

	json_object_foreach(set->records, key, record)
	{
		if (!json_object_get(set->gone, key))
			json_object_set_new(set->gone, key, json_integer(now_ns));
	}
}

enum pod_news pod_set__take_list(struct pod_set *set, const char *text, size_t length,
				 int64_t now_ns)
{
	json_t *list = json_loadb(text, length, FLAGS, NULL);
	json_t *items = json_object_get(list, "items");
	enum pod_news news = POD_NOT_VALID;

	/* An empty list may be null. */
	if ((json_is_array(items) || json_is_null(items)) && take_version(set, list)) {
		mark_all_gone(set, now_ns);
		put_all(set, items);
		news = POD_NEWS;
	}
	json_decref(list);
	return news;
}

static enum pod_news take_change(struct pod_set *set, const char *type, const json_t *object,
				 int64_t now_ns)
{
	bool valid;

	if (strcmp(type, "ERROR") == 0)
		return json_integer_value(json_object_get(object, "code")) == STATUS_GONE
			       ? POD_TOO_OLD
			       : POD_NOT_VALID;
	if (strcmp(type, "BOOKMARK") == 0)
		return take_version(set, object) ? POD_NO_NEWS : POD_NOT_VALID;
	if (strcmp(type, "DELETED") == 0)
		valid = put(set, object, &now_ns);
	else if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
		valid = put(set, object, NULL);
	else
		return POD_NOT_VALID;
	return valid && take_version(set, object) ? POD_NEWS : POD_NOT_VALID;
}

enum pod_news pod_set__take_event(struct pod_set *set, const char *text, size_t length,
				  int64_t now_ns)
{
	json_t *event = json_loadb(text, length, FLAGS, NULL);
	const char *type = json_string_value(json_object_get(event, "type"));
	enum pod_news news = POD_NOT_VALID;

	if (type)
		news = take_change(set, type, json_object_get(event, "object"), now_ns);
	json_decref(event);
	return news;
}

size_t pod_set__count(const struct pod_set *set)
{
	return json_object_size(set->records) - json_object_size(set->gone);
}

bool pod_set__forget(struct pod_set *set, int64_t now_ns)
{
	const char *key;
	json_t *when;
	void *next;
	bool forgotten = false;

	json_object_foreach_safe(set->gone, next, key, when)
	{
		if (now_ns - json_integer_value(when) < KEPT_NS)
			continue;
		json_object_del(set->records, key);
		json_object_del(set->gone, key);
		forgotten = true;
	}
	return forgotten;
}

char *pod_set__text(const struct pod_set *set)
{
	return json_dumps(set->records, JSON_COMPACT);
}
