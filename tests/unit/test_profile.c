// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "profile/copy.h"
#include "synthetic.h"

static void strings_are_held_once(void **state)
{
	struct profile *profile = profile__new();
	string_id first = profile__string(profile, "name"), second;

	(void)state;
	assert_int_equal(profile__string(profile, ""), 0);
	assert_string_equal(profile->strings[0], "");
	assert_int_equal(first, 1);
	second = profile__string(profile, "name2");
	assert_int_not_equal(first, second);
	assert_int_equal(profile__string(profile, "name"), first);
	assert_string_equal(profile->strings[second], "name2");
	assert_int_equal(profile->string_count, 3);
	profile__free(profile);
	profile__free(NULL);
}

static void strings_are_valid_utf8(void **state)
{
	struct profile *profile = profile__new();
	string_id id = profile__string(profile, "a\xff"
						"b");

	(void)state;
	assert_string_equal(profile->strings[id], "a\\xffb");
	assert_int_equal(profile__string(profile, "a\\xffb"), id);
	assert_int_equal(profile__string(profile, "a\xff"
						  "b"),
			 id);
	assert_int_equal(profile->string_count, 2);
	profile__free(profile);
}

static void functions_differ_if_any_field_differs(void **state)
{
	struct profile *profile = profile__new();
	struct profile_function function = {
		.name = 1, .filename = 2, .first_line = 4, .kind = FRAME_PYTHON
	};
	uint32_t ids[8];

	(void)state;
	ids[0] = profile__function(profile, &function);
	function.name = 9;
	ids[1] = profile__function(profile, &function);
	function.filename = 9;
	ids[2] = profile__function(profile, &function);
	function.first_line = 9;
	ids[3] = profile__function(profile, &function);
	function.kind = FRAME_NATIVE;
	ids[4] = profile__function(profile, &function);
	function.nameless = true;
	ids[5] = profile__function(profile, &function);
	function.apart = 1;
	ids[6] = profile__function(profile, &function);
	function.of_interpreter = true;
	ids[7] = profile__function(profile, &function);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(ids[i], i);
	assert_int_equal(profile__function(profile, &function), 7);
	assert_int_equal(profile->function_count, 8);
	assert_int_equal(profile->functions[0].first_line, 4);
	profile__free(profile);
}

/* Adds the function main of the file FILENAME, which begins at LINE. */
static uint32_t add_main(struct profile *profile, const char *filename, const char *short_filename,
			 uint32_t line)
{
	const struct profile_function function = {
		.name = profile__string(profile, "main"),
		.filename = profile__string(profile, filename),
		.short_filename = profile__string(profile, short_filename),
		.first_line = line,
		.kind = FRAME_PYTHON,
	};

	return profile__function(profile, &function);
}

static const char *shown(const struct profile *profile, uint32_t function)
{
	return profile->strings[profile->functions[function].shown_filename];
}

/* Functions 1 and 2 were told apart; later they get the name of function 3. */
static void functions_that_get_the_same_name_are_merged(void **state)
{
	struct profile *profile = profile__new();
	uint32_t locations[4], stacks[3];
	struct function_total *totals;
	size_t count;

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		const struct profile_function function = {
			.name = profile__string(profile, i == 3 ? "C.f" : "f"),
			.filename = profile__string(profile, "<string>"),
			.first_line = 1,
			.kind = FRAME_PYTHON,
			.apart = i == 3 ? 0 : i,
		};

		locations[i] = profile__line(profile, profile__function(profile, &function), 2);
	}
	for (uint32_t i = 1; i < 3; i++)
		profile->functions[i].name = profile__string(profile, "C.f");
	for (uint32_t i = 0; i < 3; i++) {
		stacks[i] =
			profile__stack(profile, (uint32_t[]){ locations[i + 1], locations[0] }, 2);
		profile__add(profile, 0, stacks[i], 0, (struct amount){ .count = 10 });
	}
	profile__merge_functions(profile);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(profile->stacks[stacks[i]].locations[0], locations[1]);
		assert_int_equal(profile->stacks[stacks[i]].locations[1], locations[0]);
	}
	totals = profile__totals(profile, 0, &count);
	assert_int_equal(totals[0].function, 1);
	assert_int_equal(totals[0].self, 30);
	free(totals);
	profile__free(profile);
}

static void a_file_has_the_longest_short_name(void **state)
{
	struct profile *profile = profile__new();
	uint32_t one = add_main(profile, "/srv/etl/run.py", "run.py", 1);

	(void)state;
	assert_string_equal(shown(profile, one), "run.py");
	assert_int_equal(add_main(profile, "/srv/etl/run.py", "etl/run.py", 1), one);
	assert_int_equal(add_main(profile, "/srv/etl/run.py", "run.py", 1), one);
	assert_string_equal(shown(profile, one), "etl/run.py");
	/* Every function of the file is shown with this name. */
	one = add_main(profile, "/srv/etl/run.py", "run.py", 2);
	profile__tell_files_apart(profile);
	assert_string_equal(shown(profile, one), "etl/run.py");
	profile__free(profile);
}

static void no_two_files_share_a_shown_name(void **state)
{
	static const struct {
		const char *full, *short_name, *shown;
	} files[] = {
		{ "/srv/orders/utils.py", "utils.py", "srv/orders/utils.py" },
		{ "/opt/orders/utils.py", "utils.py", "opt/orders/utils.py" },
		{ "/srv/billing//./utils.py", "utils.py", "./utils.py" },
		{ "/srv/main.py", "main.py", "main.py" },
		/* A name that cannot get longer, and names that are the end of others. */
		{ "x.py", "x.py", "x.py" },
		{ "/x.py", "/x.py", "/x.py" },
		{ "/a/x.py", "x.py", "/a/x.py" },
		{ "/b/a/x.py", "a/x.py", "b/a/x.py" },
		{ "<string>", "<string>", "<string>" },
	};
	const size_t count = sizeof(files) / sizeof(files[0]);
	struct profile *profile = profile__new();

	(void)state;
	for (size_t i = 0; i < count; i++)
		add_main(profile, files[i].full, files[i].short_name, 1);
	/* A second run has the same result. */
	for (int times = 0; times < 2; times++) {
		profile__tell_files_apart(profile);
		for (size_t i = 0; i < count; i++)
			assert_string_equal(shown(profile, i), files[i].shown);
	}
	add_main(profile, "/srv/other/main.py", "main.py", 1);
	profile__tell_files_apart(profile);
	assert_string_equal(shown(profile, 3), "srv/main.py");
	profile__free(profile);
}

/* A target may nest any number of folders.  Then the full name is shown. */
static void files_in_very_deep_folders_are_shown_in_full(void **state)
{
	struct profile *profile = profile__new();
	char one[4096] = "/one", other[4096] = "/other";

	(void)state;
	for (int i = 0; i < 1000; i++) {
		strcat(one, "/a");
		strcat(other, "/a");
	}
	add_main(profile, one, "a", 1);
	add_main(profile, other, "a", 1);
	profile__tell_files_apart(profile);
	assert_string_equal(shown(profile, 0), one);
	assert_string_equal(shown(profile, 1), other);
	profile__free(profile);
}

static void a_function_without_a_name_gets_one(void **state)
{
	struct profile *profile = profile__new();
	uint32_t id =
		profile__function(profile, &(struct profile_function){ .kind = FRAME_PYTHON });

	(void)state;
	assert_string_equal(profile->strings[profile->functions[id].name], "<unnamed>");
	profile__free(profile);
}

static void locations_threads_and_stacks_are_held_once(void **state)
{
	struct profile *profile = profile__new();
	uint32_t first[] = { 3, 2, 1 }, second[] = { 3, 2 };

	(void)state;
	assert_int_equal(profile__line(profile, 7, 1), 0);
	assert_int_equal(profile__line(profile, 7, 2), 1);
	assert_int_equal(profile__line(profile, 7, 1), 0);
	assert_int_equal(profile->locations[1].line, 2);
	assert_int_equal(profile__thread(profile, 0, 5, 0), 0);
	assert_int_equal(profile__thread(profile, 1, 5, 0), 1);
	assert_int_equal(profile__thread(profile, 0, 5, 0), 0);
	assert_int_equal(profile->threads[1].process, 1);
	/* The kernel reuses TIDs. */
	assert_int_equal(profile__thread(profile, 0, 5, 1), 2);
	assert_int_equal(profile__thread(profile, 0, 5, UINT64_C(1) << 32), 3);
	assert_int_equal(profile__thread(profile, 0, 5, 1), 2);
	assert_true(profile__has_thread(profile, 0, 5, 1));
	assert_false(profile__has_thread(profile, 0, 5, 2));
	assert_true(profile->threads[3].start == UINT64_C(1) << 32);
	assert_int_equal(profile__stack(profile, first, 3), 0);
	assert_int_equal(profile__stack(profile, second, 2), 1);
	first[0] = 8;
	assert_int_equal(profile->stacks[0].depth, 3);
	assert_int_equal(profile->stacks[0].locations[0], 3);
	assert_int_equal(profile__stack(profile, first, 3), 2);
	profile__free(profile);
}

static void processes_with_the_same_pid_differ(void **state)
{
	struct profile *profile = profile__new();

	(void)state;
	assert_int_equal(profile__process(profile, 7, 100), 0);
	assert_int_equal(profile__process(profile, UINT64_C(7) << 32, 100), 1);
	assert_int_equal(profile__process(profile, 8, 200), 2);
	assert_int_equal(profile__process(profile, 7, 100), 0);
	assert_int_equal(profile->process_count, 3);
	assert_int_equal(profile->processes[0].pid, 100);
	assert_int_equal(profile->processes[1].pid, 100);
	assert_true(profile->processes[1].serial == UINT64_C(7) << 32);
	assert_int_equal(profile->processes[2].pid, 200);
	assert_int_equal(profile__thread(profile, 0, 100, 0), 0);
	assert_int_equal(profile__thread(profile, 1, 100, 0), 1);
	profile__free(profile);
}

static void samples_add_up(void **state)
{
	struct profile *profile = profile__new();
	uint64_t large = UINT64_C(5000000000);

	(void)state;
	profile__add(profile, 0, 1, 0, (struct amount){ 2, 20 });
	profile__add(profile, 1, 0, 0, (struct amount){ 3, 30 });
	profile__add(profile, 0, 1, 0, (struct amount){ large, 3 * large });
	assert_int_equal(profile->sample_count, 2);
	assert_int_equal(profile->samples[0].amount.count, large + 2);
	assert_int_equal(profile->samples[0].amount.value, 3 * large + 20);
	assert_int_equal(profile->samples[1].amount.count, 3);
	profile__free(profile);
}

static void a_sample_stands_for_a_period(void **state)
{
	struct profile *profile = profile__new();

	(void)state;
	assert_int_equal(profile__period(profile, 0), 0);
	profile->rate_hz = 99;
	assert_int_equal(profile__period(profile, 0), 10101010);
	profile->rate_hz = 0.5;
	assert_int_equal(profile__period(profile, 0), 2000000000);
	profile__free(profile);
}

static const struct function_total *total_of(const struct profile *profile,
					     const struct function_total *totals, size_t count,
					     const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(profile->strings[profile->functions[totals[i].function].name], name))
			return &totals[i];
	return NULL;
}

static void recursion_counts_once(void **state)
{
	struct profile *profile = synthetic__plain();
	size_t count;
	struct function_total *totals = profile__totals(profile, 0, &count);
	const struct function_total *fib = total_of(profile, totals, count, "fib");
	const struct function_total *load = total_of(profile, totals, count, "Loader.load");
	const struct function_total *main = total_of(profile, totals, count, "main");

	(void)state;
	assert_int_equal(count, 5);
	assert_int_equal(fib->self, 45);
	assert_int_equal(fib->total, 45);
	assert_int_equal(load->self, 60);
	assert_int_equal(load->total, 60);
	assert_int_equal(main->self, 0);
	assert_int_equal(main->total, 100);
	assert_ptr_equal(load, &totals[0]);
	assert_ptr_equal(fib, &totals[1]);
	assert_int_equal(totals[2].self, 5);
	assert_ptr_equal(main, &totals[3]);
	free(totals);
	profile__free(profile);
}

/* The samples of a hidden frame count for its caller. */
static void hidden_kinds_do_not_count(void **state)
{
	struct profile *profile = synthetic__mixed();
	size_t count;
	struct function_total *totals = profile__totals(profile, 1 << FRAME_KERNEL, &count);

	(void)state;
	assert_int_equal(total_of(profile, totals, count, "sqrt")->self, 12);
	assert_int_equal(total_of(profile, totals, count, "exc_page_fault_[k]")->total, 0);
	free(totals);
	totals = profile__totals(profile, 1 << FRAME_KERNEL | 1 << FRAME_NATIVE, &count);
	assert_int_equal(total_of(profile, totals, count, "main")->self, 12);
	assert_int_equal(total_of(profile, totals, count, "main")->total, 12);
	assert_int_equal(total_of(profile, totals, count, "sqrt")->total, 0);
	free(totals);
	profile__free(profile);
}

/* Takes a second or two.  It would take hours if each new stack were compared with all others. */
static void many_stacks_are_added_quickly(void **state)
{
	enum { STACKS = 200000, DEPTH = 20, ADDS = 2000000 };
	struct profile *profile = profile__new();
	uint32_t locations[DEPTH] = { 0 };

	(void)state;
	alarm(120);
	for (uint32_t i = 0; i < STACKS; i++) {
		locations[i % DEPTH] = i;
		assert_int_equal(profile__stack(profile, locations, DEPTH), i);
	}
	for (uint32_t i = 0; i < ADDS; i++)
		profile__add(profile, i % 3, i % STACKS, 0, (struct amount){ .count = 1 });
	alarm(0);
	assert_int_equal(profile->sample_count, 3 * STACKS);
	profile__free(profile);
}

static void a_profile_begins_anew_when_it_is_retired(void **state)
{
	struct profile *profile = synthetic__machine(), *retired;
	size_t strings = profile->string_count;

	(void)state;
	profile->rate_hz = 49;
	profile->ledgers[0].events = 7;
	retired = profile__retire(profile);
	assert_int_equal(retired->string_count, strings);
	assert_int_equal(profile__entries(profile), 2);
	assert_int_equal(profile->sample_count, 0);
	assert_true(profile->rate_hz == 49);
	assert_int_equal(profile->ledgers[0].events, 7);
	assert_int_equal(profile__process(profile, 3, 20), 0);
	profile__free(retired);
	profile__free(profile);
}

static void check_copied(struct profile_copy *copy, const struct profile_sample *sample)
{
	const struct profile *from = copy->from, *to = copy->to;
	uint32_t number = profile_copy__thread(copy, sample->thread);
	uint32_t copied = profile_copy__stack(copy, sample->stack);
	const struct profile_thread *thread = &to->threads[number],
				    *old = &from->threads[sample->thread];
	const struct profile_process *process = &to->processes[thread->process],
				     *before = &from->processes[old->process];
	const struct profile_stack *stack = &to->stacks[copied];

	assert_int_equal(number, profile_copy__thread(copy, sample->thread));
	assert_string_equal(to->strings[thread->name], from->strings[old->name]);
	assert_int_equal(process->serial, before->serial);
	assert_string_equal(to->strings[process->short_name], from->strings[before->short_name]);
	assert_string_equal(to->strings[process->user], from->strings[before->user]);
	assert_int_equal(stack->depth, from->stacks[sample->stack].depth);
	for (uint32_t i = 0; i < stack->depth; i++) {
		uint32_t index = from->stacks[sample->stack].locations[i];
		const struct profile_location *location = &to->locations[stack->locations[i]],
					      *of = &from->locations[index];

		assert_int_equal(location->line, of->line);
		assert_int_equal(location->address, of->address);
		assert_string_equal(to->strings[to->mappings[location->mapping].build_id],
				    from->strings[from->mappings[of->mapping].build_id]);
		assert_string_equal(to->strings[to->functions[location->function].name],
				    from->strings[from->functions[of->function].name]);
	}
}

/* Copies into a profile whose entries have other numbers. */
static void check_copy(struct profile *from)
{
	struct profile *to = profile__new();
	struct profile_copy copy;

	profile__process(to, 99, 99);
	synthetic__location(to, "other", "/", "other.py", 1, 1);
	profile_copy__init(&copy, from, to);
	for (size_t i = 0; i < from->sample_count; i++)
		check_copied(&copy, &from->samples[i]);
	profile_copy__free(&copy);
	profile__free(from);
	profile__free(to);
}

static void copied_samples_are_the_same(void **state)
{
	(void)state;
	check_copy(synthetic__machine());
	check_copy(synthetic__mixed());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_are_held_once),
		cmocka_unit_test(strings_are_valid_utf8),
		cmocka_unit_test(functions_differ_if_any_field_differs),
		cmocka_unit_test(functions_that_get_the_same_name_are_merged),
		cmocka_unit_test(a_file_has_the_longest_short_name),
		cmocka_unit_test(no_two_files_share_a_shown_name),
		cmocka_unit_test(files_in_very_deep_folders_are_shown_in_full),
		cmocka_unit_test(a_function_without_a_name_gets_one),
		cmocka_unit_test(locations_threads_and_stacks_are_held_once),
		cmocka_unit_test(processes_with_the_same_pid_differ),
		cmocka_unit_test(samples_add_up),
		cmocka_unit_test(a_sample_stands_for_a_period),
		cmocka_unit_test(recursion_counts_once),
		cmocka_unit_test(hidden_kinds_do_not_count),
		cmocka_unit_test(many_stacks_are_added_quickly),
		cmocka_unit_test(a_profile_begins_anew_when_it_is_retired),
		cmocka_unit_test(copied_samples_are_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
