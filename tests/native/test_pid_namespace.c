// SPDX-License-Identifier: BSD-2-Clause
/* PIDs that user space exchanges with BPF are those of its own namespace:
 * bpf/pid_namespace.bpf.h. */
#include "harness.h"

#define VERSION 0x030d0000

static struct image image;

static int set_up(void **state)
{
	(void)state;
	image__open(&image, VERSION, false);
	kernel__load(1);
	kernel__set_layout(0, &image.layout);
	kernel__add_target(TGID, image.interpreters, 0, IMAGE_CODE_TYPE);
	kernel.tgid = TGID;
	harness__enter_thread(1);
	kernel.inner_tgid = 7;
	kernel.inner_tid = 9;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	kernel__unload();
	image__close(&image);
	return 0;
}

static void assert_thread(__u32 tgid, __u32 tid)
{
	kernel__sample();
	assert_int_equal(kernel.definition_count, 1);
	assert_int_equal(kernel.definitions[0]->tgid, tgid);
	assert_int_equal(kernel.definitions[0]->tid, tid);
}

static void the_first_namespace_has_the_kernels_pids(void **state)
{
	(void)state;
	assert_thread(TGID, TGID + 1);
}

/* BPF still finds the target by the kernel's number. */
static void a_nested_namespace_has_its_own_pids(void **state)
{
	const struct numbered_thread thread = { 1, 1, 1 };

	(void)state;
	kernel.pid_level = 2;
	kernel__search(1, &thread, 1);
	assert_thread(7, 9);
}

static void a_search_finds_the_kernels_pid_and_a_namesake(void **state)
{
	static const struct numbered_thread threads[] = {
		{ 100, 100, 1 }, { 100, 101, 2 }, { 102, 102, 3 }, { 102, 3, 4 }, { 5, 5, 102 },
	};
	const size_t count = sizeof(threads) / sizeof(threads[0]);
	struct pid_search found;

	(void)state;
	kernel.pid_level = 1;
	found = kernel__search(3, threads, count);
	assert_int_equal(found.kernel_pid, 102);
	assert_int_equal(found.namesake, 0); /* 3 is a thread */
	found = kernel__search(102, threads, count);
	assert_int_equal(found.kernel_pid, 5);
	assert_int_equal(found.namesake, 3);
	found = kernel__search(2, threads, count);
	assert_int_equal(found.kernel_pid, 0);
	found = kernel__search(1, threads, count);
	assert_int_equal(found.kernel_pid, 100);
	assert_int_equal(found.namesake, 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_namespace_has_the_kernels_pids),
		TEST(a_nested_namespace_has_its_own_pids),
		TEST(a_search_finds_the_kernels_pid_and_a_namesake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
