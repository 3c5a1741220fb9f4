// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "system/keeper.h"

#define WAIT_MS 120000

/* What all processes have. */
struct shared {
	_Atomic int begun, ended, again;
};

/* The first one is killed; the next one says so and waits for the other side's end. */
static bool run(void *context, int socket)
{
	struct shared *shared = context;
	struct pollfd other = { .fd = socket, .events = POLLIN };

	if (++shared->begun == 1)
		raise(SIGKILL);
	if (send(socket, "", 1, 0) != 1)
		return false;
	return poll(&other, 1, WAIT_MS) == 1;
}

static void count(void *context, int error, bool again)
{
	struct shared *shared = context;

	assert_int_equal(error, 0);
	shared->ended++;
	shared->again += again;
}

static void what_is_killed_is_replaced(void **state)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const struct kept kept = {
		.name = "what is kept", .lost = "", .run = run, .ended = count, .context = shared
	};
	struct pollfd said = { .events = POLLIN };
	struct keeper keeper = KEEPER_NONE;

	(void)state;
	assert_ptr_not_equal(shared, MAP_FAILED);
	assert_true(keeper__start(&keeper, &kept));
	said.fd = keeper.socket;
	assert_int_equal(poll(&said, 1, WAIT_MS), 1);
	assert_int_equal(said.revents, POLLIN);
	assert_int_equal(shared->begun, 2);
	assert_int_equal(shared->ended, 1);
	assert_int_equal(shared->again, 1);
	assert_false(keeper__has_ended(&keeper));
	keeper__end(&keeper);
	assert_int_equal(keeper.socket, -1);
	assert_int_equal(keeper.pid, 0);
	assert_int_equal(shared->begun, 2);
	assert_int_equal(shared->ended, 2);
	assert_int_equal(shared->again, 1);
	keeper__end(&keeper);
	munmap(shared, sizeof(*shared));
}

/* How many descriptors it has, of which FILE, the agent's, may be one. */
struct seen {
	int file;
	_Atomic int open, has_file;
};

static bool look(void *context, int socket)
{
	struct seen *seen = context;
	struct pollfd other = { .fd = socket, .events = POLLIN };

	seen->has_file = fcntl(seen->file, F_GETFD) >= 0;
	for (int fd = 0; fd < 1024; fd++)
		seen->open += fcntl(fd, F_GETFD) >= 0;
	return send(socket, "", 1, 0) == 1 && poll(&other, 1, WAIT_MS) == 1;
}

static void count_nothing(void *context, int error, bool again)
{
	(void)context;
	(void)error;
	(void)again;
}

static void one_that_is_alone_has_no_file_of_the_agents(void **state)
{
	struct seen *seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(seen, MAP_FAILED);
	/* Beyond the one that the socket becomes. */
	seen->file = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
	for (int alone = 0; alone < 2; alone++) {
		const struct kept kept = { .name = "what is kept",
					   .lost = "",
					   .run = look,
					   .ended = count_nothing,
					   .context = seen,
					   .alone = alone };
		struct keeper keeper = KEEPER_NONE;
		struct pollfd said = { .events = POLLIN };

		seen->open = 0;
		assert_true(keeper__start(&keeper, &kept));
		said.fd = keeper.socket;
		assert_int_equal(poll(&said, 1, WAIT_MS), 1);
		assert_int_equal(seen->has_file, !alone);
		if (alone)
			assert_in_range(seen->open, 2, STDERR_FILENO + 2);
		keeper__end(&keeper);
	}
	close(seen->file);
	munmap(seen, sizeof(*seen));
}

static void the_end_of_one_that_is_killed_is_known(void **state)
{
	struct seen seen = { .file = -1 };
	const struct kept kept = { .name = "what is kept",
				   .lost = "",
				   .run = look,
				   .ended = count_nothing,
				   .context = &seen };
	struct keeper keeper = KEEPER_NONE;
	struct pollfd said = { .events = POLLIN };

	(void)state;
	assert_true(keeper__start(&keeper, &kept));
	said.fd = keeper.socket;
	assert_int_equal(poll(&said, 1, WAIT_MS), 1);
	kill(keeper.pid, SIGKILL);
	while (!keeper__has_ended(&keeper))
		usleep(1000);
	assert_false(keeper__has_ended(&keeper));
	keeper__end(&keeper);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_killed_is_replaced),
		cmocka_unit_test(one_that_is_alone_has_no_file_of_the_agents),
		cmocka_unit_test(the_end_of_one_that_is_killed_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
