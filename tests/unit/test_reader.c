// SPDX-License-Identifier: BSD-2-Clause
/* The test has its own clock.  It advances only when a caller waits for the reader, and when a call
 * adds its own duration.  So the number of waits counts, however busy the machine is. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/now.h"
#include "reading/reader.h"
#include "reading/target_files.h"
#include "reading/target_memory.h"
#include "wrap.h"

#define NS_PER_US 1000LL
#define NS_PER_MS 1000000LL
#define NS_PER_S  1000000000LL

/* A poll step, in real time. */
#define STEP_NS (2 * NS_PER_MS)
#define STEPS	30000

/* A bit of the kernel's flags of a task. */
#define PF_EXITING 4

static _Atomic int64_t clock_at_ns = 1000 * NS_PER_S;

/* LET_GO ends wait_until_let_go(), after WAITS_LEFT more waits for the reader; -1: never. */
static _Atomic bool let_go;
static int waits_left = -1;

/* Callers wait for the reader without a time limit. */
static bool for_ever;

static void step(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = STEP_NS }, NULL);
}

/* Whether thread TID has not begun to exit.  A joined thread may stay in /proc for a while. */
static bool is_alive(const char *tid)
{
	char path[300], line[512] = "";
	unsigned int flags = PF_EXITING;
	const char *rest;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/self/task/%s/stat", tid);
	stat = fopen(path, "re");
	if (!stat)
		return false;
	if (fgets(line, sizeof(line), stat) && (rest = strrchr(line, ')')))
		sscanf(rest, ") %*c %*d %*d %*d %*d %*d %u", &flags);
	fclose(stat);
	return !(flags & PF_EXITING);
}

static int count_threads(void)
{
	DIR *threads = opendir("/proc/self/task");
	const struct dirent *thread;
	int count = 0;

	while ((thread = readdir(threads)))
		count += thread->d_name[0] != '.' && is_alive(thread->d_name);
	closedir(threads);
	return count;
}

/* Waits as long as a busy machine may need. */
static void threads_become(int count)
{
	for (int i = 0; i < STEPS && count_threads() != count; i++)
		step();
	assert_int_equal(count_threads(), count);
}

WRAP(int, clock_gettime, clockid_t clock, struct timespec *time)
{
	int64_t now = clock_at_ns;

	(void)clock;
	time->tv_sec = now / NS_PER_S;
	time->tv_nsec = now % NS_PER_S;
	return 0;
}

WRAP(int, sem_clockwait, sem_t *semaphore, clockid_t clock, const struct timespec *end)
{
	int64_t until = end->tv_sec * NS_PER_S + end->tv_nsec;

	(void)clock;
	if (for_ever) {
		while (sem_wait(semaphore))
			;
		return 0;
	}
	if (sem_trywait(semaphore) == 0)
		return 0;
	step();
	if (sem_trywait(semaphore) == 0)
		return 0;
	clock_at_ns += until > clock_at_ns ? until - clock_at_ns : 0;
	errno = ETIMEDOUT;
	return -1;
}

WRAP(int, usleep, useconds_t microseconds)
{
	int threads = count_threads();

	clock_at_ns += microseconds * NS_PER_US;
	if (waits_left < 0 || waits_left--)
		return 0;
	let_go = true;
	threads_become(threads - 1);
	return 0;
}

static int64_t add_one(void *desk)
{
	return *(int *)desk + 1;
}

static int64_t never_return(void *desk)
{
	(void)desk;
	while (pause())
		;
	return 0;
}

static int64_t wait_until_let_go(void *desk)
{
	(void)desk;
	while (!let_go)
		step();
	return 0;
}

/* Long enough to be seen asleep. */
static int64_t sleep_shortly(void *desk)
{
	(void)desk;
	clock_at_ns += 30 * NS_PER_MS;
	step();
	return 0;
}

static int64_t compute_for(int64_t duration_ns)
{
	int64_t until = now_ns() + duration_ns;

	while (now_ns() < until)
		;
	return 0;
}

static int64_t compute_long(void *desk)
{
	(void)desk;
	return compute_for(9 * NS_PER_S / 2);
}

static int64_t compute_shortly(void *desk)
{
	(void)desk;
	clock_at_ns += 12 * NS_PER_MS;
	return 0;
}

/* Sleeps for *DESK milliseconds, never long enough to be seen asleep. */
static int64_t sleep_for(void *desk)
{
	clock_at_ns += *(int *)desk * NS_PER_MS;
	step();
	return 0;
}

/* Fails with -EINTR until call *DESK; 0: always. */
static int64_t be_interrupted(void *desk)
{
	int *left = desk;

	return *left && !--*left ? 0 : -EINTR;
}

static int64_t show_blocked(void *desk)
{
	sigset_t blocked;

	(void)desk;
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	return sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGTERM);
}

static int64_t add_one_for(pid_t pid, int number)
{
	int *desk = reader__desk();

	*desk = number;
	return reader__run(pid, add_one);
}

static void work_returns_its_result(void **state)
{
	(void)state;
	assert_int_equal(add_one_for(1, 4), 5);
	assert_int_equal(add_one_for(2, -4), -3);
	assert_true(reader__run(1, show_blocked));
	assert_false(reader__has_given_up(1));
}

static int64_t tell_thread(void *desk)
{
	(void)desk;
	return gettid();
}

static void ask_for_thread(void *context)
{
	*(int64_t *)context = reader__run(1, tell_thread);
}

/* For callers that may not start a thread. */
static void an_errand_can_run_in_the_calling_thread(void **state)
{
	int64_t thread;

	(void)state;
	reader__relieve();
	reader__do_alone(ask_for_thread, &thread);
	assert_int_equal(thread, gettid());
	assert_int_equal(reader__begin(), 0);
	reader__send(ask_for_thread, &thread);
	assert_int_not_equal(thread, gettid());
}

static void interrupted_work_is_repeated(void **state)
{
	int *left = reader__desk();

	(void)state;
	*left = 3;
	assert_int_equal(reader__run(1, be_interrupted), 0);
	/* But not for ever: a file system in user space may return EINTR each time. */
	*left = 0;
	assert_int_equal(reader__run(1, be_interrupted), -EINTR);
}

static void only_the_process_that_does_not_answer_is_given_up(void **state)
{
	int threads = count_threads();
	int64_t before = now_ns(), after;

	(void)state;
	assert_int_equal(reader__run(11, never_return), -ETIMEDOUT);
	assert_false(reader__answers(11));
	assert_false(reader__has_given_up(11));
	assert_true(reader__answers(12));
	reader__wait(11);
	after = now_ns();
	assert_in_range(after - before, 3 * NS_PER_S, 4 * NS_PER_S);
	assert_false(reader__answers(11));
	assert_true(reader__has_given_up(11));
	assert_int_equal(add_one_for(11, 4), -ETIMEDOUT);
	reader__wait(11);
	assert_int_equal(now_ns(), after);
	assert_int_equal(add_one_for(12, 4), 5);
	assert_false(reader__has_given_up(12));
	/* The abandoned thread, and the one that replaced it. */
	assert_int_equal(count_threads(), threads + 1);
	/* The process has ended, and its PID may be reused. */
	reader__forget(11);
	assert_int_equal(add_one_for(11, 4), 5);
}

/* A process that hangs is not given up as long as nothing waits for it. */
static void hanging_processes_do_not_delay_others(void **state)
{
	(void)state;
	for (pid_t pid = 61; pid < 66; pid++) {
		assert_int_equal(reader__run(pid, never_return), -ETIMEDOUT);
		assert_false(reader__has_given_up(pid));
	}
	/* When no time is left, all of them are given up. */
	reader__give_up();
	for (pid_t pid = 61; pid < 66; pid++)
		assert_true(reader__has_given_up(pid));
	assert_true(reader__answers(66));
}

/* Makes a call for PID that returns only after WAITS waits for it. */
static void be_late(pid_t pid, int waits)
{
	let_go = false;
	waits_left = waits;
	assert_int_equal(reader__run(pid, wait_until_let_go), -ETIMEDOUT);
}

static void a_process_that_answers_late_is_called_again(void **state)
{
	int threads;

	(void)state;
	for (int i = 0; i < 3; i++) {
		uint64_t missed = reader__missed(71);

		be_late(71, 20);
		assert_int_equal(add_one_for(71, 4), -ETIMEDOUT);
		reader__wait(71);
		assert_int_equal(reader__missed(71), missed + 2);
		assert_int_equal(add_one_for(71, 4), 5);
		assert_int_equal(reader__missed(71), missed + 2);
	}
	/* Also if its end was reported meanwhile. */
	threads = count_threads();
	be_late(71, 20);
	reader__forget(71);
	assert_int_equal(add_one_for(71, 4), 5);
	let_go = true;
	threads_become(threads);
}

/* What an errand did in all its runs. */
struct errand {
	int begun, sums;
	int64_t refused;
	bool shared; /* it ran in several threads, or in the main one */
};

static void add_for_many(void *context)
{
	struct errand *errand = context;
	pid_t tid = gettid();

	errand->begun++;
	for (int i = 0; i < 1000; i++)
		errand->sums += add_one_for(31, 0);
	errand->shared = gettid() != tid || tid == getpid();
}

static void wait_for_one(void *context)
{
	struct errand *errand = context;

	errand->begun++;
	errand->refused = reader__run(32, never_return);
	errand->sums = add_one_for(33, 4);
}

static void an_errand_is_handed_over_once(void **state)
{
	struct errand errand = { 0 };

	(void)state;
	reader__send(add_for_many, &errand);
	assert_int_equal(errand.begun, 1);
	assert_int_equal(errand.sums, 1000);
	assert_false(errand.shared);
}

/* The errand starts again, skips the process that hangs, and continues with the others. */
static void an_errand_waits_for_a_process_only_once(void **state)
{
	struct errand errand = { 0 };

	(void)state;
	reader__send(wait_for_one, &errand);
	assert_int_equal(errand.begun, 2);
	assert_int_equal(errand.refused, -ETIMEDOUT);
	assert_int_equal(errand.sums, 5);
	assert_false(reader__answers(32));
	assert_true(reader__answers(33));
}

static void many_long_waits_together_are_too_long(void **state)
{
	int threads = count_threads(), done = 0;

	(void)state;
	while (!reader__has_given_up(21)) {
		if (done % 2)
			reader__run(21, sleep_shortly);
		else
			be_late(21, 20);
		reader__wait(21);
		done++;
		assert_true(done < 300);
	}
	assert_true(done >= 40);
	/* The last call returns, too. */
	waits_left = -1;
	let_go = true;
	assert_int_equal(add_one_for(1, 4), 5);
	threads_become(threads);
}

struct waits {
	pid_t pid;
	int64_t slept_ns;
};

static void add_wait(struct waits *waits, int milliseconds)
{
	*(int *)reader__desk() = milliseconds;
	if (reader__run(waits->pid, sleep_for) == 0)
		waits->slept_ns += milliseconds * NS_PER_MS;
}

static void wait_shortly_and_compute(void *context)
{
	struct waits *waits = context;

	for (int i = 0; i < 3; i++)
		add_wait(waits, 12);
	add_wait(waits, 35);
	for (int i = 0; i < 2; i++)
		reader__run(waits->pid, compute_shortly);
}

/* Waits that are too short to be seen count, too.  Computing time does not. */
static void many_short_waits_together_are_too_long(void **state)
{
	struct waits waits = { .pid = 22 };

	(void)state;
	for_ever = true;
	for (int i = 0; !reader__has_given_up(22); i++) {
		assert_true(waits.slept_ns < 20 * NS_PER_S);
		if (i % 2)
			wait_shortly_and_compute(&waits);
		else
			reader__send(wait_shortly_and_compute, &waits);
	}
	assert_true(waits.slept_ns > 23 * NS_PER_S / 2);
	for_ever = false;
	assert_int_equal(add_one_for(22, 4), -ETIMEDOUT);
	assert_int_equal(add_one_for(23, 4), 5);
}

static void computing_is_not_waiting(void **state)
{
	(void)state;
	assert_int_equal(reader__run(31, compute_long), 0);
	assert_false(reader__has_given_up(31));
}

static void a_relieved_reader_is_replaced(void **state)
{
	int threads;

	(void)state;
	assert_int_equal(add_one_for(1, 4), 5);
	threads = count_threads();
	reader__relieve();
	assert_int_equal(count_threads(), threads - 1);
	reader__relieve();
	assert_int_equal(add_one_for(1, 4), 5);
	assert_int_equal(count_threads(), threads);
}

/* A call within an errand can hang as well. */
static void wait_until_let_go_on_an_errand(void *context)
{
	(void)context;
	reader__run(42, wait_until_let_go);
}

static void abandoned_readers_end_when_their_calls_return(void **state)
{
	int threads = count_threads();

	(void)state;
	let_go = false;
	assert_int_equal(reader__run(41, wait_until_let_go), -ETIMEDOUT);
	reader__send(wait_until_let_go_on_an_errand, NULL);
	assert_int_equal(add_one_for(1, 4), 5);
	threads_become(threads + 2);
	let_go = true;
	threads_become(threads);
	/* The next abandoned reader frees them, as the sanitizer checks. */
	assert_int_equal(reader__run(43, never_return), -ETIMEDOUT);
	assert_int_equal(add_one_for(1, 4), 5);
}

struct lending {
	int begun;
	char *kept[2];
};

static void wait_with_lent_memory(void *context)
{
	struct lending *lending = context;
	char *lent = reader__lend(malloc(1000)), *kept = reader__lend(malloc(1000));

	free(reader__take_back(reader__lend(malloc(1000))));
	lending->kept[lending->begun] = reader__take_back(kept);
	if (!lending->begun++)
		reader__run(45, wait_until_let_go);
	free(reader__take_back(lent));
	assert_null(reader__take_back(reader__lend(NULL)));
}

/* The sanitizer checks that.  Memory that was taken back stays. */
static void lent_memory_of_an_abandoned_errand_is_freed(void **state)
{
	struct lending lending = { 0 };
	int threads = count_threads();

	(void)state;
	let_go = false;
	reader__send(wait_with_lent_memory, &lending);
	assert_int_equal(lending.begun, 2);
	let_go = true;
	threads_become(threads);
	free(lending.kept[0]);
	free(lending.kept[1]);
}

/* Outside of an errand the caller is never abandoned, so it keeps its memory. */
static void memory_lent_outside_an_errand_stays(void **state)
{
	char *lent = reader__lend(malloc(1000));

	(void)state;
	assert_int_equal(reader__run(46, never_return), -ETIMEDOUT);
	lent[0] = '\0';
	free(reader__take_back(lent));
	assert_int_equal(add_one_for(1, 4), 5);
}

static int64_t open_late(void *desk)
{
	int64_t fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	reader__hold(fd);
	wait_until_let_go(desk);
	return fd;
}

static int count_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void a_descriptor_that_comes_too_late_is_closed(void **state)
{
	int threads = count_threads(), descriptors = count_descriptors();

	(void)state;
	let_go = false;
	assert_int_equal(reader__run(44, open_late), -ETIMEDOUT);
	assert_int_equal(add_one_for(1, 4), 5);
	assert_int_equal(count_descriptors(), descriptors + 1);
	let_go = true;
	threads_become(threads);
	assert_int_equal(count_descriptors(), descriptors);
}

/* However many processes were called, only those that exist and hang are remembered. */
static void processes_that_do_not_exist_are_forgotten(void **state)
{
	(void)state;
	assert_int_equal(reader__run(getpid(), never_return), -ETIMEDOUT);
	assert_int_equal(reader__run(INT32_MAX, never_return), -ETIMEDOUT);
	for (pid_t pid = 1000000; pid < 1005000; pid++)
		assert_int_equal(add_one_for(pid, 4), 5);
	assert_false(reader__answers(getpid()));
	/* This process does not exist, so a later one with its PID is called. */
	assert_true(reader__answers(INT32_MAX));
	reader__forget(getpid());
}

static void files_of_a_hanging_process_are_closed(void **state)
{
	int fd = target_file__open(51, "/proc/self/exe");

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(reader__run(51, never_return), -ETIMEDOUT);
	target_file__close(51, fd);
	for (int i = 0; i < STEPS && fcntl(fd, F_GETFD) >= 0; i++)
		step();
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void memory_of_any_size_is_read(void **state)
{
	static uint8_t from[200000], to[sizeof(from)];
	const size_t pieces = 3000, size = 60;
	static uint64_t addresses[3000];
	static bool readable[3000];

	(void)state;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = i * 7 + i / 251;
	assert_int_equal(target_memory__read(getpid(), (uintptr_t)from, to, sizeof(to)), 0);
	assert_memory_equal(from, to, sizeof(from));
	assert_int_equal(target_memory__read(getpid(), 4096, to, sizeof(to)), -EFAULT);
	for (size_t i = 0; i < pieces; i++)
		addresses[i] = i % 1000 == 999 ? 4096 : (uintptr_t)from + i * size;
	target_memory__read_each(getpid(), addresses, pieces, to, size, readable);
	for (size_t i = 0; i < pieces; i++) {
		assert_int_equal(readable[i], i % 1000 != 999);
		if (readable[i])
			assert_memory_equal(from + i * size, to + i * size, size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_returns_its_result),
		cmocka_unit_test(an_errand_can_run_in_the_calling_thread),
		cmocka_unit_test(interrupted_work_is_repeated),
		cmocka_unit_test(only_the_process_that_does_not_answer_is_given_up),
		cmocka_unit_test(hanging_processes_do_not_delay_others),
		cmocka_unit_test(a_process_that_answers_late_is_called_again),
		cmocka_unit_test(an_errand_is_handed_over_once),
		cmocka_unit_test(an_errand_waits_for_a_process_only_once),
		cmocka_unit_test(many_long_waits_together_are_too_long),
		cmocka_unit_test(many_short_waits_together_are_too_long),
		cmocka_unit_test(computing_is_not_waiting),
		cmocka_unit_test(a_relieved_reader_is_replaced),
		cmocka_unit_test(abandoned_readers_end_when_their_calls_return),
		cmocka_unit_test(lent_memory_of_an_abandoned_errand_is_freed),
		cmocka_unit_test(memory_lent_outside_an_errand_stays),
		cmocka_unit_test(a_descriptor_that_comes_too_late_is_closed),
		cmocka_unit_test(processes_that_do_not_exist_are_forgotten),
		cmocka_unit_test(files_of_a_hanging_process_are_closed),
		cmocka_unit_test(memory_of_any_size_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
