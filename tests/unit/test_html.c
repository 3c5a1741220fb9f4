// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>

#include "synthetic.h"

#define DATA_BEGIN "<script type=\"application/json\" id=\"profile\">"
#define DATA_END   "</script>"

static const struct output_options titled = { .title = "PID 1: python3 </title> \xc3\xa9" };

static char *page(const struct profile *profile, const struct output_options *options)
{
	size_t size;
	char *text = synthetic__write(&output_html, profile, options, &size);

	assert_int_equal(strlen(text), size);
	return text;
}

/* The profile in a page, as text; the caller frees. */
static char *data_text(const char *text)
{
	const char *begin = strstr(text, DATA_BEGIN), *end;

	assert_non_null(begin);
	begin += strlen(DATA_BEGIN);
	end = strstr(begin, DATA_END);
	assert_non_null(end);
	return xstrndup(begin, end - begin);
}

static json_t *data(const struct profile *profile, const struct output_options *options)
{
	char *text = page(profile, options), *json = data_text(text);
	json_t *parsed = json_loads(json, 0, NULL);

	assert_non_null(parsed);
	free(json);
	free(text);
	return parsed;
}

static void assert_numbers(const json_t *object, const char *key, const json_int_t *expected,
			   size_t count)
{
	const json_t *array = json_object_get(object, key);

	assert_int_equal(json_array_size(array), count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(json_integer_value(json_array_get(array, i)), expected[i]);
}

#define assert_row(object, key, ...)                                     \
	assert_numbers(object, key, (const json_int_t[]){ __VA_ARGS__ }, \
		       sizeof((const json_int_t[]){ __VA_ARGS__ }) / sizeof(json_int_t))

static void stacks_are_written_as_a_tree(void **state)
{
	struct profile *profile = synthetic__plain();
	json_t *json = data(profile, &titled);

	(void)state;
	/* Locations: main 0, load 1, load_next 2, fib 3, cut 4, none 5.  A stack is the number of
	 * frames shared with the one before, the number of others, and those, root first. */
	assert_row(json, "stacks", 0, 2, 0, 1, 1, 1, 2, 1, 3, 3, 3, 3, 0, 3, 4, 3, 3, 0, 1, 5);
	assert_row(json, "samples", 0, 0, 30, 0, 1, 20, 0, 2, 40, 0, 3, 5, 1, 0, 10, 1, 4, 5);
	json_decref(json);
	profile__free(profile);
}

static void a_stack_may_be_the_start_of_another(void **state)
{
	struct profile *profile = synthetic__new();
	uint32_t thread = synthetic__thread(profile, 1, "python3", 1, "one");
	uint32_t outer = synthetic__location(profile, "outer", "/", "a.py", 1, 1);
	uint32_t inner = synthetic__location(profile, "inner", "/", "a.py", 5, 6);
	json_t *json;

	(void)state;
	synthetic__add(profile, OUTCOME_PYTHON, thread, (uint32_t[]){ inner, outer }, 2, 1);
	synthetic__add(profile, OUTCOME_PYTHON, thread, &outer, 1, 1);
	json = data(profile, &titled);
	assert_row(json, "stacks", 0, 1, outer, 1, 1, inner);
	assert_row(json, "samples", 0, 1, 1, 0, 0, 1);
	json_decref(json);
	profile__free(profile);
}

static void names_are_unchanged(void **state)
{
	struct profile *profile = synthetic__hostile();
	json_t *json = data(profile, &titled), *strings = json_object_get(json, "strings");

	(void)state;
	assert_int_equal(json_array_size(strings), profile->string_count);
	for (size_t i = 0; i < profile->string_count; i++)
		assert_string_equal(json_string_value(json_array_get(strings, i)),
				    profile->strings[i]);
	assert_string_equal(json_string_value(json_object_get(json, "title")), titled.title);
	json_decref(json);
	profile__free(profile);
}

static void no_name_breaks_out_of_the_script(void **state)
{
	struct profile *profile = synthetic__hostile();
	char *text = page(profile, &titled), *json = data_text(text);

	(void)state;
	assert_null(strchr(json, '<'));
	for (const char *byte = json; *byte; byte++)
		assert_in_range(*byte, '\n', '\x7f');
	/* The data has the name escaped, and the rest of the page does not have it. */
	assert_non_null(strstr(json, "\\u003c/script>\\u003cb onload=x>"));
	assert_null(strstr(text, "<b onload=x>"));
	free(json);
	free(text);
	profile__free(profile);
}

static void no_command_breaks_out_of_the_script(void **state)
{
	static const char command[] = "</script><b onload=x>\xc3\xa9";
	struct profile *profile = synthetic__plain();
	char *text, *json;
	json_t *parsed, *commands;

	(void)state;
	unknown_processes__add(&profile->ledgers[0].unknown, command, 5);
	text = page(profile, &titled);
	json = data_text(text);
	assert_non_null(strstr(json, "\\u003c/script>\\u003cb onload=x>\\u00E9"));
	parsed = json_loads(json, 0, NULL);
	commands = json_object_get(json_object_get(parsed, "ledger"), "unknown_commands");
	assert_int_equal(json_integer_value(json_object_get(commands, command)), 5);
	json_decref(parsed);
	free(json);
	free(text);
	profile__free(profile);
}

static void filenames_are_short_by_default(void **state)
{
	struct profile *profile = synthetic__plain();
	struct output_options full = { .full_filenames = true, .threads = true, .title = "" };
	json_t *shortened = data(profile, &titled), *complete = data(profile, &full);
	const struct profile_function *function = &profile->functions[1];

	(void)state;
	for (int i = 0; i < 2; i++) {
		json_t *row = json_object_get(i ? complete : shortened, "functions");
		json_int_t shown = json_integer_value(json_array_get(row, 5 + 2));

		assert_int_equal(json_integer_value(json_array_get(row, 5)), function->name);
		assert_int_equal(json_integer_value(json_array_get(row, 6)), function->filename);
		assert_int_equal(shown, i ? function->filename : function->short_filename);
		assert_int_equal(json_integer_value(json_array_get(row, 8)), 15);
		assert_int_equal(json_integer_value(json_array_get(row, 9)), FRAME_PYTHON);
	}
	assert_false(json_is_true(json_object_get(shortened, "threads_at_root")));
	assert_true(json_is_true(json_object_get(complete, "threads_at_root")));
	json_decref(shortened);
	json_decref(complete);
	profile__free(profile);
}

static void interpreter_code_has_its_own_kind(void **state)
{
	struct profile *profile = synthetic__native();
	json_t *json = data(profile, &titled), *rows = json_object_get(json, "functions");

	(void)state;
	assert_int_equal(json_array_size(rows), 5 * profile->function_count);
	for (size_t i = 0; i < profile->function_count; i++) {
		const struct profile_function *function = &profile->functions[i];

		assert_int_equal(json_integer_value(json_array_get(rows, 5 * i + 4)),
				 function->of_interpreter ? FRAME_REASON + 1 : function->kind);
	}
	json_decref(json);
	profile__free(profile);
}

static void details_of_processes_are_there(void **state)
{
	struct profile *profile = synthetic__machine();
	const struct profile_process *process = &profile->processes[0];
	json_t *json = data(profile, &titled), *rows = json_object_get(json, "processes");
	const json_int_t expected[] = { 10,
					process->command,
					process->short_name,
					process->python_version,
					process->user,
					process->cgroup,
					process->container_id,
					process->pod_uid,
					process->pod_name,
					process->unit,
					1704164000000 };

	(void)state;
	assert_int_equal(json_array_size(rows), 11 * profile->process_count);
	for (size_t i = 0; i < 11; i++)
		assert_int_equal(json_integer_value(json_array_get(rows, i)), expected[i]);
	assert_int_equal(json_integer_value(json_array_get(rows, 11 * 4 + 2)), 0);
	assert_true(json_is_true(json_object_get(json, "tells_processes")));
	json_decref(json);
	profile__free(profile);
}

static void a_single_process_is_shown_on_request(void **state)
{
	struct profile *profile = synthetic__plain();
	struct output_options options = { .by_process = true, .title = "" };
	json_t *one = data(profile, &titled), *asked = data(profile, &options);

	(void)state;
	assert_true(json_is_false(json_object_get(one, "tells_processes")));
	assert_true(json_is_true(json_object_get(asked, "tells_processes")));
	json_decref(asked);
	json_decref(one);
	profile__free(profile);
}

static void ledger_and_time_are_there(void **state)
{
	struct profile *profile = synthetic__plain();
	json_t *json = data(profile, &titled), *ledger = json_object_get(json, "ledger");
	json_t *reasons = json_object_get(json, "reasons");

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(ledger, "events")), 110);
	assert_int_equal(json_integer_value(json_object_get(json, "start_ms")), 1704164645000);
	assert_int_equal(json_object_size(reasons), OUTCOME_COUNT);
	assert_string_equal(json_string_value(json_object_get(reasons, "no_python")),
			    outcome__text(OUTCOME_NO_PYTHON));
	json_decref(json);
	profile__free(profile);
}

static void an_empty_profile_is_a_page_too(void **state)
{
	struct profile *profile = profile__new();
	struct output_options untitled = { 0 };
	json_t *json = data(profile, &untitled);

	(void)state;
	assert_int_equal(json_array_size(json_object_get(json, "samples")), 0);
	assert_string_equal(json_string_value(json_object_get(json, "title")), "");
	json_decref(json);
	profile__free(profile);
}

static void the_profile_before_is_there(void **state)
{
	struct profile before, *profile = synthetic__change(&before);
	struct output_options options = { .title = "", .before = &before };
	json_t *json = data(profile, &options), *plain = data(profile, &titled);
	json_t *was = json_object_get(json, "before");

	(void)state;
	/* Stacks are numbered as they are written: those of main by location, then the reason. */
	assert_row(was, "samples", 0, 0, 100, 0, 2, 200, 0, 3, 40, 1, 2, 20, 1, 5, 40);
	assert_row(json, "samples", 0, 1, 100, 0, 2, 20, 0, 4, 20, 1, 2, 12, 1, 5, 48);
	assert_int_equal(json_integer_value(json_object_get(was, "start_ms")), 1704161045000);
	assert_float_equal(json_number_value(json_object_get(was, "scale")), 0.5, 1e-9);
	assert_float_equal(json_number_value(json_object_get(was, "rate_hz")), 100, 1e-9);
	assert_float_equal(json_number_value(json_object_get(was, "duration_s")), 20, 1e-9);
	assert_null(json_object_get(plain, "before"));
	json_decref(plain);
	json_decref(json);
	free(before.samples);
	profile__free(profile);
}

static char *nonce(const char *text)
{
	const char *begin = strstr(text, "script-src 'nonce-");

	assert_non_null(begin);
	return xstrndup(begin + strlen("script-src 'nonce-"), 32);
}

static void the_policy_allows_only_the_pages_script(void **state)
{
	struct profile *profile = synthetic__plain();
	char *text = page(profile, &titled), *again = page(profile, &titled);
	char *first = nonce(text), *second = nonce(again);
	char *script = xasprintf("<script type=\"module\" nonce=\"%s\">", first);

	(void)state;
	assert_int_equal(strspn(first, "0123456789abcdef"), 32);
	assert_string_not_equal(first, second);
	assert_non_null(strstr(text, script));
	assert_non_null(strstr(text, "content=\"default-src 'none';"));
	assert_null(strstr(text, "unsafe-"));
	assert_null(strstr(text, "{{"));
	free(script);
	free(first);
	free(second);
	free(text);
	free(again);
	profile__free(profile);
}

static void the_page_makes_no_markup_from_names(void **state)
{
	static const char *const forbidden[] = { "innerHTML",	   "outerHTML",
						 "insertAdjacent", "document.write",
						 "DOMParser",	   "eval(",
						 "new Function(",  "createContextualFragment" };
	struct profile *profile = profile__new();
	char *text = page(profile, &titled);

	(void)state;
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
		assert_null(strstr(text, forbidden[i]));
	assert_non_null(strstr(text, "textContent"));
	free(text);
	profile__free(profile);
}

static void a_title_that_is_not_utf8_is_an_error(void **state)
{
	struct profile *profile = synthetic__plain();
	struct output_options options = { .title = "\xff" };
	FILE *file = fopen("/dev/null", "w");

	(void)state;
	assert_int_equal(output_html.write(profile, &options, file), -EILSEQ);
	fclose(file);
	profile__free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_are_written_as_a_tree),
		cmocka_unit_test(a_stack_may_be_the_start_of_another),
		cmocka_unit_test(names_are_unchanged),
		cmocka_unit_test(no_name_breaks_out_of_the_script),
		cmocka_unit_test(no_command_breaks_out_of_the_script),
		cmocka_unit_test(filenames_are_short_by_default),
		cmocka_unit_test(interpreter_code_has_its_own_kind),
		cmocka_unit_test(details_of_processes_are_there),
		cmocka_unit_test(a_single_process_is_shown_on_request),
		cmocka_unit_test(ledger_and_time_are_there),
		cmocka_unit_test(an_empty_profile_is_a_page_too),
		cmocka_unit_test(the_profile_before_is_there),
		cmocka_unit_test(the_policy_allows_only_the_pages_script),
		cmocka_unit_test(the_page_makes_no_markup_from_names),
		cmocka_unit_test(a_title_that_is_not_utf8_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
