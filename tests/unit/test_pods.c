// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/xalloc.h"
#include "kubernetes/pod_board.h"
#include "kubernetes/pod_set.h"

#define MINUTE_NS 60000000000LL

#define POD(uid, name, version)                               \
	"{\"metadata\":{\"uid\":\"" uid "\",\"name\":\"" name \
	"\",\"namespace\":\"shop\",\"resourceVersion\":\"" version "\"}}"
#define LIST(version, items)                                                 \
	"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version \
	"\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}"

#define TAKE(kind, set, text, now_ns) pod_set__take_##kind(set, text, strlen(text), now_ns)

/* Returns the record of the pod TEXT.  Its key must be WANTED_KEY; NULL: there must be none. */
static json_t *record_of(const char *text, const char *wanted_key)
{
	struct pod_set *set = pod_set__new();
	char *list = xasprintf(LIST("1", "%s"), text), *all;
	json_t *records, *record;

	assert_int_equal(TAKE(list, set, list, 0), POD_NEWS);
	all = pod_set__text(set);
	records = json_loads(all, 0, NULL);
	assert_int_equal(json_object_size(records), wanted_key ? 1 : 0);
	record = wanted_key ? json_incref(json_object_get(records, wanted_key)) : NULL;
	assert_true(!wanted_key || record);
	json_decref(records);
	free(all);
	free(list);
	pod_set__free(set);
	return record;
}

static void is_text(const json_t *object, const char *key, const char *wanted)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (!wanted)
		assert_null(text);
	else if (!text || strcmp(text, wanted) != 0)
		fail_msg("%s is '%s', not '%s'", key, text ? text : "nothing", wanted);
}

static void a_record_has_all_of_the_pod(void **state)
{
	json_t *record = record_of(
		"{\"metadata\":{\"uid\":\"u1\",\"name\":\"web-7d-x\",\"namespace\":\"shop\","
		"\"labels\":{\"app.kubernetes.io/name\":\"web\",\"app\":\"other\",\"tier\":\"a\"},"
		"\"annotations\":{\"note\":\"n\",\"nul\":\"a\\u0000b\"},\"ownerReferences\":["
		"{\"kind\":\"Thing\",\"name\":\"t\"},"
		"{\"kind\":\"ReplicaSet\",\"name\":\"web-7d\",\"controller\":true}]},"
		"\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"podIP\":\"10.0.0.1\","
		"\"containerStatuses\":[{\"name\":\"main\",\"image\":\"web:1\","
		"\"containerID\":\"containerd://c1\",\"lastState\":{\"terminated\":"
		"{\"containerID\":\"containerd://c0\"}}},{\"name\":\"not-yet\"}],"
		"\"initContainerStatuses\":[{\"name\":\"init\",\"containerID\":\"c2\"}]}}",
		"u1");
	const json_t *hidden = json_object_get(record, "hidden");
	const json_t *containers = json_object_get(record, "containers");

	(void)state;
	is_text(record, "name", "web-7d-x");
	is_text(record, "namespace", "shop");
	is_text(record, "service_name", "web");
	is_text(json_object_get(containers, "c1"), "name", "main");
	is_text(json_object_get(containers, "c1"), "image", "web:1");
	is_text(json_object_get(containers, "c0"), "name", "main");
	is_text(json_object_get(containers, "c2"), "name", "init");
	assert_int_equal(json_object_size(containers), 3);
	is_text(hidden, "__meta_kubernetes_namespace", "shop");
	is_text(hidden, "__meta_kubernetes_pod_name", "web-7d-x");
	is_text(hidden, "__meta_kubernetes_pod_node_name", "n1");
	is_text(hidden, "__meta_kubernetes_pod_ip", "10.0.0.1");
	is_text(hidden, "__meta_kubernetes_pod_controller_kind", "ReplicaSet");
	is_text(hidden, "__meta_kubernetes_pod_controller_name", "web-7d");
	is_text(hidden, "__meta_kubernetes_pod_label_app_kubernetes_io_name", "web");
	is_text(hidden, "__meta_kubernetes_pod_labelpresent_tier", "true");
	is_text(hidden, "__meta_kubernetes_pod_annotation_note", "n");
	is_text(hidden, "__meta_kubernetes_pod_annotation_nul", NULL);
	is_text(hidden, "__meta_kubernetes_pod_annotationpresent_nul", "true");
	json_decref(record);
}

static void services_are_named(void **state)
{
	static const char *const pods[][2] = {
		{ "\"labels\":{\"app\":\"a\"}", "a" },
		{ "\"labels\":{\"app.kubernetes.io/name\":\"b\",\"app\":\"a\"}", "b" },
		{ "\"labels\":{\"app\":\"a\"},\"annotations\":{\"pyroscope.io/"
		  "service_name\":\"c\"}",
		  "c" },
		{ "\"annotations\":{\"pyroscope.io/service_name\":\"c\","
		  "\"resource.opentelemetry.io/service.name\":\"d\"}",
		  "d" },
		{ "\"labels\":{\"app\":\"\"}", NULL },
		{ "\"labels\":null", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pods) / sizeof(pods[0]); i++) {
		char *text =
			xasprintf("{\"metadata\":{\"uid\":\"u\",\"name\":\"n\",%s}}", pods[i][0]);
		json_t *record = record_of(text, "u");

		is_text(record, "service_name", pods[i][1]);
		json_decref(record);
		free(text);
	}
}

#define HASH "0123456789abcdef0123456789abcdef"
#define UID  "01234567-89ab-cdef-0123-456789abcdef"

#define MIRROR(uid, name, version, of)                                                            \
	"{\"metadata\":{\"uid\":\"" uid "\",\"name\":\"" name "\",\"resourceVersion\":\"" version \
	"\",\"annotations\":{\"kubernetes.io/config.mirror\":\"" of                               \
	"\"},\"ownerReferences\":[{\"kind\":\"Node\",\"name\":\"n1\",\"controller\":true}]}}"

/* The cgroups of a static pod have the kubelet's uid for it, not the API server's. */
static void a_mirrored_pod_is_known_by_the_kubelets_uid(void **state)
{
	(void)state;
	json_decref(record_of(MIRROR("u", "etcd", "1", HASH), HASH));
	json_decref(record_of(MIRROR("u", "etcd", "1", UID), UID));
}

/* Any user that may create a pod may give it this annotation. */
static void a_false_mirror_annotation_is_not_trusted(void **state)
{
	static const char *const values[] = {
		"web",
		HASH "0",
		"0123456789abcdef0123456789abcdeg",
		UID "0",
		"-" UID,
		"0123456789abcdef0123456789abcde",
		"01234567-89ab-cdef-0123456789abcdef-0123",
	};
	static const char *const owners[] = {
		"null",
		"[{\"kind\":\"Node\",\"name\":\"n1\"}]",
		"[{\"kind\":\"ReplicaSet\",\"name\":\"r\",\"controller\":true},"
		"{\"kind\":\"Node\",\"name\":\"n1\"}]",
	};
	const size_t value_count = sizeof(values) / sizeof(values[0]);

	(void)state;
	for (size_t i = 0; i < value_count + sizeof(owners) / sizeof(owners[0]); i++) {
		char *text = xasprintf(
			"{\"metadata\":{\"uid\":\"u\",\"name\":\"n\",\"annotations\":{"
			"\"kubernetes.io/config.mirror\":\"%s\"},\"ownerReferences\":%s}}",
			i < value_count ? values[i] : HASH,
			i < value_count ? "[{\"kind\":\"Node\",\"controller\":true}]"
					: owners[i - value_count]);

		json_decref(record_of(text, "u"));
		free(text);
	}
}

/* The record of a pod with COUNT annotations, each with the value TEXT. */
static json_t *annotated(size_t count, const char *text)
{
	json_t *annotations = json_object(), *record, *pod;
	char *dumped;

	for (size_t i = 0; i < count; i++) {
		char *name = xasprintf("a%zu", i);

		json_object_set_new(annotations, name, json_string(text));
		free(name);
	}
	pod = json_pack("{s:{s:s,s:s,s:s,s:{s:s},s:o},s:{s:[{s:s,s:s}]}}", "metadata", "uid", "u",
			"name", "n", "namespace", "shop", "labels", "app", "web", "annotations",
			annotations, "status", "containerStatuses", "name", "main", "containerID",
			"containerd://c1");
	assert_non_null(pod);
	dumped = json_dumps(pod, 0);
	record = record_of(dumped, "u");
	free(dumped);
	json_decref(pod);
	return record;
}

/* RECORD has all names and containers, but only LABELS hidden labels: CUT are left out. */
static void is_cut(json_t *record, size_t labels, size_t cut)
{
	const json_t *containers = json_object_get(record, "containers");
	const json_t *hidden = json_object_get(record, "hidden");

	is_text(record, "name", "n");
	is_text(record, "namespace", "shop");
	is_text(record, "service_name", "web");
	is_text(json_object_get(containers, "c1"), "name", "main");
	is_text(hidden, "__meta_kubernetes_pod_label_app", "web");
	assert_int_equal(json_object_size(hidden), labels);
	assert_int_equal(json_integer_value(json_object_get(record, "cut")), cut);
	assert_true(json_dumpb(record, NULL, 0, JSON_COMPACT) < 48 << 10);
	json_decref(record);
}

/* Any user that may create a pod may give it many annotations. */
static void the_size_of_a_record_is_bounded(void **state)
{
	char text[1025] = "", controls[1025] = "";

	(void)state;
	memset(text, 'x', 1024);
	memset(controls, '\x01', 1024);
	/* Each annotation makes two labels.  Four more are namespace, name, and two for "app". */
	is_cut(annotated(126, "x"), 256, 0);
	is_cut(annotated(127, "x"), 256, 1);
	is_cut(annotated(120000, "x"), 256, 120000 - 126);
	is_cut(annotated(100, text), 4 + 2 * 29 + 1, 100 - 29);
	is_cut(annotated(100, controls), 4 + 2 * 5 + 1, 100 - 5);
}

static void invalid_pods_and_fields_are_skipped(void **state)
{
	static const char *const texts[] = {
		"{}",
		"[]",
		"{\"metadata\":[]}",
		"{\"metadata\":{\"uid\":1,\"name\":\"n\"}}",
		"{\"metadata\":{\"uid\":\"u\"}}",
		"{\"metadata\":{\"uid\":\"\",\"name\":\"n\"}}",
	};
	json_t *record;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		record_of(texts[i], NULL);
	record = record_of("{\"metadata\":{\"uid\":\"u\",\"name\":\"n\",\"labels\":[1],"
			   "\"annotations\":\"x\",\"ownerReferences\":{}},\"spec\":7,"
			   "\"status\":{\"containerStatuses\":[1,{\"containerID\":{}},null]}}",
			   "u");
	assert_int_equal(json_object_size(json_object_get(record, "containers")), 0);
	json_decref(record);
}

static void says(const struct pod_set *set, const char *key, const char *wanted)
{
	char *text = pod_set__text(set);
	json_t *records = json_loads(text, 0, NULL), *record = json_object_get(records, key);

	is_text(record, "name", wanted);
	json_decref(records);
	free(text);
}

static void a_set_follows_lists_and_events(void **state)
{
	struct pod_set *set = pod_set__new();

	(void)state;
	assert_string_equal(pod_set__version(set), "");
	assert_int_equal(
		TAKE(list, set, LIST("7", POD("a", "one", "3") "," POD("b", "two", "5")), 0),
		POD_NEWS);
	assert_string_equal(pod_set__version(set), "7");
	assert_int_equal(pod_set__count(set), 2);
	assert_int_equal(TAKE(event, set, EVENT("ADDED", POD("c", "three", "8")), 0), POD_NEWS);
	assert_int_equal(TAKE(event, set, EVENT("MODIFIED", POD("c", "drei", "9")), 0), POD_NEWS);
	says(set, "c", "drei");
	assert_string_equal(pod_set__version(set), "9");
	assert_int_equal(TAKE(event, set,
			      EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"12\"}}"), 0),
			 POD_NO_NEWS);
	assert_string_equal(pod_set__version(set), "12");
	assert_int_equal(TAKE(event, set, EVENT("DELETED", POD("a", "one", "13")), 0), POD_NEWS);
	says(set, "a", "one");
	assert_int_equal(pod_set__count(set), 2);
	assert_false(pod_set__forget(set, MINUTE_NS));
	says(set, "a", "one");
	assert_true(pod_set__forget(set, 11 * MINUTE_NS));
	assert_int_equal(pod_set__count(set), 2);
	says(set, "a", NULL);
	says(set, "b", "two");
	/* The list lacks pod c, so c was deleted; b was not. */
	assert_int_equal(TAKE(list, set, LIST("20", POD("b", "two", "5")), 11 * MINUTE_NS),
			 POD_NEWS);
	assert_true(pod_set__forget(set, 30 * MINUTE_NS));
	says(set, "b", "two");
	says(set, "c", NULL);
	pod_set__free(set);
}

static void no_pod_takes_anothers_uid(void **state)
{
	struct pod_set *set = pod_set__new();

	(void)state;
	assert_int_equal(TAKE(list, set, LIST("1", POD(UID, "one", "1")), 0), POD_NEWS);
	assert_int_equal(TAKE(event, set, EVENT("ADDED", MIRROR("x", "thief", "2", UID)), 0),
			 POD_NEWS);
	says(set, UID, "one");
	assert_int_equal(TAKE(event, set, EVENT("DELETED", MIRROR("x", "thief", "3", UID)), 0),
			 POD_NEWS);
	assert_false(pod_set__forget(set, 11 * MINUTE_NS));
	says(set, UID, "one");
	assert_int_equal(TAKE(event, set, EVENT("DELETED", POD(UID, "one", "4")), 0), POD_NEWS);
	assert_int_equal(TAKE(event, set, EVENT("ADDED", MIRROR("x", "thief", "5", UID)), 0),
			 POD_NEWS);
	says(set, UID, "one");
	/* The uid goes to the pod that has it in the API, even if that is later in a list. */
	assert_true(pod_set__forget(set, 11 * MINUTE_NS));
	assert_int_equal(TAKE(list, set,
			      LIST("6", MIRROR("x", "thief", "5", UID) "," POD(UID, "one", "6")),
			      0),
			 POD_NEWS);
	says(set, UID, "one");
	pod_set__free(set);
}

/* If a mirror pod is deleted, the kubelet creates another one for the same static pod. */
static void a_new_mirror_pod_replaces_a_deleted_one(void **state)
{
	struct pod_set *set = pod_set__new();

	(void)state;
	assert_int_equal(TAKE(list, set, LIST("1", MIRROR("a", "etcd", "1", HASH)), 0), POD_NEWS);
	assert_int_equal(TAKE(event, set, EVENT("ADDED", MIRROR("x", "thief", "2", HASH)), 0),
			 POD_NEWS);
	says(set, HASH, "etcd");
	assert_int_equal(
		TAKE(list, set,
		     LIST("3", MIRROR("x", "thief", "2", HASH) "," MIRROR("a", "etcd", "1", HASH)),
		     0),
		POD_NEWS);
	says(set, HASH, "etcd");
	assert_int_equal(TAKE(event, set, EVENT("DELETED", MIRROR("a", "etcd", "4", HASH)), 0),
			 POD_NEWS);
	assert_int_equal(TAKE(event, set, EVENT("ADDED", MIRROR("b", "etcd-b", "5", HASH)), 0),
			 POD_NEWS);
	says(set, HASH, "etcd-b");
	assert_false(pod_set__forget(set, 11 * MINUTE_NS));
	pod_set__free(set);
}

static void invalid_lists_and_events_are_refused(void **state)
{
	static const char *const lists[] = {
		"",
		"<html>",
		"{}",
		"{\"items\":[]}",
		"{\"items\":{},\"metadata\":{\"resourceVersion\":\"1\"}}",
		"{\"items\":[],\"metadata\":{\"resourceVersion\":\"1&x=y\"}}",
	};
	static const char *const events[] = {
		"garbage",
		"[]",
		"{\"type\":\"ADDED\"}",
		"{\"type\":1}",
		EVENT("FOO", POD("a", "one", "3")),
		EVENT("ADDED", POD("a", "one", "x")),
		EVENT("BOOKMARK", "{}"),
		EVENT("ERROR", "{\"code\":500}"),
	};
	struct pod_set *set = pod_set__new();

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		assert_int_equal(TAKE(list, set, lists[i], 0), POD_NOT_VALID);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		assert_int_equal(TAKE(event, set, events[i], 0), POD_NOT_VALID);
	assert_int_equal(TAKE(event, set, EVENT("ERROR", "{\"code\":410}"), 0), POD_TOO_OLD);
	/* An invalid item of a list is skipped. */
	assert_int_equal(TAKE(list, set, LIST("7", "7," POD("b", "two", "5")), 0), POD_NEWS);
	says(set, "b", "two");
	assert_int_equal(
		TAKE(list, set, "{\"items\":null,\"metadata\":{\"resourceVersion\":\"9\"}}", 0),
		POD_NEWS);
	pod_set__free(set);
}

static void a_board_has_the_text_that_was_written_last(void **state)
{
	struct pod_board *board = pod_board__new();
	uint64_t serial = 0;
	size_t length;
	char *text;

	(void)state;
	assert_null(pod_board__read(board, &serial, &length));
	assert_true(pod_board__write(board, "one", 3));
	assert_true(pod_board__write(board, "second", 6));
	text = pod_board__read(board, &serial, &length);
	assert_string_equal(text, "second");
	assert_int_equal(length, 6);
	free(text);
	assert_null(pod_board__read(board, &serial, &length));
	assert_false(pod_board__write(board, "too long!", BOARD_BYTES + 1));
	assert_null(pod_board__read(board, &serial, &length));
	assert_true(pod_board__write(board, "", 0));
	text = pod_board__read(board, &serial, &length);
	assert_string_equal(text, "");
	free(text);
	/* While a text does not fit, the board keeps an old one and is crowded. */
	assert_false(board->crowded);
	assert_false(pod_board__write(board, "too long!", BOARD_BYTES + 1));
	assert_true(board->crowded);
	assert_true(pod_board__write(board, "fits", 4));
	assert_false(board->crowded);
	text = pod_board__read(board, &serial, &length);
	assert_string_equal(text, "fits");
	free(text);
	/* A compromised writer may claim any length. */
	assert_true(pod_board__write(board, "more", 4));
	board->length[board->written % 2] = BOARD_BYTES + 1;
	assert_null(pod_board__read(board, &serial, &length));
	pod_board__free(board);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_has_all_of_the_pod),
		cmocka_unit_test(services_are_named),
		cmocka_unit_test(a_mirrored_pod_is_known_by_the_kubelets_uid),
		cmocka_unit_test(a_false_mirror_annotation_is_not_trusted),
		cmocka_unit_test(the_size_of_a_record_is_bounded),
		cmocka_unit_test(invalid_pods_and_fields_are_skipped),
		cmocka_unit_test(a_set_follows_lists_and_events),
		cmocka_unit_test(no_pod_takes_anothers_uid),
		cmocka_unit_test(a_new_mirror_pod_replaces_a_deleted_one),
		cmocka_unit_test(invalid_lists_and_events_are_refused),
		cmocka_unit_test(a_board_has_the_text_that_was_written_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
