// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "architecture/architecture.h"
#include "system/system_calls.h"

/* Each of these returns whether its call was refused. */
static bool signal_parent(void)
{
	return kill(getppid(), 0) < 0 && errno == EPERM;
}

static bool signal_parents_thread(void)
{
	return syscall(SYS_tgkill, getppid(), getppid(), 0) < 0 && errno == EPERM;
}

static bool trace_parent(void)
{
	return ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) < 0 && errno == EPERM;
}

static bool limit_parent(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	return prlimit(getppid(), RLIMIT_CORE, &limit, NULL) < 0 && errno == EPERM;
}

static bool write_to_own_memory(void)
{
	int from = 1, to = 0;
	struct iovec local = { &from, sizeof(from) }, remote = { &to, sizeof(to) };

	return process_vm_writev(getpid(), &local, 1, &remote, 1, 0) < 0 && errno == EPERM;
}

static bool hold_parent(void)
{
	return syscall(SYS_pidfd_open, getppid(), 0) < 0 && errno == EPERM;
}

/* Without the filter it fails with another error, as there is no such file. */
static bool open_by_handle(void)
{
	struct file_handle none = { 0 };

	return open_by_handle_at(AT_FDCWD, &none, O_RDONLY) < 0 && errno == EPERM;
}

static bool remove_module(void)
{
	return syscall(SYS_delete_module, "no such module", O_NONBLOCK) < 0 && errno == EPERM;
}

/* Without the filter they fail with other errors, at least for root. */
static bool mount_or_swap(void)
{
	static const long calls[] = {
		SYS_mount,	   SYS_umount2, SYS_fsopen,    SYS_fsconfig,
		SYS_fsmount,	   SYS_fspick,	SYS_open_tree, SYS_move_mount,
		SYS_mount_setattr, SYS_swapon,	SYS_swapoff,
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (syscall(calls[i], -1, -1, -1, -1, -1) >= 0 || errno != EPERM)
			return false;
	return true;
}

static bool start_program(void)
{
	char *arguments[] = { "/bin/true", NULL };

	execv(arguments[0], arguments);
	return errno == EPERM;
}

static bool start_process(void)
{
	return fork() < 0 && errno == EPERM;
}

/* Uses the calls that only this architecture has. */
static bool start_process_otherwise(void)
{
	for (size_t i = 0; i < ARCHITECTURE.starting_call_count; i++)
		if (syscall(ARCHITECTURE.starting_calls[i]) >= 0 || errno != EPERM)
			return false;
	return true;
}

/* With the numbers of a second ABI, even a call that is allowed otherwise is refused.  If the
 * kernel lacks the ABI, it fails with ENOSYS without the filter. */
static bool call_by_other_numbers(void)
{
	uint32_t other = ARCHITECTURE.other_calls;

	return !other || (syscall(other + SYS_getppid) < 0 && errno == EPERM);
}

static bool open_socket(void)
{
	return socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM;
}

/* Each of these returns whether calls that a recording needs work. */
static bool read_own_memory(void)
{
	int from = 1, to = 0;
	struct iovec local = { &to, sizeof(to) }, remote = { &from, sizeof(from) };
	int fd = open("/proc/self/maps", O_RDONLY);

	return fd >= 0 && process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == sizeof(to) &&
	       to == 1;
}

static bool limit_itself(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static void *try_socket(void *refused)
{
	*(bool *)refused = open_socket();
	return NULL;
}

/* The new thread is confined, too. */
static bool start_thread(void)
{
	bool refused = false;
	pthread_t thread;

	return !pthread_create(&thread, NULL, try_socket, &refused) &&
	       !pthread_join(thread, NULL) && refused;
}

/* The wait status of a process that runs WHAT, confined with NETWORK. */
static int confined(bool (*what)(void), enum network network)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		_exit(system_calls__confine(network) ? 2 : !what());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static int in_confinement(bool (*what)(void))
{
	return confined(what, NETWORK_REFUSED);
}

static void calls_that_a_recording_never_makes_are_refused(void **state)
{
	static bool (*const attempts[])(void) = {
		signal_parent,		 signal_parents_thread, trace_parent, write_to_own_memory,
		start_program,		 start_process,		open_socket,  limit_parent,
		start_process_otherwise, call_by_other_numbers, hold_parent,  open_by_handle,
		remove_module,		 mount_or_swap,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		assert_int_equal(in_confinement(attempts[i]), 0);
}

static void calls_that_a_recording_makes_are_allowed(void **state)
{
	(void)state;
	assert_int_equal(in_confinement(read_own_memory), 0);
	assert_int_equal(in_confinement(limit_itself), 0);
	assert_int_equal(in_confinement(start_thread), 0);
}

static bool reach_the_network(void)
{
	return socket(AF_INET, SOCK_STREAM, 0) >= 0;
}

static void a_sender_may_only_use_the_network_in_addition(void **state)
{
	(void)state;
	assert_int_equal(confined(reach_the_network, NETWORK_ALLOWED), 0);
	assert_int_equal(confined(start_program, NETWORK_ALLOWED), 0);
	assert_int_equal(confined(trace_parent, NETWORK_ALLOWED), 0);
}

static bool end_at_once(void)
{
	signal(SIGABRT, SIG_DFL);
	abort();
}

static void abort_still_raises_sigabrt(void **state)
{
	int status = in_confinement(end_at_once);

	(void)state;
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_that_a_recording_never_makes_are_refused),
		cmocka_unit_test(calls_that_a_recording_makes_are_allowed),
		cmocka_unit_test(a_sender_may_only_use_the_network_in_addition),
		cmocka_unit_test(abort_still_raises_sigabrt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
