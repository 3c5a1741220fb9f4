// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>

#include "synthetic.h"

static json_t *written(const struct profile *profile, bool full_filenames)
{
	struct output_options options = { .title = "PID 100", .full_filenames = full_filenames };
	size_t size;
	char *bytes = synthetic__write(&output_speedscope, profile, &options, &size);
	json_error_t error;
	json_t *json = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error);

	if (!json)
		fail_msg("%s at %d: %.40s", error.text, error.position, bytes);
	free(bytes);
	return json;
}

static const char *string_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* The frame at POSITION, root first, of the stack INDEX of a thread. */
static const json_t *frame_of(const json_t *json, size_t thread, size_t index, size_t position)
{
	const json_t *profiles = json_object_get(json, "profiles");
	const json_t *samples = json_object_get(json_array_get(profiles, thread), "samples");
	const json_t *frame = json_array_get(json_array_get(samples, index), position);

	assert_true(json_is_integer(frame));
	return json_array_get(json_object_get(json_object_get(json, "shared"), "frames"),
			      json_integer_value(frame));
}

static void the_file_names_its_schema_and_exporter(void **state)
{
	struct profile *profile = synthetic__plain();
	json_t *json = written(profile, false);

	(void)state;
	assert_string_equal(string_of(json, "$schema"),
			    "https://www.speedscope.app/file-format-schema.json");
	assert_string_equal(string_of(json, "exporter"), "pybpfprof@" PYBPFPROF_VERSION);
	assert_string_equal(string_of(json, "name"), "PID 100");
	json_decref(json);
	profile__free(profile);
}

static void each_thread_has_its_profile(void **state)
{
	struct profile *profile = synthetic__plain();
	json_t *json = written(profile, false);
	const json_t *profiles = json_object_get(json, "profiles");
	const json_t *first = json_array_get(profiles, 0), *second = json_array_get(profiles, 1);

	(void)state;
	assert_int_equal(json_array_size(profiles), 2);
	assert_string_equal(string_of(first, "type"), "sampled");
	assert_string_equal(string_of(first, "unit"), "seconds");
	assert_string_equal(string_of(first, "name"), "Thread 100 \"MainThread\"");
	assert_string_equal(string_of(second, "name"), "Thread 101 \"worker 1\"");
	assert_int_equal(json_array_size(json_object_get(first, "samples")), 4);
	assert_int_equal(json_array_size(json_object_get(second, "samples")), 2);
	assert_int_equal(json_integer_value(json_object_get(first, "startValue")), 0);
	assert_true(fabs(json_number_value(json_object_get(first, "endValue")) - 0.95) < 1e-9);
	assert_true(fabs(json_number_value(json_object_get(second, "endValue")) - 0.15) < 1e-9);
	json_decref(json);
	profile__free(profile);
}

static void weights_are_seconds(void **state)
{
	static const double expected[] = { 0.30, 0.20, 0.40, 0.05 };
	struct profile *profile = synthetic__plain();
	json_t *json = written(profile, false);
	const json_t *thread = json_array_get(json_object_get(json, "profiles"), 0);
	const json_t *weights = json_object_get(thread, "weights");

	(void)state;
	assert_int_equal(json_array_size(weights), 4);
	for (size_t i = 0; i < 4; i++)
		assert_true(fabs(json_number_value(json_array_get(weights, i)) - expected[i]) <
			    1e-9);
	json_decref(json);
	profile__free(profile);
}

static void stacks_are_root_first(void **state)
{
	struct profile *profile = synthetic__plain();
	json_t *json = written(profile, false);
	const json_t *root = frame_of(json, 0, 1, 0), *leaf = frame_of(json, 0, 1, 1);
	const json_t *reason = frame_of(json, 1, 1, 0);

	(void)state;
	assert_string_equal(string_of(root, "name"), "main");
	assert_string_equal(string_of(root, "file"), "app.py");
	assert_int_equal(json_integer_value(json_object_get(root, "line")), 10);
	assert_string_equal(string_of(leaf, "name"), "Loader.load");
	assert_string_equal(string_of(leaf, "file"), "pkg/load.py");
	assert_int_equal(json_integer_value(json_object_get(leaf, "line")), 21);
	assert_string_equal(string_of(reason, "name"), "[no Python on this thread]");
	assert_null(json_object_get(reason, "file"));
	assert_null(json_object_get(reason, "line"));
	json_decref(json);
	profile__free(profile);
}

static void full_filenames_are_an_option(void **state)
{
	struct profile *profile = synthetic__plain();
	json_t *json = written(profile, true);

	(void)state;
	assert_string_equal(string_of(frame_of(json, 0, 1, 1), "file"), "/srv/lib/pkg/load.py");
	json_decref(json);
	profile__free(profile);
}

static void several_processes_are_sorted_and_named(void **state)
{
	static const char *const expected[] = {
		"Process 9 Thread 9 \"c\"",
		"Process 9 Thread 30",
		"Process 10 Thread 2 \"a\"",
	};
	struct profile *profile = synthetic__new();
	uint32_t leaf = synthetic__location(profile, "f", "/", "a.py", 1, 2);
	uint32_t threads[] = {
		synthetic__thread(profile, 10, "x", 2, "a"),
		synthetic__thread(profile, 9, "y", 30, ""),
		synthetic__thread(profile, 9, "y", 9, "c"),
	};
	json_t *json;

	(void)state;
	for (int i = 0; i < 3; i++)
		synthetic__add(profile, OUTCOME_PYTHON, threads[i], &leaf, 1, 1);
	json = written(profile, false);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(
			string_of(json_array_get(json_object_get(json, "profiles"), i), "name"),
			expected[i]);
	json_decref(json);
	profile__free(profile);
}

static void assert_names(const json_t *json, const char *const *expected, size_t count)
{
	const json_t *profiles = json_object_get(json, "profiles");

	assert_int_equal(json_array_size(profiles), count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(string_of(json_array_get(profiles, i), "name"), expected[i]);
}

static void processes_have_their_short_names(void **state)
{
	static const char *const expected[] = {
		"Process 10 \"worker.py\" Thread 10 \"MainThread\"",
		"Process 11 \"worker.py\" Thread 11 \"MainThread\"",
		"Process 11 \"report.py\" Thread 11 \"MainThread\"",
		"Process 20 \"report.py\" Thread 20 \"MainThread\"",
		"Process 30 Thread 30 \"MainThread\"",
	};
	struct profile *profile = synthetic__machine();
	uint32_t leaf = synthetic__location(profile, "last", "/", "a.py", 1, 2);
	json_t *json;

	(void)state;
	/* Samples of the two processes with PID 11 alternate. */
	synthetic__add(profile, OUTCOME_PYTHON, 1, &leaf, 1, 1);
	synthetic__add(profile, OUTCOME_PYTHON, 3, &leaf, 1, 1);
	json = written(profile, false);
	assert_names(json, expected, 5);
	json_decref(json);
	profile__free(profile);
}

static void by_process_names_a_single_process_too(void **state)
{
	static const char *const expected[] = { "Process 100 Thread 100 \"MainThread\"",
						"Process 100 Thread 101 \"worker 1\"" };
	struct output_options options = { .title = "", .by_process = true };
	struct profile *profile = synthetic__plain();
	size_t size;
	char *bytes = synthetic__write(&output_speedscope, profile, &options, &size);
	json_t *json = json_loadb(bytes, size, 0, NULL);

	(void)state;
	assert_names(json, expected, 2);
	json_decref(json);
	free(bytes);
	profile__free(profile);
}

static void hostile_names_stay_as_they_are(void **state)
{
	struct profile *profile = synthetic__hostile();
	json_t *json = written(profile, false);
	const json_t *frames = json_object_get(json_object_get(json, "shared"), "frames");

	(void)state;
	assert_int_equal(json_array_size(frames), profile->location_count);
	for (size_t i = 0; i < profile->location_count; i++) {
		const struct profile_function *function =
			&profile->functions[profile->locations[i].function];
		const char *file = string_of(json_array_get(frames, i), "file");

		assert_string_equal(string_of(json_array_get(frames, i), "name"),
				    profile->strings[function->name]);
		assert_string_equal(file ? file : "", profile->strings[function->short_filename]);
	}
	json_decref(json);
	profile__free(profile);
}

static void a_profile_without_samples_is_valid(void **state)
{
	struct profile *profile = profile__new();
	json_t *json = written(profile, false);

	(void)state;
	assert_int_equal(json_array_size(json_object_get(json, "profiles")), 0);
	json_decref(json);
	profile__free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_file_names_its_schema_and_exporter),
		cmocka_unit_test(each_thread_has_its_profile),
		cmocka_unit_test(weights_are_seconds),
		cmocka_unit_test(stacks_are_root_first),
		cmocka_unit_test(full_filenames_are_an_option),
		cmocka_unit_test(several_processes_are_sorted_and_named),
		cmocka_unit_test(processes_have_their_short_names),
		cmocka_unit_test(by_process_names_a_single_process_too),
		cmocka_unit_test(hostile_names_stay_as_they_are),
		cmocka_unit_test(a_profile_without_samples_is_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
