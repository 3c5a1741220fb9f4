// SPDX-License-Identifier: BSD-2-Clause
/*
 * A read of a target's memory waits for missing pages.  If userfaultfd(2) or a FUSE server provides
 * a page, the target can withhold it for ever.  The network file system of an honest target can
 * hang as well.  The same is true of each call for one of its files.  Such a wait ends only with
 * the thread.
 *
 * So another thread, the reader, makes these calls, in memory of its own (the desk).  Its caller
 * waits only for a moment, because other work waits for the caller.  A reader that does not come
 * back in time is abandoned with its memory, and the next call starts a new one.  The process that
 * blocks it is not read again until the abandoned reader comes back.  So there are never more
 * readers than processes.  A late result is not used: the abandoned reader ends, is freed when
 * another one is abandoned, and the process is read again.  If it stays away for long, the process
 * is given up.
 *
 * Only the time counts in which the reader sleeps, not the time in which it, or the whole program,
 * was stopped or had no CPU.  All waits for one process add up; otherwise it could delay each of
 * its pages just short of the limit.  The caller looks at the reader now and then, so it notices
 * only long sleeps.  The reader itself counts shorter ones, if it gave up its CPU meanwhile.
 *
 * While the reader works, only the reader changes the account of the process.  The caller just
 * notes in which phase it saw the reader asleep.  Only when the reader is abandoned, and will not
 * get to it, does the caller change the account.
 *
 * Handing work over takes 7 us, and more if no CPU is idle.  So code that reads many times is
 * handed over as a whole, an errand.  It uses everything that its caller does, as the caller waits.
 * It can be abandoned only while it waits for a target, and then it never continues: the one that
 * sets the phase first, the reader that returns or the caller that gives up, wins.  So before it
 * waits, it has to lend the memory that only it knows.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hash_table.h"
#include "base/log.h"
#include "base/now.h"
#include "base/small_file.h"
#include "base/xalloc.h"
#include "reading/reader.h"
#include "system/limits.h"

#define NS_PER_S 1000000000LL
#define SLICE_NS (NS_PER_S / 50)

/* How many slices one call may sleep while its caller waits. */
#define SLICES_A_WORK 2

/* A process that does not answer for this time is given up.  On a machine that is short of memory,
 * a busy disk delays a page for a second. */
#define SILENCE_NS (3 * NS_PER_S)

/* A shorter call may end before it was seen asleep, as the first look at a call tells nothing. */
#define LONG_NS (SLICES_A_WORK * SLICE_NS)

/* Shorter calls do not count: a disk or a lock takes as long. */
#define SHORT_NS (NS_PER_S / 1000)

/* The time for which all calls for a process may sleep together.  It is regained in PATIENCE_PART
 * times as long. */
#define PATIENCE_NS   (12 * NS_PER_S)
#define PATIENCE_PART 10

/* A call is repeated after a signal this number of times.  A FUSE server can interrupt each. */
#define INTERRUPTIONS_MAX 100

/* From this number on, accounts that are full, or of processes that have ended, are freed. */
#define PATIENCES_MIN 1024

/* A reader's phase is odd while it makes a call that a target can block. */
#define LEFT UINT64_MAX

struct patience {
	pid_t pid;		/* key */
	int64_t rest_ns;	/* 0: given up */
	int64_t since_ns;	/* when something was added last */
	struct reader *awaited; /* the reader that was abandoned for it; NULL: it answers */
	int64_t left_ns;	/* when that was */
	uint64_t missed;	/* calls that were abandoned or refused */
	UT_hash_handle hh;
};

struct reader {
	pthread_t thread;
	bool started;
	pid_t tid;
	sem_t asked, done;
	_Atomic uint64_t phase;
	_Atomic uint64_t asleep;   /* the phase in which it was seen asleep */
	struct patience *patience; /* of its call; abandoned: of the process that waits for it */
	int64_t (*work)(void *desk);
	int64_t result;
	void (*errand)(void *context); /* runs instead of WORK; neither: end */
	void *context;
	void **lent; /* by the errand, the latest last */
	size_t lent_count, lent_capacity;
	int held;	     /* a descriptor that is its result; -1: none */
	struct reader *next; /* in the list of abandoned readers */
	jmp_buf end;	     /* where an abandoned reader continues when its call returns */
	_Atomic bool gone;   /* it has ended, and touches nothing here any more */
	alignas(max_align_t) uint8_t desk[READER_DESK_BYTES];
};

static struct reader *reader, *left_behind;
static struct patience *patiences;
static unsigned int patiences_max = PATIENCES_MIN;

/* In a reader's thread, itself. */
static _Thread_local struct reader *own;

static struct patience *find_patience(pid_t pid)
{
	return HASH_GET(hh, patiences, &pid);
}

static struct patience *patience_with(pid_t pid)
{
	struct patience *patience = find_patience(pid);

	if (patience)
		return patience;
	patience = xcalloc(1, sizeof(*patience));
	patience->pid = pid;
	patience->rest_ns = PATIENCE_NS;
	HASH_ADD(hh, patiences, pid, sizeof(patience->pid), patience);
	return patience;
}

/* Adds what was regained since.  A process that was given up stays so. */
static void renew(struct patience *patience)
{
	int64_t now, gained;

	if (!patience->rest_ns || patience->rest_ns == PATIENCE_NS)
		return;
	now = now_ns();
	gained = (now - patience->since_ns) / PATIENCE_PART;
	patience->since_ns = now;
	patience->rest_ns =
		gained < PATIENCE_NS - patience->rest_ns ? patience->rest_ns + gained : PATIENCE_NS;
}

static bool has_ended(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return access(path, F_OK) && errno == ENOENT;
}

/* The abandoned reader no longer blocks the process. */
static void stop_awaiting(struct patience *patience)
{
	if (patience->awaited)
		patience->awaited->patience = NULL;
	patience->awaited = NULL;
}

static void forget(struct patience *patience)
{
	stop_awaiting(patience);
	HASH_DEL(patiences, patience);
	free(patience);
}

/* Frees accounts that are full, and those of processes that have ended.  Some were read after
 * their end was known.  No reader may be at work for them. */
static void forget_the_patient(void)
{
	struct patience *patience, *next;

	if (HASH_COUNT(patiences) < patiences_max)
		return;
	HASH_ITER (hh, patiences, patience, next) {
		renew(patience);
		if ((patience->rest_ns == PATIENCE_NS && !patience->awaited) ||
		    has_ended(patience->pid))
			forget(patience);
	}
	patiences_max = PATIENCES_MIN + 2 * HASH_COUNT(patiences);
}

static void give_up(struct patience *patience)
{
	stop_awaiting(patience);
	patience->rest_ns = 0;
	log__warning("stopped reading process %d: its memory or one of its files does not respond "
		     "(userfaultfd, FUSE, a network file system); some names will be missing",
		     patience->pid);
}

/* Takes time from the account. */
static void spend(struct patience *patience, int64_t waited_ns)
{
	renew(patience);
	if (patience->rest_ns == PATIENCE_NS)
		patience->since_ns = now_ns();
	if (waited_ns < patience->rest_ns)
		patience->rest_ns -= waited_ns;
	else if (patience->rest_ns)
		give_up(patience);
}

/* How often this thread gave up its CPU by itself. */
static long times_asleep(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nvcsw;
}

/* The call of phase AT_WORK has returned.  It began at SINCE, when this thread had slept BEFORE
 * times. */
static void account_for(struct patience *patience, uint64_t at_work, int64_t since, long before)
{
	int64_t took = now_ns() - since;

	if (took >= LONG_NS && own->asleep == at_work)
		spend(patience, LONG_NS);
	else if (took >= SHORT_NS && took < LONG_NS && times_asleep() > before)
		spend(patience, took);
}

/* Runs WORK on PATIENCE's account.  Does not return if the reader was abandoned meanwhile. */
static int64_t do_work(struct patience *patience, int64_t (*work)(void *desk))
{
	uint64_t at_work = own->phase + 1, phase = at_work;
	int64_t since = now_ns(), result = -EINTR;
	long before = times_asleep();

	own->patience = patience;
	own->held = -1;
	own->phase = at_work;
	for (int i = 0; i < INTERRUPTIONS_MAX && result == -EINTR; i++)
		result = work(own->desk);
	/* pthread_exit() needs a library that small systems lack. */
	if (!atomic_compare_exchange_strong(&own->phase, &phase, at_work + 1))
		longjmp(own->end, 1);
	account_for(patience, at_work, since, before);
	return result;
}

static void *serve(void *context)
{
	own = context;
	own->tid = gettid();
	if (setjmp(own->end)) {
		if (own->held >= 0)
			close(own->held);
		own->gone = true;
		return NULL;
	}
	for (;;) {
		while (sem_wait(&own->asked))
			;
		if (own->work)
			own->result = do_work(own->patience, own->work);
		else if (own->errand)
			own->errand(own->context);
		else
			return NULL;
		sem_post(&own->done);
	}
}

/* The reader must take no signals: the program reads them itself. */
int reader__begin(void)
{
	sigset_t all, before;
	int error;

	reader__desk();
	if (reader->started)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&reader->thread, NULL, serve, reader);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	reader->started = !error;
	return -error;
}

/* Other processes may have used up the limit on threads meanwhile. */
static bool start(void)
{
	static bool warned;
	int error = reader__begin();

	if (error && !warned)
		log__warning("cannot read processes until a thread can be started for it (%s): %s",
			     strerror(-error), limits__mend_start(error));
	warned |= error != 0;
	return !error;
}

/* Whether WHO sleeps.  At work, it then waits for something outside this program. */
static bool is_asleep(const struct reader *who)
{
	char path[64], line[256];
	const char *rest;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", who->tid);
	small_file__read(path, line, sizeof(line));
	/* The name stands in parentheses and may contain any character. */
	rest = strrchr(line, ')');
	return !rest || strncmp(rest, ") S", 3) == 0 || strncmp(rest, ") D", 3) == 0;
}

static void free_reader(struct reader *gone)
{
	sem_destroy(&gone->asked);
	sem_destroy(&gone->done);
	free(gone->lent);
	free(gone);
}

/* Frees abandoned readers that have ended. */
static void free_the_gone(void)
{
	for (struct reader **at = &left_behind, *gone; (gone = *at);) {
		if (!gone->gone) {
			at = &gone->next;
			continue;
		}
		*at = gone->next;
		if (gone->patience)
			stop_awaiting(gone->patience);
		free_reader(gone);
	}
}

/* Abandons the reader.  When its call returns after all, it ends. */
static bool leave(uint64_t at_work, int64_t now)
{
	struct patience *patience;

	if (!atomic_compare_exchange_strong(&reader->phase, &at_work, LEFT))
		return false;
	free_the_gone();
	patience = reader->patience;
	patience->awaited = reader;
	patience->left_ns = now;
	patience->missed++;
	spend(patience, LONG_NS);
	pthread_detach(reader->thread);
	while (reader->lent_count)
		free(reader->lent[--reader->lent_count]);
	reader->next = left_behind;
	left_behind = reader;
	reader = NULL;
	return true;
}

/* Returns whether all is done; false if it took too long, and the reader was abandoned. */
static bool wait_for_it(void)
{
	uint64_t before = 0;

	for (int slices = 0;;) {
		int64_t now = now_ns(), until = now + SLICE_NS;
		struct timespec end = { until / NS_PER_S, until % NS_PER_S };
		uint64_t phase;
		bool same;

		if (!sem_clockwait(&reader->done, CLOCK_MONOTONIC, &end))
			return true;
		phase = reader->phase;
		same = phase == before;
		before = phase;
		slices = same ? slices : 0;
		/* Only a call that lasts since the last slice counts. */
		if (errno != ETIMEDOUT || !same || phase % 2 == 0 || !is_asleep(reader))
			continue;
		reader->asleep = phase;
		if (++slices >= SLICES_A_WORK && leave(phase, now))
			return false;
	}
}

/* Whether the process may be read. */
static bool is_answered(struct patience *patience)
{
	struct reader *awaited = patience->awaited;

	renew(patience);
	if (awaited && awaited->gone)
		stop_awaiting(patience);
	else if (awaited && now_ns() - patience->left_ns >= SILENCE_NS && is_asleep(awaited) &&
		 !awaited->gone)
		give_up(patience);
	return patience->rest_ns && !patience->awaited;
}

void *reader__desk(void)
{
	if (own)
		return own->desk;
	if (!reader) {
		reader = xcalloc(1, sizeof(*reader));
		sem_init(&reader->asked, 0, 0);
		sem_init(&reader->done, 0, 0);
	}
	return reader->desk;
}

int64_t reader__run(pid_t pid, int64_t (*work)(void *desk))
{
	struct patience *patience;

	if (!own)
		forget_the_patient();
	patience = patience_with(pid);
	if (!is_answered(patience)) {
		patience->missed++;
		return -ETIMEDOUT;
	}
	if (own)
		return do_work(patience, work);
	if (!start())
		return -ENOMEM;
	reader->patience = patience;
	reader->work = work;
	sem_post(&reader->asked);
	return wait_for_it() ? reader->result : -ETIMEDOUT;
}

void reader__send(void (*errand)(void *context), void *context)
{
	/* The process for which a reader was abandoned is not waited for again. */
	do {
		if (own || !start()) {
			errand(context);
			return;
		}
		reader->work = NULL;
		reader->errand = errand;
		reader->context = context;
		sem_post(&reader->asked);
	} while (!wait_for_it());
}

void reader__do_alone(void (*errand)(void *context), void *context)
{
	reader__desk();
	own = reader;
	errand(context);
	own = NULL;
}

void *reader__lend(void *memory)
{
	if (!own || !memory)
		return memory;
	own->lent = xgrow(own->lent, &own->lent_capacity, own->lent_count + 1, sizeof(*own->lent));
	own->lent[own->lent_count++] = memory;
	return memory;
}

void *reader__take_back(void *memory)
{
	size_t i = own && memory ? own->lent_count : 0;

	while (i && own->lent[i - 1] != memory)
		i--;
	if (i)
		own->lent[i - 1] = own->lent[--own->lent_count];
	return memory;
}

void reader__hold(int fd)
{
	own->held = fd;
}

bool reader__has_given_up(pid_t pid)
{
	const struct patience *patience = find_patience(pid);

	return patience && !patience->rest_ns;
}

bool reader__answers(pid_t pid)
{
	struct patience *patience = find_patience(pid);

	return !patience || is_answered(patience);
}

uint64_t reader__missed(pid_t pid)
{
	const struct patience *patience = find_patience(pid);

	return patience ? patience->missed : 0;
}

void reader__wait(pid_t pid)
{
	struct patience *patience = find_patience(pid);

	while (patience && !is_answered(patience) && patience->rest_ns) {
		usleep(SLICE_NS / 1000);
		spend(patience, SLICE_NS);
	}
}

void reader__give_up(void)
{
	for (struct patience *patience = patiences; patience; patience = patience->hh.next)
		if (!is_answered(patience) && patience->rest_ns)
			give_up(patience);
}

void reader__forget(pid_t pid)
{
	struct patience *patience = find_patience(pid);

	if (patience)
		forget(patience);
}

void reader__relieve(void)
{
	if (!reader)
		return;
	if (reader->started) {
		reader->work = NULL;
		reader->errand = NULL;
		sem_post(&reader->asked);
		pthread_join(reader->thread, NULL);
	}
	free_reader(reader);
	reader = NULL;
}
