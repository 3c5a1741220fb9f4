// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <pwd.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "processes/identity.h"
#include "system/passwd.h"

#define SECOND_NS 1000000000LL

/* Starts a process that calls CHANGE, then waits.  Returns 0 if CHANGE fails with nonzero. */
static pid_t start(int (*change)(void))
{
	int ready[2];
	char did;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		did = change && change() ? 'n' : 'y';
		if (write(ready[1], &did, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &did, 1), 1);
	close(ready[0]);
	close(ready[1]);
	if (did == 'y')
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_itself(void **state)
{
	const struct passwd *user = getpwuid(geteuid());
	struct identity identity;

	(void)state;
	assert_int_equal(identity__read(getpid(), &identity), 0);
	assert_non_null(strstr(identity.command, "test_process_identity"));
	assert_string_equal(identity.short_name, "test_process_identity");
	assert_string_equal(identity.comm, "test_process_id");
	assert_int_equal(identity.uid, geteuid());
	if (user)
		assert_string_equal(identity.user, user->pw_name);
	assert_non_null(strstr(identity.cgroups, identity.cgroup));
	identity__free(&identity);
	assert_null(identity.command);
}

static void test_start_time(void **state)
{
	struct timespec before, after;
	struct identity identity;
	pid_t pid;

	(void)state;
	clock_gettime(CLOCK_REALTIME, &before);
	pid = start(NULL);
	clock_gettime(CLOCK_REALTIME, &after);
	assert_int_equal(identity__read(pid, &identity), 0);
	end(pid);
	/* The times are from two clocks, and this process may lose its CPU between reading them. */
	assert_true((int64_t)identity.start_unix_ns >=
		    before.tv_sec * SECOND_NS + before.tv_nsec - SECOND_NS);
	assert_true((int64_t)identity.start_unix_ns <=
		    after.tv_sec * SECOND_NS + after.tv_nsec + SECOND_NS);
	identity__free(&identity);
}

static int change_name(void)
{
	return prctl(PR_SET_NAME, "a\n)b (deleted)");
}

static void test_hostile_name(void **state)
{
	struct identity identity;
	pid_t pid = start(change_name);

	(void)state;
	assert_int_equal(identity__read(pid, &identity), 0);
	end(pid);
	assert_string_equal(identity.comm, "a\n)b (deleted)");
	identity__free(&identity);
}

static int change_root(void)
{
	return chroot("/proc") || chdir("/");
}

static void test_users_of_another_root(void **state)
{
	struct identity identity;
	pid_t pid = start(change_root);
	char number[16];

	(void)state;
	if (!pid)
		skip();
	assert_int_equal(identity__read(pid, &identity), 0);
	end(pid);
	snprintf(number, sizeof(number), "%u", geteuid());
	assert_string_equal(identity.user, number);
	identity__free(&identity);
}

static int change_user(void)
{
	return setresuid(4242421, 4242422, 0);
}

static void test_user_without_a_name(void **state)
{
	struct identity identity;
	pid_t pid = start(change_user);

	(void)state;
	if (!pid)
		skip();
	assert_int_equal(identity__read(pid, &identity), 0);
	end(pid);
	assert_int_equal(identity.uid, 4242422);
	assert_string_equal(identity.user, "4242422");
	identity__free(&identity);
}

static void test_zombie(void **state)
{
	struct identity identity;
	siginfo_t ended;
	pid_t pid = start(NULL);

	(void)state;
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, pid, &ended, WEXITED | WNOWAIT), 0);
	assert_int_equal(identity__read(pid, &identity), 0);
	assert_string_equal(identity.command, "[test_process_id]");
	/* It has no executable any more, either. */
	assert_string_equal(identity.short_name, "test_process_id");
	identity__free(&identity);
	end(pid);
	assert_int_equal(identity__read(pid, &identity), -ESRCH);
	assert_null(identity.comm);
}

static void names_are_read_again_after_a_fork(void **state)
{
	pid_t pid = start(change_name);
	struct identity identity;
	uint64_t start_time;

	(void)state;
	/* A forked process has the identity of its parent at first. */
	assert_int_equal(identity__read(getpid(), &identity), 0);
	free(identity.service_name);
	identity.service_name = strdup("service");
	assert_int_equal(identity__read_again(pid, 0, IDENTIFY_OWNER, &identity), 0);
	assert_string_equal(identity.comm, "test_process_id");
	start_time = identity.start_time;
	assert_int_not_equal(start_time, 0);
	assert_int_equal(identity__read_again(pid, start_time, IDENTIFY_FORKED, &identity), 0);
	assert_string_equal(identity.comm, "a\n)b (deleted)");
	assert_string_equal(identity.service_name, "service");
	assert_non_null(identity.user);
	assert_non_null(identity.cgroup);
	end(pid);
	identity__free(&identity);
}

static void an_owner_that_changed_is_read_again(void **state)
{
	pid_t pid = start(change_name);
	struct identity identity;
	char *cgroups;

	(void)state;
	assert_int_equal(identity__read(pid, &identity), 0);
	cgroups = strdup(identity.cgroups);
	assert_int_equal(identity__read_again(pid, identity.start_time, IDENTIFY_OWNER, &identity),
			 -EALREADY);
	identity.uid++;
	assert_int_equal(identity__read_again(pid, identity.start_time, IDENTIFY_OWNER, &identity),
			 0);
	assert_int_equal(identity.uid, geteuid());
	identity.cgroups[0]++;
	assert_int_equal(identity__read_again(pid, identity.start_time, IDENTIFY_OWNER, &identity),
			 0);
	assert_string_equal(identity.cgroups, cgroups);
	identity.start_time++;
	assert_int_equal(identity__read_again(pid, 0, IDENTIFY_OWNER, &identity), 0);
	assert_string_equal(identity.comm, "a\n)b (deleted)");
	end(pid);
	free(cgroups);
	identity__free(&identity);
}

/* Unmaps its command line, as in a process that is about to end.  Also unmaps the stack above it,
 * which would grow into the gap. */
static int lose_words(void *ready)
{
	uintptr_t page = sysconf(_SC_PAGESIZE), words = (uintptr_t)program_invocation_name;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!munmap((void *)(words & ~(page - 1)), 1 << 20) && write(*(int *)ready, "y", 1) == 1)
		pause();
	_exit(1);
}

static void a_lost_command_line_keeps_the_known_names(void **state)
{
	static const char words[] = "python3\0app.py";
	/* The usual stack has the command line and is unmapped, so the child needs another one. */
	static alignas(16) char stack[256 * 1024];
	static int ready[2];
	struct identity identity;
	char did;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = clone(lose_words, stack + sizeof(stack), SIGCHLD, &ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &did, 1), 1);
	close(ready[0]);
	assert_int_equal(identity__read(pid, &identity), 0);
	assert_true(identity.wordless);
	assert_string_equal(identity.command, "[test_process_id]");
	identity__take_words(words, sizeof(words), &identity);
	assert_int_equal(identity__read_again(pid, 0, IDENTIFY_FORKED, &identity), 0);
	assert_string_equal(identity.command, "python3 app.py");
	assert_string_equal(identity.short_name, "app.py");
	assert_false(identity.wordless);
	end(pid);
	identity__free(&identity);
}

static void an_ended_process_keeps_its_known_identity(void **state)
{
	struct identity identity;
	siginfo_t ended;
	pid_t pid = start(change_name);

	(void)state;
	assert_int_equal(identity__read(getpid(), &identity), 0);
	assert_int_equal(
		identity__read_again(pid, identity.start_time + 1000000, IDENTIFY_ALL, &identity),
		-ESRCH);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, pid, &ended, WEXITED | WNOWAIT), 0);
	assert_int_equal(identity__read_again(pid, 0, IDENTIFY_FORKED, &identity), -ESRCH);
	assert_string_equal(identity.comm, "test_process_id");
	assert_non_null(strstr(identity.command, "test_process_identity"));
	end(pid);
	identity__free(&identity);
}

static void the_last_title_replaces_the_names(void **state)
{
	static const char words[] = "python3\0app.py\0-c\0x";
	static const char title[] = "gunicorn: worker [app]\0\0";
	struct identity identity = { 0 };

	(void)state;
	identity__take_words(words, sizeof(words), &identity);
	assert_false(identity__retitle(&identity, words, sizeof(words), false));
	assert_false(identity__retitle(&identity, "", 0, false));
	assert_false(identity__retitle(&identity, "\0\0", 3, false));
	assert_false(identity__retitle(&identity, words, 14, true));
	assert_string_equal(identity.command, "python3 app.py -c x");
	/* A title that is the beginning of the last one, but is not cut. */
	assert_true(identity__retitle(&identity, words, 15, false));
	assert_string_equal(identity.command, "python3 app.py");
	assert_true(identity__retitle(&identity, title, sizeof(title), false));
	assert_string_equal(identity.command, "gunicorn: worker [app]");
	assert_string_equal(identity.short_name, "gunicorn app");
	identity__free(&identity);
}

static void a_worker_gets_its_ancestors_name(void **state)
{
	static const char words[] = "python3\0-c\0x", others[] = "python3\0app.py";
	struct identity identity = { 0 };

	(void)state;
	identity__take_words(words, sizeof(words), &identity);
	identity__inherit(&identity, NULL);
	assert_string_equal(identity.short_name, "-c");
	identity__inherit(&identity, "shop.py");
	identity__inherit(&identity, "farther.py");
	assert_string_equal(identity.short_name, "shop.py");
	identity__take_words(others, sizeof(others), &identity);
	identity__inherit(&identity, "shop.py");
	assert_string_equal(identity.short_name, "app.py");
	identity__free(&identity);
}

static void test_passwd(void **state)
{
	char *name = passwd__name(0);
	uid_t uid = 1;

	(void)state;
	assert_string_equal(name, "root");
	free(name);
	assert_true(passwd__uid("root", &uid));
	assert_int_equal(uid, 0);
	assert_false(passwd__uid("no such user", &uid));
	assert_false(passwd__uid("", &uid));
	assert_null(passwd__name(4242422));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_itself),
		cmocka_unit_test(test_start_time),
		cmocka_unit_test(test_hostile_name),
		cmocka_unit_test(test_users_of_another_root),
		cmocka_unit_test(test_user_without_a_name),
		cmocka_unit_test(test_zombie),
		cmocka_unit_test(names_are_read_again_after_a_fork),
		cmocka_unit_test(an_owner_that_changed_is_read_again),
		cmocka_unit_test(a_lost_command_line_keeps_the_known_names),
		cmocka_unit_test(an_ended_process_keeps_its_known_identity),
		cmocka_unit_test(the_last_title_replaces_the_names),
		cmocka_unit_test(a_worker_gets_its_ancestors_name),
		cmocka_unit_test(test_passwd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
