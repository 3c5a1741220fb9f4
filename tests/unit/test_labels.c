// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/labels.h"
#include "processes/service_name.h"
#include "synthetic.h"

#define VARIABLES(text) text, sizeof(text) /* with the last NUL */

static void named(const char *variables, size_t length, const char *wanted)
{
	char *name = service_name__of(variables, length);

	if (wanted)
		assert_string_equal(name, wanted);
	else
		assert_null(name);
	free(name);
}

static void the_environment_names_a_service(void **state)
{
	(void)state;
	named(VARIABLES("A=b\0OTEL_SERVICE_NAME=web\0C=d"), "web");
	named(VARIABLES("OTEL_RESOURCE_ATTRIBUTES=a=b,service.name=api%2C%201,c=d"), "api, 1");
	named(VARIABLES("OTEL_RESOURCE_ATTRIBUTES=service.name=api\0OTEL_SERVICE_NAME=web"), "web");
	named(VARIABLES("OTEL_RESOURCE_ATTRIBUTES=service.name=api\0OTEL_SERVICE_NAME="), "api");
	named(VARIABLES("OTEL_RESOURCE_ATTRIBUTES=a=b, service.name=api"), "api");
	named(VARIABLES("OTEL_RESOURCE_ATTRIBUTES= service.name = spaced "), "spaced");
	named(VARIABLES("OTEL_RESOURCE_ATTRIBUTES=a = b ,\tservice.name\t=\tan api\t, c=d"),
	      "an api");
	named(VARIABLES("OTEL_RESOURCE_ATTRIBUTES=service.name= %20api%20 "), " api ");
	named(VARIABLES("OTEL_RESOURCE_ATTRIBUTES=service.name=a=b"), "a=b");
	named(VARIABLES("OTEL_RESOURCE_ATTRIBUTES=service.name=api\0OTEL_SERVICE_NAME= \t"), "api");
}

static void other_environments_name_no_service(void **state)
{
	char *longest = xmalloc(4096);

	(void)state;
	named("", 0, NULL);
	named(VARIABLES(""), NULL);
	named(VARIABLES("NOT_OTEL_SERVICE_NAME=web"), NULL);
	named(VARIABLES("OTEL_RESOURCE_ATTRIBUTES=service.name="), NULL);
	named(VARIABLES("OTEL_RESOURCE_ATTRIBUTES=my.service.name=web"), NULL);
	named(VARIABLES("OTEL_RESOURCE_ATTRIBUTES=,,,"), NULL);
	named(VARIABLES("OTEL_RESOURCE_ATTRIBUTES=service.name, = ,service.name"), NULL);
	named(VARIABLES("OTEL_RESOURCE_ATTRIBUTES=service.name= "), NULL);
	named(VARIABLES("OTEL_RESOURCE_ATTRIBUTES=service.name= ,a=b"), NULL);
	named(VARIABLES("OTEL_RESOURCE_ATTRIBUTES=service.name=%20"), NULL);
	named(VARIABLES("OTEL_SERVICE_NAME= "), NULL);
	/* The variable was cut: it has no NUL. */
	named("OTEL_SERVICE_NAME=we", 20, NULL);
	memset(longest, 'x', 4096);
	memcpy(longest, "OTEL_SERVICE_NAME=", 18);
	longest[4095] = '\0';
	named(longest, 4096, NULL);
	free(longest);
}

/* The labels of PROFILE's first process after RULES; NULL: RULES drop it. */
static char *labels_text(const struct profile *profile, const struct relabel_rules *rules)
{
	const struct labelling labelling = { .node = "node1", .rules = rules };
	json_t *labels = labels__of(profile, 0, NULL, &labelling);
	char *text = labels ? json_dumps(labels, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	json_decref(labels);
	return text;
}

static void labelled(const struct profile *profile, const char *wanted)
{
	char *text = labels_text(profile, &(struct relabel_rules){ 0 });

	assert_string_equal(text, wanted);
	free(text);
}

static void the_best_source_names_the_service(void **state)
{
	struct profile *profile = profile__new();
	struct profile_process *process;

	(void)state;
	synthetic__main_thread(profile, 1, 10, "worker.py", "python3 worker.py");
	process = &profile->processes[0];
	labelled(profile, "{\"node\":\"node1\",\"python_version\":\"3.11.7\","
			  "\"service_name\":\"worker.py\"}");
	process->unit = profile__string(profile, "session-3.scope");
	process->comm = profile__string(profile, "python3");
	process->container_id = profile__string(profile, SYNTHETIC_CONTAINER);
	labelled(profile, "{\"comm\":\"python3\",\"container_id\":\"" SYNTHETIC_CONTAINER
			  "\",\"node\":\"node1\",\"python_version\":\"3.11.7\","
			  "\"service_name\":\"worker.py\"}");
	process->comm = 0;
	process->container_id = profile__string(profile, "mail");
	process->pod_uid = profile__string(profile, SYNTHETIC_POD);
	labelled(profile,
		 "{\"container_id\":\"mail\",\"node\":\"node1\",\"pod_uid\":\"" SYNTHETIC_POD
		 "\",\"python_version\":\"3.11.7\",\"service_name\":\"mail\"}");
	process->container_id = process->pod_uid = 0;
	process->unit = profile__string(profile, "nginx.service");
	labelled(profile, "{\"node\":\"node1\",\"python_version\":\"3.11.7\","
			  "\"service_name\":\"nginx\"}");
	process->service_name = profile__string(profile, "web");
	labelled(profile, "{\"node\":\"node1\",\"python_version\":\"3.11.7\","
			  "\"service_name\":\"web\"}");
	process->service_name = 0;
	process->unit = profile__string(profile, "user@1000.service");
	labelled(profile, "{\"node\":\"node1\",\"python_version\":\"3.11.7\","
			  "\"service_name\":\"worker.py\"}");
	/* The process ended before it could be read. */
	process->short_name = process->unit = 0;
	labelled(profile, "{\"node\":\"node1\",\"python_version\":\"3.11.7\","
			  "\"service_name\":\"unknown_service\"}");
	profile__free(profile);
}

static void a_pid_is_a_label_on_request(void **state)
{
	const struct relabel_rules rules = { 0 };
	const struct labelling labelling = { .node = "n", .with_pid = true, .rules = &rules };
	struct profile *profile = profile__new();
	json_t *labels;

	(void)state;
	synthetic__main_thread(profile, 1, 10, "worker.py", "python3 worker.py");
	labels = labels__of(profile, 0, NULL, &labelling);
	assert_string_equal(json_string_value(json_object_get(labels, "pid")), "10");
	json_decref(labels);
	profile__free(profile);
}

static void rules_also_see_hidden_labels(void **state)
{
	struct profile *profile = profile__new();
	struct relabel_rules rules = { 0 };
	struct profile_process *process;
	char *text;

	(void)state;
	synthetic__main_thread(profile, 1, 10, "worker.py", "python3 worker.py");
	process = &profile->processes[0];
	process->user = profile__string(profile, "mail");
	process->comm = profile__string(profile, "python3");
	assert_null(relabel__add(&rules, "{\"source_labels\":[\"__meta_process_cmdline\","
					 "\"__meta_process_user\",\"__meta_process_script\"],"
					 "\"target_label\":\"what\"}"));
	assert_null(relabel__add(&rules, "{\"action\":\"labeldrop\",\"regex\":"
					 "\"service_name|node|python_version\"}"));
	text = labels_text(profile, &rules);
	assert_string_equal(text, "{\"comm\":\"python3\",\"service_name\":\"unknown_service\","
				  "\"what\":\"python3 worker.py;mail;worker.py\"}");
	free(text);
	assert_null(relabel__add(&rules, "{\"source_labels\":[\"comm\"],\"action\":\"drop\"}"));
	assert_null(labels_text(profile, &rules));
	relabel__free(&rules);
	profile__free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_environment_names_a_service),
		cmocka_unit_test(other_environments_name_no_service),
		cmocka_unit_test(the_best_source_names_the_service),
		cmocka_unit_test(a_pid_is_a_label_on_request),
		cmocka_unit_test(rules_also_see_hidden_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
