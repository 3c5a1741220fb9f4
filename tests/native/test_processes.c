// SPDX-License-Identifier: BSD-2-Clause
/* How BPF follows forks, execs, mappings and exits of processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel.h"

#define PARENT	100
#define CHILD	101
#define STRANGE 102

#define EXECUTABLE   0x4
#define TEXT_OFFSET  0x2000
#define TEXT_ADDRESS 0x402000
#define BIAS	     0x7000000

static struct super_block device = { .s_dev = 0x800001 };
static struct inode inode = { .i_ino = 7,
			      .i_sb = &device,
			      .i_size = 4096,
			      .i_generation = 3,
			      .i_ctime_sec = 5,
			      .i_ctime_nsec = 0x80000009 };
static struct file file = { .f_inode = &inode };
static struct mm_struct before = { .arg_start = 1, .arg_end = 2 }, after = {
	.start_code = TEXT_ADDRESS + BIAS + 0x40, .arg_start = 1, .arg_end = 2
};
static const struct file_key key = {
	.inode = 7, .size = 4096, .changed = 5000000009, .device = 0x800001, .generation = 3
};

static int set_up(void **state)
{
	(void)state;
	kernel__load(1);
	kernel__follow(FOLLOW_ALL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	kernel__unload();
	return 0;
}

static const struct process_record *last_record(void)
{
	return &kernel.process_records[kernel.process_record_count - 1];
}

static void know_python(void)
{
	const struct known_file known = {
		.text_offset = TEXT_OFFSET,
		.text_address = TEXT_ADDRESS,
		.target = { .state = TARGET_PYTHON,
			    .interpreters = 0x500000,
			    .code_type = 0x600000,
			    .entry_gap = { .start = 0x403000, .length = 8 },
			    .layout = 5,
			    .image = 9 },
	};

	kernel__know_file(&key, &known);
}

static void know_other(enum target_state state)
{
	const struct known_file known = { .target.state = state };

	kernel__know_file(&key, &known);
}

static void map_file(__u32 tgid, struct mm_struct *mm)
{
	const struct vm_area_struct area = { .vm_start = TEXT_ADDRESS + BIAS,
					     .vm_flags = EXECUTABLE,
					     .vm_pgoff = TEXT_OFFSET >> 12,
					     .vm_file = &file };

	kernel__map(tgid, mm, &area);
}

static void assert_moved(const struct target *target)
{
	assert_non_null(target);
	assert_int_equal(target->interpreters, 0x500000 + BIAS);
	assert_int_equal(target->code_type, 0x600000 + BIAS);
	assert_int_equal(target->entry_gap.start, 0x403000 + BIAS);
	assert_int_equal(target->layout, 5);
	assert_int_equal(target->bias, BIAS);
	assert_true(target->begins);
}

static void a_child_is_a_target_from_its_fork_on(void **state)
{
	const struct target *child;

	(void)state;
	kernel__add_target(PARENT, 0x1234, 2, 0);
	kernel__shift_rate(PARENT, 2);
	kernel__fork(PARENT, CHILD, &before);
	child = kernel__target(CHILD);
	assert_non_null(child);
	assert_int_equal(child->interpreters, 0x1234);
	assert_int_equal(child->layout, 2);
	assert_ptr_equal(child->memory, &before);
	assert_int_equal(child->identify, IDENTIFIED_WHOLLY);
	assert_int_not_equal(child->serial, PARENT);
	assert_int_equal(last_record()->event, PROCESS_FORKED);
	assert_int_equal(last_record()->before, PARENT);
	assert_int_equal(last_record()->serial, child->serial);
	assert_int_equal(last_record()->pid, CHILD);
	/* A child has its parent's rate; a new program does not. */
	assert_int_equal(child->rate_shift, 2);
	kernel__exec(CHILD, &after, &file);
	assert_int_equal(kernel__target(CHILD)->rate_shift, 0);
}

static void a_child_of_a_stranger_is_no_target(void **state)
{
	(void)state;
	kernel__fork(STRANGE, CHILD, &before);
	assert_null(kernel__target(CHILD));
	assert_int_equal(kernel.process_record_count, 0);
}

/* Without a report, user space would not know the owner of the samples.  They are counted until
 * it has found the process. */
static void samples_of_an_unreported_process_wait(void **state)
{
	(void)state;
	kernel__add_target(PARENT, 0x1234, 2, 0);
	kernel.ring_full = true;
	kernel__fork(PARENT, CHILD, &before);
	assert_int_equal(kernel__target(CHILD)->state, TARGET_UNTOLD);
	kernel__exec(PARENT, &after, &file);
	assert_int_equal(kernel__target(PARENT)->state, TARGET_UNTOLD);
	map_file(STRANGE, &after);
	assert_int_equal(kernel__target(STRANGE)->state, TARGET_UNTOLD);
	assert_int_equal(kernel__cpu_counters(0)->untold, 3);
	kernel.tgid = CHILD;
	kernel.memory = &before;
	kernel__sample();
	assert_int_equal(kernel__target(CHILD)->waiting, 1);
	assert_int_equal(kernel__counters(0)->events, 0);
	kernel__end(CHILD, NULL);
	assert_null(kernel__target(CHILD));
	assert_int_equal(kernel__cpu_counters(0)->untold, 4);
}

/* Such a child waits for an answer, like its parent's program. */
static void a_process_reported_later_waits_for_an_answer(void **state)
{
	(void)state;
	kernel__add_target(PARENT, 0x1234, 2, 0);
	kernel.ring_full = true;
	kernel__exec(PARENT, &after, &file);
	kernel.ring_full = false;
	kernel__fork(PARENT, CHILD, &after);
	assert_int_equal(kernel__target(CHILD)->state, TARGET_WAITING);
	assert_int_equal(last_record()->state, TARGET_WAITING);
	assert_int_equal(kernel__target(PARENT)->state, TARGET_UNTOLD);
	/* The program's files were mapped before its exec was complete. */
	kernel__exec(PARENT, &after, &file);
	assert_int_equal(kernel__target(PARENT)->state, TARGET_WAITING);
	assert_int_equal(last_record()->event, PROCESS_EXECUTED);
}

static void a_known_program_is_walked_from_its_exec_on(void **state)
{
	(void)state;
	know_python();
	kernel__exec(STRANGE, &after, &file);
	assert_moved(kernel__target(STRANGE));
	assert_int_equal(kernel__target(STRANGE)->state, TARGET_PYTHON);
	assert_int_equal(last_record()->event, PROCESS_EXECUTED);
	assert_int_equal(last_record()->image, 9);
	assert_int_equal(last_record()->bias, BIAS);
}

/* The inode may have new contents of the same size. */
static void a_changed_file_is_an_unknown_program(void **state)
{
	struct inode changed = inode;
	struct file overwritten = { .f_inode = &changed };

	(void)state;
	know_python();
	changed.i_ctime_nsec++;
	kernel__exec(STRANGE, &after, &overwritten);
	assert_int_equal(kernel__target(STRANGE)->state, TARGET_WAITING);
	assert_int_equal(last_record()->file.changed, key.changed + 1);
}

static void an_unknown_program_is_reported_and_its_samples_wait(void **state)
{
	(void)state;
	kernel__exec(STRANGE, &after, &file);
	assert_int_equal(kernel__target(STRANGE)->state, TARGET_WAITING);
	assert_memory_equal(&last_record()->file, &key, sizeof(key));
	assert_int_equal(last_record()->start, TEXT_ADDRESS + BIAS);
	kernel.tgid = STRANGE;
	kernel.memory = &after;
	kernel__sample();
	kernel__sample();
	/* Samples of other events cannot wait. */
	kernel.second_event = true;
	kernel__sample();
	kernel.second_event = false;
	assert_int_equal(kernel__target(STRANGE)->waiting, 2);
	assert_int_equal(kernel__counters(0)->events, 0);
	assert_int_equal(kernel__cpu_counters(0)->of[1].events, 1);
	assert_int_equal(kernel__cpu_counters(0)->of[1].lost, 1);
	kernel__end(STRANGE, NULL);
	assert_int_equal(last_record()->event, PROCESS_ENDED);
	assert_int_equal(last_record()->waiting, 2);
	assert_null(kernel__target(STRANGE));
}

static void a_program_without_python_is_left_alone(void **state)
{
	(void)state;
	know_other(TARGET_OTHER);
	kernel__exec(STRANGE, &after, &file);
	map_file(STRANGE, &after);
	assert_null(kernel__target(STRANGE));
	assert_int_equal(kernel.process_record_count, 0);
}

static void a_program_that_may_load_python_waits_for_an_answer(void **state)
{
	(void)state;
	know_other(TARGET_WAITING);
	kernel__exec(STRANGE, &after, &file);
	assert_int_equal(kernel__target(STRANGE)->state, TARGET_WAITING);
}

/* A process that is no descendant of a target is left alone with FOLLOW_CHILDREN. */
static void a_stranger_is_not_followed_with_follow_children(void **state)
{
	(void)state;
	know_python();
	kernel__follow(FOLLOW_CHILDREN);
	kernel__exec(STRANGE, &after, &file);
	map_file(STRANGE, &after);
	assert_null(kernel__target(STRANGE));
}

static void a_child_without_python_is_followed(void **state)
{
	(void)state;
	know_other(TARGET_OTHER);
	kernel__follow(FOLLOW_CHILDREN);
	kernel__add_target(PARENT, 0x1234, 2, 0);
	kernel__fork(PARENT, CHILD, &before);
	kernel__exec(CHILD, &after, &file);
	assert_int_equal(kernel__target(CHILD)->state, TARGET_OTHER);
	kernel__fork(CHILD, STRANGE, &after);
	assert_int_equal(kernel__target(STRANGE)->state, TARGET_OTHER);
	know_python();
	map_file(STRANGE, &after);
	assert_moved(kernel__target(STRANGE));
}

static void samples_of_a_child_of_an_unwanted_process_wait(void **state)
{
	(void)state;
	kernel__add_unwanted(PARENT);
	kernel.tgid = PARENT;
	kernel__sample();
	assert_int_equal(kernel__target(PARENT)->waiting, 0);
	kernel__fork(PARENT, CHILD, &before);
	assert_int_equal(kernel__target(CHILD)->state, TARGET_WAITING);
	kernel.tgid = CHILD;
	kernel__sample();
	assert_int_equal(kernel__target(CHILD)->waiting, 1);
	assert_int_equal(kernel__counters(0)->events, 0);
}

static void a_known_library_is_walked_from_its_mapping_on(void **state)
{
	__u64 serial;

	(void)state;
	know_python();
	map_file(STRANGE, &after);
	assert_moved(kernel__target(STRANGE));
	assert_int_equal(kernel__target(STRANGE)->state, TARGET_PYTHON);
	assert_int_equal(last_record()->event, PROCESS_MAPPED);
	/* The process has its Python already. */
	serial = kernel__target(STRANGE)->serial;
	map_file(STRANGE, &after);
	assert_int_equal(kernel.process_record_count, 1);
	assert_int_equal(kernel__target(STRANGE)->serial, serial);
}

/* The kernel maps the program's own file before the exec is complete. */
static void a_process_is_loading_until_its_exec_is_complete(void **state)
{
	struct mm_struct loading = after;

	(void)state;
	loading.arg_end = 0;
	know_python();
	map_file(STRANGE, &loading);
	assert_int_equal(kernel__target(STRANGE)->state, TARGET_LOADING);
	loading.arg_end = 2;
	kernel__exec(STRANGE, &loading, &file);
	assert_int_equal(kernel__target(STRANGE)->state, TARGET_PYTHON);
	assert_int_equal(last_record()->event, PROCESS_EXECUTED);
	assert_int_equal(last_record()->serial, last_record()[-1].serial);
}

/* What user space has found holds for the old program, although all samples since then are of
 * the new one. */
static void findings_about_the_old_program_end_with_an_exec(void **state)
{
	struct mm_struct coming = after;

	(void)state;
	kernel__add_target(PARENT, 0x1234, 0, 0);
	kernel.tgid = PARENT;
	kernel.memory = &coming;
	coming.arg_end = 0;
	kernel__sample();
	assert_int_equal(kernel__counters(0)->events, 0);
	assert_int_equal(kernel__target(PARENT)->memory, 0);

	/* At the very end of the exec the memory looks like that of any other process. */
	coming.arg_end = 2;
	kernel__sample();
	assert_int_equal(kernel__counters(0)->events, 1);
	know_other(TARGET_OTHER);
	kernel__exec(PARENT, &coming, &file);
	assert_int_equal(kernel__target(PARENT)->state, TARGET_OTHER);
	assert_int_not_equal(last_record()->serial, last_record()->before);
}

/* Once the process has other memory, what was known of it no longer holds. */
static void a_process_with_new_memory_is_not_walked_as_before(void **state)
{
	(void)state;
	kernel__add_target(PARENT, 0x1234, 0, 0);
	kernel.tgid = PARENT;
	kernel.memory = &before;
	kernel__sample();
	assert_int_equal(kernel__counters(0)->events, 1);
	kernel.memory = &after;
	kernel__sample();
	assert_int_equal(kernel__counters(0)->events, 1);
}

/* The exec's record reports samples that still waited for an answer about the old program. */
static void an_exec_reports_abandoned_samples(void **state)
{
	struct mm_struct loading = after;

	(void)state;
	kernel__exec(STRANGE, &before, &file);
	assert_int_equal(last_record()->abandoned, 0);
	kernel.tgid = STRANGE;
	kernel.memory = &before;
	kernel__sample();
	kernel__sample();
	kernel__exec(STRANGE, &after, &file);
	assert_int_equal(last_record()->abandoned, 2);
	assert_int_equal(last_record()->waiting, 0);

	/* If it maps a file before its exec is complete, that record reports them. */
	kernel.memory = &after;
	kernel__sample();
	loading.arg_end = 0;
	map_file(STRANGE, &loading);
	assert_int_equal(last_record()->event, PROCESS_MAPPED);
	assert_int_equal(last_record()->abandoned, 1);
	loading.arg_end = 2;
	kernel__exec(STRANGE, &loading, &file);
	assert_int_equal(last_record()->event, PROCESS_EXECUTED);
	assert_int_equal(last_record()->abandoned, 0);
}

static void an_exec_of_a_known_process_abandons_no_samples(void **state)
{
	(void)state;
	kernel__add_target(PARENT, 0x1234, 0, 0);
	kernel__exec(PARENT, &after, &file);
	assert_int_equal(last_record()->abandoned, 0);
	know_other(TARGET_OTHER);
	kernel__exec(PARENT, &before, &file);
	assert_int_equal(kernel__target(PARENT)->state, TARGET_OTHER);
	kernel.tgid = PARENT;
	kernel.memory = &before;
	kernel__sample();
	kernel__exec(PARENT, &after, &file);
	assert_int_equal(last_record()->abandoned, 0);
}

/* The PID of an ended process may be reused at once. */
static void processes_with_a_reused_pid_are_told_apart(void **state)
{
	struct last_sample first, second;

	(void)state;
	kernel__add_target(PARENT, 0x1234, 0, 0);
	kernel__fork(PARENT, CHILD, &before);
	kernel.tgid = kernel.tid = CHILD;
	kernel.memory = &before;
	first = kernel__sample();
	kernel__end(CHILD, NULL);
	kernel__fork(PARENT, CHILD, &before);
	second = kernel__sample();
	assert_int_equal(first.outcome, second.outcome);
	assert_int_not_equal(first.hash, second.hash);
}

/* Asserts that TEXT, which has replaced the first COMMAND bytes of the arguments, is reported as
 * TITLE of LENGTH bytes. */
static void assert_title(const char *text, size_t length, size_t command, const char *title)
{
	struct mm_struct memory = { .arg_start = (__u64)text, .arg_end = (__u64)text + command };

	kernel.pid = getpid();
	kernel__add_target(PARENT, 0x1234, 0, 0);
	kernel__end(PARENT, &memory);
	assert_int_equal(last_record()->event, PROCESS_ENDED);
	assert_int_equal(last_record()->argument_bytes, length);
	assert_memory_equal(last_record()->arguments, title, length);
}

static void an_exit_reports_the_title(void **state)
{
	static char text[ARGUMENT_BYTES_MAX] = "gunicorn: worker\0\0\0A=1";

	(void)state;
	assert_title(text, 19, 19, text);
	/* A title continues where the environment was, up to its NUL. */
	assert_title(text, 17, 8, text);
	assert_title(NULL, 0, 0, text);
	assert_title((const char *)1, 0, 8, text);
	memset(text, 'x', ARGUMENT_BYTES_MAX - 1);
	text[ARGUMENT_BYTES_MAX - 1] = '\0';
	assert_title(text, ARGUMENT_BYTES_MAX, ARGUMENT_BYTES_MAX - 1, text);
}

static void forks_and_exits_do_not_wake_user_space(void **state)
{
	(void)state;
	kernel__add_target(PARENT, 0x1234, 0, 0);
	kernel__fork(PARENT, CHILD, &before);
	kernel__end(CHILD, NULL);
	assert_int_equal(kernel.process_record_count, 2);
	assert_int_equal(kernel.wakings, 0);
	/* A later record that user space waits for must still wake it. */
	kernel__exec(STRANGE, &after, &file);
	assert_int_equal(kernel.wakings, 1);
	kernel__fork(PARENT, CHILD, &before);
	kernel.tgid = kernel.tid = CHILD;
	kernel.memory = &before;
	kernel__sample();
	assert_int_equal(kernel.definition_count, 1);
	assert_int_equal(kernel.wakings, 2);
}

static void a_half_full_ring_wakes_user_space(void **state)
{
	(void)state;
	kernel__add_target(PARENT, 0x1234, 0, 0);
	kernel__fork(PARENT, CHILD, &before);
	kernel.ring_bytes = RING_BYTES / 2 + 1;
	kernel__end(CHILD, NULL);
	assert_int_equal(kernel.wakings, 1);
}

static void an_exit_that_may_end_the_run_wakes_user_space(void **state)
{
	(void)state;
	kernel__follow(FOLLOW_CHILDREN);
	kernel__add_target(PARENT, 0x1234, 0, 0);
	kernel__end(PARENT, NULL);
	assert_int_equal(kernel.wakings, 1);
}

static void a_fork_of_an_unknown_program_wakes_user_space(void **state)
{
	(void)state;
	kernel__exec(PARENT, &after, &file);
	kernel.wakings = 0;
	kernel.lies_there = false;
	kernel__fork(PARENT, CHILD, &before);
	assert_int_equal(last_record()->state, TARGET_WAITING);
	assert_int_equal(kernel.wakings, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_child_is_a_target_from_its_fork_on),
		TEST(a_child_of_a_stranger_is_no_target),
		TEST(samples_of_an_unreported_process_wait),
		TEST(a_process_reported_later_waits_for_an_answer),
		TEST(a_known_program_is_walked_from_its_exec_on),
		TEST(a_changed_file_is_an_unknown_program),
		TEST(an_unknown_program_is_reported_and_its_samples_wait),
		TEST(a_program_without_python_is_left_alone),
		TEST(a_program_that_may_load_python_waits_for_an_answer),
		TEST(a_stranger_is_not_followed_with_follow_children),
		TEST(a_child_without_python_is_followed),
		TEST(samples_of_a_child_of_an_unwanted_process_wait),
		TEST(a_known_library_is_walked_from_its_mapping_on),
		TEST(a_process_is_loading_until_its_exec_is_complete),
		TEST(findings_about_the_old_program_end_with_an_exec),
		TEST(a_process_with_new_memory_is_not_walked_as_before),
		TEST(an_exec_reports_abandoned_samples),
		TEST(an_exec_of_a_known_process_abandons_no_samples),
		TEST(processes_with_a_reused_pid_are_told_apart),
		TEST(an_exit_reports_the_title),
		TEST(forks_and_exits_do_not_wake_user_space),
		TEST(a_half_full_ring_wakes_user_space),
		TEST(an_exit_that_may_end_the_run_wakes_user_space),
		TEST(a_fork_of_an_unknown_program_wakes_user_space),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
