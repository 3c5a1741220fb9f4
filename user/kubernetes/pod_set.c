// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/xalloc.h"
#include "kubernetes/pod_record.h"
#include "kubernetes/pod_set.h"

/* Some windows; jobs of every minute do not pile up in it. */
#define KEPT_NS 600000000000LL

#define STATUS_GONE 410

/* A NUL, which an annotation may have, is no reason to refuse a list. */
#define FLAGS JSON_ALLOW_NUL

struct pod_set {
	json_t *records; /* by key */
	json_t *gone;	 /* when each that has gone went, by key */
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

const char *pod_set__version(const struct pod_set *set)
{
	return set->version;
}

/* The version that OBJECT is of; false where it has none. */
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

static const char *uid_of(const json_t *record)
{
	return json_string_value(json_object_get(record, "uid"));
}

/* Whether the record that KEY has is of RECORD's pod, and not of another that says so. */
static bool holds(const struct pod_set *set, const char *key, const json_t *record)
{
	const json_t *held = json_object_get(set->records, key);

	return held && strcmp(uid_of(held), uid_of(record)) == 0;
}

/* Whether RECORD's pod may have KEY: who has that uid of the API server always may.  Who says so
 * in another way takes it from nobody but such a one that has gone, as the kubelet's pod of before
 * has. */
static bool may_hold(const struct pod_set *set, const char *key, const json_t *record)
{
	const json_t *held = json_object_get(set->records, key);

	if (!held || holds(set, key, record) || strcmp(uid_of(record), key) == 0)
		return true;
	return strcmp(uid_of(held), key) != 0 && json_object_get(set->gone, key);
}

/* Takes POD over, of which may never have been told before; GONE_NS: when it ended, NULL: it has
 * not. False where it is no pod. */
static bool put(struct pod_set *set, const json_t *pod, const int64_t *gone_ns)
{
	char *key;
	json_t *record = pod_record__of(pod, &key);

	if (!record)
		return false;
	if (may_hold(set, key, record)) {
		json_object_set(set->records, key, record);
		if (gone_ns)
			json_object_set_new(set->gone, key, json_integer(*gone_ns));
		else
			json_object_del(set->gone, key);
	}
	json_decref(record);
	free(key);
	return true;
}

/* Whether it is one that was known. */
static bool is_known(const struct pod_set *set, const json_t *pod)
{
	char *key;
	json_t *record = pod_record__of(pod, &key);
	bool known = record && holds(set, key, record);

	if (record)
		free(key);
	json_decref(record);
	return known;
}

/* Those that were known first, so that none that is new takes what is theirs. */
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

static enum pod_news take_error(const json_t *status)
{
	return json_integer_value(json_object_get(status, "code")) == STATUS_GONE ? POD_TOO_OLD
										  : POD_NOT_VALID;
}

static enum pod_news take_change(struct pod_set *set, const char *type, const json_t *object,
				 int64_t now_ns)
{
	bool valid;

	if (strcmp(type, "ERROR") == 0)
		return take_error(object);
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
