// SPDX-License-Identifier: BSD-2-Clause
/* The input: a list of pods in the first line, an event of a watch in each other line. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "input.h"
#include "kubernetes/pod_set.h"
#include "services/relabel.h"

#define STEP_NS 60000000000LL

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

static void check_record(const json_t *record)
{
	json_t *hidden = json_object_get(record, "hidden"), *value;
	const char *name;

	CHECK(json_string_value(json_object_get(record, "uid")));
	CHECK(json_string_value(json_object_get(record, "name")));
	CHECK(json_is_object(json_object_get(record, "containers")));
	json_object_foreach(hidden, name, value)
	{
		CHECK(*name && !name[strspn(name, NAME_CHARACTERS)]);
		CHECK(strncmp(name, RELABEL_HIDDEN, strlen(RELABEL_HIDDEN)) == 0);
		CHECK(json_string_length(value) > 0);
		CHECK(strlen(json_string_value(value)) == json_string_length(value));
	}
}

static void check(const struct pod_set *set)
{
	char *text = pod_set__text(set);
	json_t *records = json_loads(text, 0, NULL), *record;
	const char *version = pod_set__version(set), *key;

	CHECK(records);
	CHECK(!version[strspn(version, "0123456789")]);
	json_object_foreach(records, key, record) check_record(record);
	json_decref(records);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct pod_set *set = pod_set__new();
	const char *at = (const char *)bytes, *end = at + size;
	int64_t now_ns = 0;

	for (; at < end; now_ns += STEP_NS) {
		const char *stop = memchr(at, '\n', end - at);
		size_t length = stop ? (size_t)(stop - at) : (size_t)(end - at);

		if (now_ns)
			pod_set__take_event(set, at, length, now_ns);
		else
			pod_set__take_list(set, at, length, now_ns);
		check(set);
		pod_set__forget(set, now_ns);
		at += length + 1;
	}
	pod_set__free(set);
	return 0;
}
