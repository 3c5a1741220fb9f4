// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampling/mappings.h"

/* More mappings than a ring has room for. */
#define MANY 4000

static struct {
	struct stat status;
	void *start;
	int fd, epoll_fd;
	size_t told;
	struct mappings *mappings;
} here;

/* Skips mappings of other processes and of other files. */
static void take(void *context, pid_t pid, const struct mapped_file *file)
{
	assert_ptr_equal(context, &here);
	if (pid != getpid() || file->part.inode != here.status.st_ino)
		return;
	here.told++;
	assert_int_equal(file->start, (uintptr_t)here.start);
	assert_int_equal(file->part.bytes, sysconf(_SC_PAGESIZE));
	assert_int_equal(file->part.offset, 0);
}

static bool urge(void *context, pid_t pid, const struct mapped_file *file)
{
	assert_ptr_equal(context, &here);
	return pid == getpid() && file->part.inode == here.status.st_ino;
}

static size_t take_all(void)
{
	here.told = 0;
	mappings__mark(here.mappings);
	mappings__take(here.mappings);
	return here.told;
}

static int open_all(void **state)
{
	const struct mappings_sink sink = { take, urge, &here };

	(void)state;
	here.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	here.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (here.epoll_fd < 0 || here.fd < 0 || fstat(here.fd, &here.status))
		return -1;
	switch (mappings__open(&sink, here.epoll_fd, &here.mappings)) {
	case 0:
	case -EPERM:
	case -EACCES:
		return 0;
	default:
		return -1;
	}
}

static int close_all(void **state)
{
	(void)state;
	mappings__free(here.mappings);
	close(here.fd);
	close(here.epoll_fd);
	return 0;
}

static void map(int protection)
{
	size_t bytes = sysconf(_SC_PAGESIZE);

	here.start = mmap(here.start, bytes, protection, MAP_PRIVATE | (here.start ? MAP_FIXED : 0),
			  here.fd, 0);
	assert_ptr_not_equal(here.start, MAP_FAILED);
}

static void an_executable_mapping_is_reported_once(void **state)
{
	struct epoll_event event;

	(void)state;
	if (!here.mappings)
		skip();
	take_all();
	map(PROT_READ);
	assert_int_equal(take_all(), 0);
	map(PROT_READ | PROT_EXEC);
	assert_int_equal(epoll_wait(mappings__fd(here.mappings), &event, 1, 1000), 1);
	map(PROT_READ | PROT_EXEC);
	assert_int_equal(epoll_wait(here.epoll_fd, &event, 1, 1000), 1);
	assert_int_equal(epoll_wait(mappings__fd(NULL), &event, 1, 0), -1);
	assert_int_equal(take_all(), 2);
	assert_int_equal(take_all(), 0);
}

/* After the mark there may be mappings of a process that is not known yet. */
static void a_mapping_after_the_mark_waits(void **state)
{
	(void)state;
	if (!here.mappings)
		skip();
	take_all();
	map(PROT_READ | PROT_EXEC);
	assert_int_equal((mappings__take(here.mappings), here.told), 0);
	assert_int_equal(take_all(), 1);
}

/* A mapping that was taken does not urge any more. */
static void an_urgent_mapping_urges_once(void **state)
{
	(void)state;
	if (!here.mappings)
		skip();
	take_all();
	assert_false(mappings__urge(here.mappings));
	map(PROT_READ);
	assert_false(mappings__urge(here.mappings));
	map(PROT_READ | PROT_EXEC);
	assert_true(mappings__urge(here.mappings));
	assert_false(mappings__urge(here.mappings));
	assert_int_equal(take_all(), 1);
	map(PROT_READ | PROT_EXEC);
	assert_int_equal(take_all(), 1);
	assert_false(mappings__urge(here.mappings));
	assert_false(mappings__urge(NULL));
}

static void mappings_lost_from_a_full_ring_are_counted(void **state)
{
	uint64_t before = mappings__lost(here.mappings);
	size_t told;

	(void)state;
	if (!here.mappings)
		skip();
	take_all();
	for (int i = 0; i < MANY; i++)
		map(PROT_READ | PROT_EXEC);
	told = take_all();
	/* The kernel reports how many records it lost only with the next record. */
	for (int i = 0; i < MANY && told + mappings__lost(here.mappings) - before < MANY; i++) {
		map(PROT_READ | PROT_EXEC);
		take_all();
	}
	assert_in_range(told, 1, MANY - 1);
	assert_true(mappings__lost(here.mappings) - before >= MANY - told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_executable_mapping_is_reported_once),
		cmocka_unit_test(a_mapping_after_the_mark_waits),
		cmocka_unit_test(an_urgent_mapping_urges_once),
		cmocka_unit_test(mappings_lost_from_a_full_ring_are_counted),
	};

	return cmocka_run_group_tests(tests, open_all, close_all);
}
