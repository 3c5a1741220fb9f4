// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gunzip.h"
#include "pprof.pb-c.h"
#include "profile/plain_text.h"
#include "services/service.h"
#include "synthetic.h"

static const struct output_options options = { .title = "PID 100: python3 app.py" };

static Pprof__Profile *written(const struct profile *profile)
{
	size_t size, length;
	char *bytes = synthetic__write(&output_pprof, profile, &options, &size);
	uint8_t *message = gunzip(bytes, size, &length);
	Pprof__Profile *result = pprof__profile__unpack(NULL, length, message);

	assert_non_null(result);
	free(message);
	free(bytes);
	return result;
}

static const char *text(const Pprof__Profile *message, int64_t index)
{
	assert_in_range(index, 0, message->n_string_table - 1);
	return message->string_table[index];
}

static void the_header_says_what_is_counted(void **state)
{
	struct profile *profile = synthetic__plain();
	Pprof__Profile *message = written(profile);
	char *summary = ledger__summary(profile->ledgers);

	(void)state;
	assert_string_equal(text(message, 0), "");
	assert_int_equal(message->n_sample_type, 2);
	assert_string_equal(text(message, message->sample_type[0]->type), "samples");
	assert_string_equal(text(message, message->sample_type[0]->unit), "count");
	assert_string_equal(text(message, message->sample_type[1]->type), "cpu");
	assert_string_equal(text(message, message->sample_type[1]->unit), "nanoseconds");
	assert_string_equal(text(message, message->period_type->type), "cpu");
	assert_string_equal(text(message, message->period_type->unit), "nanoseconds");
	assert_string_equal(text(message, message->default_sample_type), "cpu");
	assert_int_equal(message->period, 10000000);
	assert_int_equal(message->time_nanos, profile->start_unix_ns);
	assert_int_equal(message->duration_nanos, profile->duration_ns);
	assert_int_equal(message->n_comment, 3);
	assert_string_equal(text(message, message->comment[0]), "pybpfprof " PYBPFPROF_VERSION);
	assert_string_equal(text(message, message->comment[1]), options.title);
	assert_string_equal(text(message, message->comment[2]), summary);
	free(summary);
	pprof__profile__free_unpacked(message, NULL);
	profile__free(profile);
}

/* Python code has neither address nor mapping.  The kernel's code has no mapping. */
static void machine_code_has_its_address(void **state)
{
	struct profile *profile = synthetic__mixed();
	Pprof__Profile *message = written(profile);
	const Pprof__Location *const *locations = (const Pprof__Location *const *)message->location;

	(void)state;
	assert_int_equal(message->n_mapping, 1);
	assert_int_equal(message->mapping[0]->id, 1);
	assert_int_equal(message->mapping[0]->memory_start, 0x2000);
	assert_int_equal(message->mapping[0]->memory_limit, 0x9000);
	assert_int_equal(message->mapping[0]->file_offset, 0x1000);
	assert_true(message->mapping[0]->has_functions);
	assert_string_equal(text(message, message->mapping[0]->filename), "/usr/lib/libm.so.6");
	assert_string_equal(text(message, message->mapping[0]->build_id), SYNTHETIC_BUILD_ID);
	assert_int_equal(locations[0]->mapping_id, 0);
	assert_int_equal(locations[0]->address, 0);
	assert_int_equal(locations[1]->mapping_id, 1);
	assert_int_equal(locations[1]->address, 0x2345);
	assert_int_equal(locations[2]->mapping_id, 0);
	assert_int_equal(locations[2]->address, SYNTHETIC_ADDRESS);
	pprof__profile__free_unpacked(message, NULL);
	profile__free(profile);
}

/* Readers of pprof files take the first mapping as the program's. */
static void the_interpreter_is_the_first_mapping(void **state)
{
	struct profile *profile = synthetic__mixed();
	const struct profile_mapping mapping = {
		.start = 0x1000,
		.limit = 0x2000,
		.file = profile__string(profile, "/usr/bin/python3"),
	};
	const struct profile_function sort = {
		.name = profile__string(profile, "list_sort (python3)"),
		.kind = FRAME_NATIVE,
		.of_interpreter = true,
	};
	const struct profile_location location = {
		.address = 0x1234,
		.function = profile__function(profile, &sort),
		.mapping = profile__mapping(profile, &mapping),
	};
	uint32_t index = profile__location(profile, &location);
	Pprof__Profile *message = written(profile);

	(void)state;
	assert_int_equal(message->n_mapping, 2);
	assert_string_equal(text(message, message->mapping[0]->filename), "/usr/bin/python3");
	assert_string_equal(text(message, message->mapping[1]->filename), "/usr/lib/libm.so.6");
	assert_int_equal(message->location[index]->mapping_id, message->mapping[0]->id);
	assert_int_equal(message->location[1]->mapping_id, message->mapping[1]->id);
	pprof__profile__free_unpacked(message, NULL);
	profile__free(profile);
}

static void ids_are_sequential(void **state)
{
	struct profile *profile = synthetic__tree(5000, 3, 1);
	Pprof__Profile *message = written(profile);

	(void)state;
	assert_int_equal(message->n_function, profile->function_count);
	assert_int_equal(message->n_location, profile->location_count);
	assert_int_equal(message->n_sample, profile->sample_count);
	for (size_t i = 0; i < message->n_function; i++)
		assert_int_equal(message->function[i]->id, i + 1);
	for (size_t i = 0; i < message->n_location; i++) {
		assert_int_equal(message->location[i]->id, i + 1);
		assert_in_range(message->location[i]->line[0]->function_id, 1, message->n_function);
	}
	for (size_t i = 0; i < message->n_sample; i++)
		for (size_t j = 0; j < message->sample[i]->n_location_id; j++)
			assert_in_range(message->sample[i]->location_id[j], 1, message->n_location);
	pprof__profile__free_unpacked(message, NULL);
	profile__free(profile);
}

static void frames_are_complete(void **state)
{
	struct profile *profile = synthetic__plain();
	Pprof__Profile *message = written(profile);
	const Pprof__Sample *sample = message->sample[1];
	const Pprof__Location *leaf = message->location[sample->location_id[0] - 1];
	const Pprof__Location *root = message->location[sample->location_id[1] - 1];
	const Pprof__Function *function = message->function[leaf->line[0]->function_id - 1];

	(void)state;
	assert_int_equal(sample->n_location_id, 2);
	assert_int_equal(leaf->line[0]->line, 21);
	assert_string_equal(text(message, function->name), "Loader.load");
	assert_string_equal(text(message, function->filename), "/srv/lib/pkg/load.py");
	assert_int_equal(function->start_line, 15);
	assert_int_equal(root->line[0]->line, 10);
	assert_int_equal(sample->n_value, 2);
	assert_int_equal(sample->value[0], 20);
	assert_int_equal(sample->value[1], 200000000);
	pprof__profile__free_unpacked(message, NULL);
	profile__free(profile);
}

static void a_reason_is_a_function_without_a_file(void **state)
{
	struct profile *profile = synthetic__plain();
	Pprof__Profile *message = written(profile);
	const Pprof__Sample *sample = message->sample[message->n_sample - 1];
	const Pprof__Line *line = message->location[sample->location_id[0] - 1]->line[0];
	const Pprof__Function *function = message->function[line->function_id - 1];

	(void)state;
	assert_int_equal(sample->n_location_id, 1);
	assert_string_equal(text(message, function->name), "[no Python on this thread]");
	assert_int_equal(function->filename, 0);
	assert_int_equal(line->line, 0);
	pprof__profile__free_unpacked(message, NULL);
	profile__free(profile);
}

static void assert_label(const Pprof__Profile *message, const Pprof__Label *label, const char *key,
			 const char *string, int64_t number)
{
	assert_string_equal(text(message, label->key), key);
	assert_string_equal(text(message, label->str), string);
	assert_int_equal(label->num, number);
}

static void samples_are_labelled(void **state)
{
	struct profile *profile = synthetic__plain();
	Pprof__Profile *message;
	const Pprof__Sample *sample;

	(void)state;
	profile->threads[0].name = 0;
	message = written(profile);
	sample = message->sample[4];
	assert_int_equal(sample->n_label, 4);
	assert_label(message, sample->label[0], "pid", "", 100);
	assert_label(message, sample->label[1], "tid", "", 101);
	assert_label(message, sample->label[2], "thread", "worker 1", 0);
	assert_label(message, sample->label[3], "command", "python3 app.py", 0);
	assert_int_equal(message->sample[0]->n_label, 3);
	pprof__profile__free_unpacked(message, NULL);
	profile__free(profile);
}

static void processes_are_labelled(void **state)
{
	struct profile *profile = synthetic__machine();
	Pprof__Profile *message = written(profile);
	const Pprof__Sample *sample = message->sample[0];

	(void)state;
	assert_int_equal(sample->n_label, 9);
	assert_label(message, sample->label[0], "pid", "", 10);
	assert_label(message, sample->label[1], "tid", "", 10);
	assert_label(message, sample->label[2], "thread", "MainThread", 0);
	assert_label(message, sample->label[3], "process", "worker.py", 0);
	assert_label(message, sample->label[4], "command", "python3 worker.py --queue high", 0);
	assert_label(message, sample->label[5], "container_id", SYNTHETIC_CONTAINER, 0);
	assert_label(message, sample->label[6], "cgroup", SYNTHETIC_CGROUP, 0);
	assert_label(message, sample->label[7], "pod_uid", SYNTHETIC_POD, 0);
	assert_label(message, sample->label[8], "user", "www-data", 0);
	/* Unknown values have no label. */
	sample = message->sample[message->n_sample - 1];
	assert_int_equal(sample->n_label, 4);
	assert_label(message, sample->label[3], "command", "python3 -c pass", 0);
	pprof__profile__free_unpacked(message, NULL);
	profile__free(profile);
}

/* In the agent, a sample has all labels of its service, also those that a rule made. */
static void services_have_all_their_labels(void **state)
{
	json_t *labels = json_pack("{s:s, s:s, s:s, s:s, s:s}", "service_name", "web", "pod",
				   "web-0", "namespace", "shop", "team", "blue", "pid", "12");
	struct profile *profile = profile__new();
	uint32_t thread = service__add(profile, 1, labels);
	uint32_t function = profile__function(profile, &(struct profile_function){ 0 });
	uint32_t location = profile__line(profile, function, 1);
	Pprof__Profile *message;

	(void)state;
	profile__add(profile, thread, profile__stack(profile, &location, 1), 0,
		     synthetic__amount(profile, 1));
	message = written(profile);
	assert_string_equal(profile->strings[profile->processes[0].pod_name], "shop/web-0");
	assert_int_equal(message->sample[0]->n_label, 5);
	assert_label(message, message->sample[0]->label[0], "pid", "", 12);
	for (size_t i = 1; i < 5; i++) {
		const Pprof__Label *label = message->sample[0]->label[i];
		const char *name = text(message, label->key);

		assert_string_equal(text(message, label->str),
				    json_string_value(json_object_get(labels, name)));
		json_object_del(labels, name);
	}
	assert_int_equal(json_object_size(labels), 1);
	json_decref(labels);
	pprof__profile__free_unpacked(message, NULL);
	profile__free(profile);
}

static void values_of_labels_are_bounded(void **state)
{
	struct profile *profile = synthetic__machine();
	char *cgroup = xmalloc(4097);
	Pprof__Profile *message;
	size_t long_strings = 0;

	(void)state;
	memset(cgroup, 7, 4096);
	strcpy(cgroup + 4096 - strlen("/end.scope"), "/end.scope");
	synthetic__belong(profile, 0, 2, "", cgroup, "");
	message = written(profile);
	for (size_t i = 0; i < message->n_sample; i++) {
		const Pprof__Sample *sample = message->sample[i];

		for (size_t j = 0; j < sample->n_label; j++)
			assert_true(strlen(text(message, sample->label[j]->str)) <= 1024);
	}
	for (size_t i = 0; i < message->n_string_table; i++) {
		const char *string = text(message, i);

		if (strlen(string) < 1000)
			continue;
		long_strings++;
		assert_string_equal(strstr(string, "/end.scope"), "/end.scope");
		assert_non_null(strstr(string, " ... "));
	}
	assert_int_equal(long_strings, 1);
	free(cgroup);
	pprof__profile__free_unpacked(message, NULL);
	profile__free(profile);
}

static void assert_plain(const Pprof__Profile *message, int64_t index, const char *original)
{
	char *plain = plain_text__escape(original, SIZE_MAX);

	assert_string_equal(text(message, index), plain);
	free(plain);
}

static void hostile_names_are_only_escaped(void **state)
{
	struct profile *profile = synthetic__hostile();
	Pprof__Profile *message = written(profile);

	(void)state;
	for (size_t i = 0; i < profile->function_count; i++) {
		const struct profile_function *function = &profile->functions[i];

		assert_plain(message, message->function[i]->name, profile->strings[function->name]);
		assert_plain(message, message->function[i]->filename,
			     profile->strings[function->filename]);
	}
	for (size_t i = 0; i < message->n_string_table; i++)
		for (const char *at = text(message, i); *at; at++)
			assert_true((uint8_t)*at >= 0x20 && *at != 0x7f);
	for (size_t i = 0; i < message->n_sample; i++)
		assert_int_equal(message->sample[i]->value[0], i + 1);
	pprof__profile__free_unpacked(message, NULL);
	profile__free(profile);
}

static void strings_are_written_once(void **state)
{
	struct profile *profile = synthetic__tree(500, 2, 1);
	Pprof__Profile *message = written(profile);

	(void)state;
	for (size_t i = 0; i < message->n_string_table; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(text(message, i), text(message, j));
	pprof__profile__free_unpacked(message, NULL);
	profile__free(profile);
}

static void equal_profiles_make_equal_files(void **state)
{
	struct profile *first = synthetic__hostile(), *second = synthetic__hostile();
	size_t first_size, second_size;
	char *first_bytes = synthetic__write(&output_pprof, first, &options, &first_size);
	char *second_bytes = synthetic__write(&output_pprof, second, &options, &second_size);

	(void)state;
	assert_int_equal(first_size, second_size);
	assert_memory_equal(first_bytes, second_bytes, first_size);
	free(first_bytes);
	free(second_bytes);
	profile__free(first);
	profile__free(second);
}

static void a_profile_may_have_no_samples(void **state)
{
	struct profile *profile = profile__new();
	Pprof__Profile *message = written(profile);

	(void)state;
	assert_int_equal(message->n_sample, 0);
	assert_int_equal(message->n_sample_type, 2);
	pprof__profile__free_unpacked(message, NULL);
	profile__free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_header_says_what_is_counted),
		cmocka_unit_test(the_interpreter_is_the_first_mapping),
		cmocka_unit_test(ids_are_sequential),
		cmocka_unit_test(machine_code_has_its_address),
		cmocka_unit_test(frames_are_complete),
		cmocka_unit_test(a_reason_is_a_function_without_a_file),
		cmocka_unit_test(samples_are_labelled),
		cmocka_unit_test(processes_are_labelled),
		cmocka_unit_test(services_have_all_their_labels),
		cmocka_unit_test(values_of_labels_are_bounded),
		cmocka_unit_test(hostile_names_are_only_escaped),
		cmocka_unit_test(strings_are_written_once),
		cmocka_unit_test(equal_profiles_make_equal_files),
		cmocka_unit_test(a_profile_may_have_no_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
