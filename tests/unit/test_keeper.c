// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper.h"

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

static void count(void *context, bool again)
{
	struct shared *shared = context;

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
	int sockets[2], status;
	pid_t pid;

	(void)state;
	assert_ptr_not_equal(shared, MAP_FAILED);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(sockets[0]);
		keeper__run(sockets[1], &kept);
		_exit(0);
	}
	close(sockets[1]);
	said.fd = sockets[0];
	assert_int_equal(poll(&said, 1, WAIT_MS), 1);
	assert_int_equal(said.revents, POLLIN);
	assert_int_equal(shared->begun, 2);
	assert_int_equal(shared->ended, 1);
	assert_int_equal(shared->again, 1);
	close(sockets[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(shared->begun, 2);
	assert_int_equal(shared->ended, 2);
	assert_int_equal(shared->again, 1);
	munmap(shared, sizeof(*shared));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_killed_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
