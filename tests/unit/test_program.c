// SPDX-License-Identifier: BSD-2-Clause
/* A program that is executed again is another one, though nothing else about it is different. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "reading/process.h"

/* Executes itself at each line that it reads, and writes one then. */
#define AGAIN "echo; read line && exec sh -c \"$0\" \"$0\""

struct child {
	pid_t pid;
	int words[2], answers[2];
};

static struct child start(unsigned long persona)
{
	struct child child;

	assert_int_equal(pipe(child.words) || pipe(child.answers), 0);
	child.pid = fork();
	if (!child.pid) {
		personality(persona);
		dup2(child.words[0], STDIN_FILENO);
		dup2(child.answers[1], STDOUT_FILENO);
		close(child.words[1]);
		execl("/bin/sh", "sh", "-c", AGAIN, AGAIN, NULL);
		_exit(1);
	}
	assert_true(child.pid > 0);
	return child;
}

static void end(const struct child *child)
{
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	for (int i = 0; i < 2; i++) {
		close(child->words[i]);
		close(child->answers[i]);
	}
}

static struct program identify(pid_t pid)
{
	struct program program;

	assert_int_equal(process__identify_program(pid, &program), 0);
	return program;
}

static void it_stays_the_same_until_it_executes_another(void **state)
{
	struct child child = start(PER_LINUX);
	struct program before = { 0 }, now;
	struct process process;
	char line;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(read(child.answers[0], &line, 1), 1);
		now = identify(child.pid);
		assert_int_equal(process__inspect(child.pid, &process), 0);
		assert_int_equal(now.start_time, process.start_time);
		assert_false(process__is_same_program(&before, &now));
		before = now;
		now = identify(child.pid);
		assert_true(process__is_same_program(&before, &now));
		assert_int_equal(write(child.words[1], "\n", 1), 1);
	}
	end(&child);
}

/* As under a debugger. */
static void what_has_the_same_addresses_each_time_is_not_told(void **state)
{
	struct child child = start(ADDR_NO_RANDOMIZE);
	struct program program;
	char line;

	(void)state;
	assert_int_equal(read(child.answers[0], &line, 1), 1);
	program = identify(child.pid);
	assert_int_equal(program.places, 0);
	assert_false(process__is_same_program(&program, &program));
	end(&child);
}

static void what_has_ended_has_none(void **state)
{
	struct program program;
	siginfo_t ended;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, pid, &ended, WEXITED | WNOWAIT), 0);
	assert_int_equal(process__identify_program(pid, &program), -ESRCH);
	waitpid(pid, NULL, 0);
	assert_int_equal(process__identify_program(pid, &program), -ESRCH);
	assert_false(process__is_same_program(&program, &program));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_stays_the_same_until_it_executes_another),
		cmocka_unit_test(what_has_the_same_addresses_each_time_is_not_told),
		cmocka_unit_test(what_has_ended_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
