// SPDX-License-Identifier: BSD-2-Clause
/*
 * A read of a target's memory brings in the page that it finds missing, and waits
 * for it.  Where that is to come from userfaultfd(2), or from a FUSE server, the
 * target can see to it that it never comes; and an honest one's network file system
 * may hang.  So may any call for one of its files.  Such a wait ends with the
 * thread alone.
 *
 * So another thread does all that, in memory of its own, while its caller waits for
 * a moment, for others wait for that one.  A deputy that does not come back by then is left where
 * it is, with its memory, and the next begins with new; the process that it was left for is not
 * asked again until that one has come back.  So there are never more of them than processes to
 * read.  What comes too late is not used: the deputy ends itself, is freed when another one is
 * left, and the process is asked once more.  Where it stays away for long, that is given up.
 *
 * What counts is the time for which the thread is asleep: not that in which
 * it, or all of this program, was stopped or had no CPU.  And all of a process's waits count
 * together, else it could have us wait for each of its pages just not too long.  Who waits
 * sees that only of what takes long, for it looks but once in a while; what comes back sooner is
 * counted by the deputy itself, if it gave up its CPU meanwhile.
 *
 * It is the deputy that keeps the account as long as it is at work: who waits but tells of which
 * piece of work it has seen that it sleeps.  Only where the deputy was left behind, and so never
 * gets to it any more, the other one does.
 *
 * Handing over costs 7 us a time, and more where no CPU is idle.  So what reads many times
 * is handed over as a whole, and uses everything that its caller does, for that waits.
 * Only while it waits for a target may it be left behind, and then it never gets beyond
 * that: who sets the phase first, the one that comes back or the one that gives up, has it.
 * So it says what memory nobody else knows of by then.
 */
#include <errno.h>
#include <fcntl.h>
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
#include "base/xalloc.h"
#include "reading/deputy.h"
#include "system/mends.h"

#define NS_PER_S 1000000000LL
#define SLICE_NS (NS_PER_S / 50)

/* How many slices of time one piece of work may sleep while others wait. */
#define SLICES_A_WORK 2

/* After so long a process that does not answer is given up: a disk that is busy with a machine that
 * has too little memory keeps a page waiting for a second. */
#define SILENCE_NS (3 * NS_PER_S)

/* What takes less may end before it was seen asleep, for of each the first look tells nothing. */
#define LONG_NS (SLICES_A_WORK * SLICE_NS)

/* What takes less is not counted: so long one has to wait for a disk, too, or for a lock. */
#define SHORT_NS (NS_PER_S / 1000)

/* How long all of a process's work may sleep, beyond one part of so many of the time. */
#define PATIENCE_NS   (12 * NS_PER_S)
#define PATIENCE_PART 10

/* So often is one made again that a signal ended, as a FUSE server may say of each. */
#define INTERRUPTIONS_MAX 100

/* Of so many processes it is noted at first what is left of their patience, before those of whom
 * nothing needs to be are looked for. */
#define PATIENCES_MIN 1024

/* A deputy's phase: odd while it is at one piece of work, which a target may make take for ever. */
#define LEFT UINT64_MAX

struct patience {
	pid_t pid;		/* key */
	int64_t rest_ns;	/* 0: it was given up */
	int64_t since_ns;	/* when something was added last */
	struct deputy *awaited; /* that was left for it, and has not come back; NULL: it answers */
	int64_t left_ns;	/* when that was */
	uint64_t missed;	/* pieces of work that were left, or not begun */
	UT_hash_handle hh;
};

struct deputy {
	pthread_t thread;
	bool started;
	pid_t tid;
	sem_t asked, done;
	_Atomic uint64_t phase;
	_Atomic uint64_t asleep;   /* the phase in which it was seen to be */
	struct patience *patience; /* on whose account it is at work; left: of who awaits it */
	int64_t (*work)(void *desk);
	int64_t result;
	void (*errand)(void *context); /* in place of one piece of work; neither: it is to end */
	void *context;
	void **lent; /* by the errand, the last one last */
	size_t lent_count, lent_capacity;
	int held;	     /* a descriptor that is what came of its work; -1: none */
	struct deputy *next; /* of those left behind */
	jmp_buf end;	     /* where one that was goes when it comes back after all */
	_Atomic bool gone;   /* it has, and touches nothing here any more */
	alignas(max_align_t) uint8_t desk[DEPUTY_DESK_BYTES];
};

static struct deputy *deputy, *left_behind;
static struct patience *patiences;
static unsigned int patiences_max = PATIENCES_MIN;

/* In a deputy's thread, itself. */
static _Thread_local struct deputy *own;

static struct patience *find_patience(pid_t pid)
{
	struct patience *patience;

	HASH_FIND(hh, patiences, &pid, sizeof(pid), patience);
	return patience;
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

/* Adds what it has become in the time; once lost, it is for good. */
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

/* It is not waited for any more whether that one comes back which was left for it. */
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

/* Forgets those who have all of it, and those who are no more: some were asked for when their end
 * had been told already.  For whom no deputy is at work. */
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

/* For so long it was waited for. */
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

/* How often this thread gave up its CPU, and did not have it taken. */
static long times_asleep(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nvcsw;
}

/* The work of phase AT_WORK has come back, which began at SINCE, when this thread had slept BEFORE
 * times. */
static void account_for(struct patience *patience, uint64_t at_work, int64_t since, long before)
{
	int64_t took = now_ns() - since;

	if (took >= LONG_NS && own->asleep == at_work)
		spend(patience, LONG_NS);
	else if (took >= SHORT_NS && took < LONG_NS && times_asleep() > before)
		spend(patience, took);
}

/* Does WORK on PATIENCE's account; does not return where the deputy was left behind meanwhile. */
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
	/* Not by pthread_exit(), which wants a library that a small system does not have. */
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

/* No signal is to be its own: the caller reads them as they come. */
int deputy__begin(void)
{
	sigset_t all, before;
	int error;

	deputy__desk();
	if (deputy->started)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&deputy->thread, NULL, serve, deputy);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	deputy->started = !error;
	return -error;
}

/* Others may have taken the last place since privileges were given up. */
static bool start(void)
{
	static bool warned;
	int error = deputy__begin();

	if (error && !warned)
		log__warning("cannot read processes until a thread can be started for it (%s): %s",
			     strerror(-error), mends__start(error));
	warned |= error != 0;
	return !error;
}

/* Whether WHO waits for something, which at work is not us. */
static bool is_asleep(const struct deputy *who)
{
	char path[64], line[256];
	const char *rest;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", who->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	length = read(fd, line, sizeof(line) - 1);
	close(fd);
	line[length > 0 ? length : 0] = '\0';
	/* The name stands in parentheses and may hold any character. */
	rest = strrchr(line, ')');
	return !rest || strncmp(rest, ") S", 3) == 0 || strncmp(rest, ") D", 3) == 0;
}

static void free_deputy(struct deputy *gone)
{
	sem_destroy(&gone->asked);
	sem_destroy(&gone->done);
	free(gone->lent);
	free(gone);
}

/* Frees those left behind that have come back. */
static void free_the_gone(void)
{
	for (struct deputy **at = &left_behind, *gone; (gone = *at);) {
		if (!gone->gone) {
			at = &gone->next;
			continue;
		}
		*at = gone->next;
		if (gone->patience)
			stop_awaiting(gone->patience);
		free_deputy(gone);
	}
}

/* It never gets beyond what it waits for, should that come after all, but ends. */
static bool leave(uint64_t at_work, int64_t now)
{
	struct patience *patience;

	if (!atomic_compare_exchange_strong(&deputy->phase, &at_work, LEFT))
		return false;
	free_the_gone();
	patience = deputy->patience;
	patience->awaited = deputy;
	patience->left_ns = now;
	patience->missed++;
	spend(patience, LONG_NS);
	pthread_detach(deputy->thread);
	while (deputy->lent_count)
		free(deputy->lent[--deputy->lent_count]);
	deputy->next = left_behind;
	left_behind = deputy;
	deputy = NULL;
	return true;
}

/* Waits until all is done; false where it waited for too long, and the deputy was left. */
static bool wait_for_it(void)
{
	uint64_t before = 0;

	for (int slices = 0;;) {
		int64_t now = now_ns(), until = now + SLICE_NS;
		struct timespec end = { until / NS_PER_S, until % NS_PER_S };
		uint64_t phase;
		bool same;

		if (!sem_clockwait(&deputy->done, CLOCK_MONOTONIC, &end))
			return true;
		phase = deputy->phase;
		same = phase == before;
		before = phase;
		slices = same ? slices : 0;
		/* Of one that has lasted for a slice: each may have to wait for a moment. */
		if (errno != ETIMEDOUT || !same || phase % 2 == 0 || !is_asleep(deputy))
			continue;
		deputy->asleep = phase;
		if (++slices >= SLICES_A_WORK && leave(phase, now))
			return false;
	}
}

/* Whether something may be done on PATIENCE's account. */
static bool is_answered(struct patience *patience)
{
	struct deputy *awaited = patience->awaited;

	renew(patience);
	if (awaited && awaited->gone)
		stop_awaiting(patience);
	else if (awaited && now_ns() - patience->left_ns >= SILENCE_NS && is_asleep(awaited) &&
		 !awaited->gone)
		give_up(patience);
	return patience->rest_ns && !patience->awaited;
}

void *deputy__desk(void)
{
	if (own)
		return own->desk;
	if (!deputy) {
		deputy = xcalloc(1, sizeof(*deputy));
		sem_init(&deputy->asked, 0, 0);
		sem_init(&deputy->done, 0, 0);
	}
	return deputy->desk;
}

int64_t deputy__run(pid_t pid, int64_t (*work)(void *desk))
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
	deputy->patience = patience;
	deputy->work = work;
	sem_post(&deputy->asked);
	return wait_for_it() ? deputy->result : -ETIMEDOUT;
}

void deputy__send(void (*errand)(void *context), void *context)
{
	/* Who was left is not waited for again. */
	do {
		if (own || !start()) {
			errand(context);
			return;
		}
		deputy->work = NULL;
		deputy->errand = errand;
		deputy->context = context;
		sem_post(&deputy->asked);
	} while (!wait_for_it());
}

void deputy__do_alone(void (*errand)(void *context), void *context)
{
	deputy__desk();
	own = deputy;
	errand(context);
	own = NULL;
}

void *deputy__lend(void *memory)
{
	if (!own || !memory)
		return memory;
	own->lent = xgrow(own->lent, &own->lent_capacity, own->lent_count + 1, sizeof(*own->lent));
	own->lent[own->lent_count++] = memory;
	return memory;
}

void *deputy__take_back(void *memory)
{
	size_t i = own && memory ? own->lent_count : 0;

	while (i && own->lent[i - 1] != memory)
		i--;
	if (i)
		own->lent[i - 1] = own->lent[--own->lent_count];
	return memory;
}

void deputy__hold(int fd)
{
	own->held = fd;
}

bool deputy__has_given_up(pid_t pid)
{
	const struct patience *patience = find_patience(pid);

	return patience && !patience->rest_ns;
}

bool deputy__answers(pid_t pid)
{
	struct patience *patience = find_patience(pid);

	return !patience || is_answered(patience);
}

uint64_t deputy__missed(pid_t pid)
{
	const struct patience *patience = find_patience(pid);

	return patience ? patience->missed : 0;
}

void deputy__wait(pid_t pid)
{
	struct patience *patience = find_patience(pid);

	while (patience && !is_answered(patience) && patience->rest_ns) {
		usleep(SLICE_NS / 1000);
		spend(patience, SLICE_NS);
	}
}

void deputy__give_up(void)
{
	for (struct patience *patience = patiences; patience; patience = patience->hh.next)
		if (!is_answered(patience) && patience->rest_ns)
			give_up(patience);
}

void deputy__forget(pid_t pid)
{
	struct patience *patience = find_patience(pid);

	if (patience)
		forget(patience);
}

void deputy__relieve(void)
{
	if (!deputy)
		return;
	if (deputy->started) {
		deputy->work = NULL;
		deputy->errand = NULL;
		sem_post(&deputy->asked);
		pthread_join(deputy->thread, NULL);
	}
	free_deputy(deputy);
	deputy = NULL;
}
