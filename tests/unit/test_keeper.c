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

/* Memory that all processes share. */
struct shared {
	_Atomic int begun, ended, again;
};

/* The first process kills itself.  The next one sends a byte, and waits until the other side closes
 * the socket. */
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

static void a_killed_process_is_restarted(void **state)
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

/* The number of open descriptors, and whether FILE, the agent's, is among them. */
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

static void a_process_that_is_alone_inherits_no_file(void **state)
{
	struct seen *seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(seen, MAP_FAILED);
	/* A number above that of the socket. */
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

static void a_killed_supervisor_is_noticed_once(void **state)
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
		cmocka_unit_test(a_killed_process_is_restarted),
		cmocka_unit_test(a_process_that_is_alone_inherits_no_file),
		cmocka_unit_test(a_killed_supervisor_is_noticed_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
