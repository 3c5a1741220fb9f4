// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "events/interrupts.h"
#include "naming/counts.h"
#include "naming/symbolizer.h"
#include "profile/profile_events.h"
#include "recording/news.h"
#include "recording/privileges.h"
#include "recording/rate.h"
#include "recording/recording.h"
#include "recording/report.h"
#include "recording/signals.h"
#include "recording/wall_clock.h"
#include "sampling/sampler.h"
#include "system/limits.h"
#include "watch/watch.h"

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

#define PROGRESS_NS (200 * NS_PER_MS)

/* How often to check that code objects are still the same. */
#define CHECK_NS (200 * NS_PER_MS)

/* The profile begins anew when it has this many times the entries that its first window needed, and
 * MIN more.  Each stack in use is then defined once more. */
#define SURPLUS_FACTOR 3
#define SURPLUS_MIN    16384

/* The maximum time of making unwind tables before sampling begins. */
#define READING_NS NS_PER_S

struct recording {
	const struct recording_plan *plan;
	struct sampler_scope scope;		 /* the possible part of the plan */
	const struct recording_windows *windows; /* NULL: none */
	struct ledger cut[EVENTS_MAX];		 /* the totals of all windows so far */
	struct wall_clock clock;		 /* of the current window */
	int64_t cut_ns;				 /* when the current window ends */
	size_t needed;		    /* entries of the profile's first window; 0: not known */
	bool untidy;		    /* the profile begins anew at the next cut */
	double wanted_hz, limit_hz; /* the rate from the next cut on; the kernel's limit */
	bool rate_changed;
	struct profile *profile;
	struct kernel_symbols *kernel;
	struct symbolizer_options naming;
	struct symbolizer *symbolizer;
	struct counts *counts;
	struct sampler *sampler;
	struct unwinder *unwinder;	 /* NULL: there are no native frames */
	struct obstacle native_obstacle; /* why native frames are left out */
	struct watch *watch;
	struct news news;
	int signals; /* signalfd */
	bool interrupted, patient;
	int64_t begin_ns, start_ns, end_ns; /* end: 0 without -d */
	/* When each is next due. */
	int64_t change_ns, progress_ns, check_ns, names_ns, serve_ns, unwind_ns;
};

/* Opens the sampler without native frames, which were not requested, after ERROR.  0 or -errno. */
static int open_without_native(struct recording *recording, const struct sampler_sink *sink,
			       int error)
{
	recording->scope.native = false;
	if (sampler__open(sink, &recording->scope, &recording->sampler))
		return error;
	recording->native_obstacle = privileges__load(error, true);
	return 0;
}

static enum exit_status open_sampler(struct recording *recording)
{
	struct sampler_scope *scope = &recording->scope;
	struct sampler_sink sink = counts__sink(recording->counts);
	int64_t before = now_ns();
	int error;

	sink.note = watch__note;
	sink.map = watch__note_file;
	sink.urges = watch__urges_file;
	sink.watcher = recording->watch;
	error = sampler__open(&sink, scope, &recording->sampler);
	if (error && scope->native && !recording->plan->native)
		error = open_without_native(recording, &sink, error);
	if (error)
		return obstacle__say(privileges__load(error, scope->native));
	recording->news.sampler = recording->sampler;
	recording->naming.map = sampler__targets(recording->sampler);
	log__debug("BPF program loaded in %lld ms", (now_ns() - before) / NS_PER_MS);
	return STATUS_WRITTEN;
}

static void prepare_native(struct recording *recording)
{
	struct unwinder_maps maps = sampler__unwinder_maps(recording->sampler);

	recording->unwinder = unwinder__new(&maps, recording->plan->unwind_memory);
	recording->naming.unwinder = recording->unwinder;
}

/* Reads what frames and tracepoints need of the kernel's symbols.  Call it before privileges are
 * dropped. */
static enum exit_status read_kernel_symbols(struct recording *recording)
{
	struct sampler_scope *scope = &recording->scope;
	bool interrupts = events__may_interrupt(scope->events, scope->event_count);
	struct kernel_symbols *symbols =
		scope->kernel || interrupts ? kernel_symbols__read(KERNEL_SYMBOLS_PATH) : NULL;
	const char *obstacle = interrupts ? interrupts__find(symbols, scope->interrupts) : NULL;

	if (scope->kernel)
		recording->kernel = symbols;
	else
		kernel_symbols__free(symbols);
	scope->kernel = recording->kernel || recording->plan->kernel;
	recording->naming.kernel = recording->kernel;
	return obstacle ? obstacle__say(privileges__interrupts(obstacle)) : STATUS_WRITTEN;
}

/* Call it after everything else has worked: an error is one line. */
static void say_what_is_missing(const struct recording *recording)
{
	const struct recording_plan *plan = recording->plan;
	const struct obstacle *native = &recording->native_obstacle;

	if (native->what)
		log__info("native frames are left out: %s: %s", native->what, native->mend);
	if (recording->kernel || !(plan->kernel || plan->all_kinds))
		return;
	if (plan->kernel)
		log__warning("the kernel hides its symbols: its frames are shown as "
			     "[kernel]; " KERNEL_SYMBOLS_MENDS);
	else
		log__info("the kernel hides its symbols: its frames are left "
			  "out; " KERNEL_SYMBOLS_MENDS);
}

enum exit_status recording__open(const struct recording_plan *plan,
				 const struct recording_windows *windows, struct recording **result)
{
	struct recording *recording = xcalloc(1, sizeof(*recording));
	enum exit_status status;

	*result = recording;
	recording->begin_ns = now_ns();
	recording->plan = plan;
	recording->scope = recording_plan__scope(plan);
	recording->windows = windows;
	recording->profile = profile__new();
	events__name(recording->scope.events, recording->scope.event_count, recording->profile);
	recording->naming = (struct symbolizer_options){
		.lines = plan->lines,
		.threads = plan->threads,
		.plumbing = plan->native_all,
		.early = plan->following != FOLLOW_ALL,
	};
	recording->symbolizer = symbolizer__new(recording->profile, &recording->naming);
	recording->counts = counts__new(recording->profile, recording->symbolizer);
	recording->watch = watch__new(plan->following, &plan->filter, plan->processes_max,
				      recording_plan__needs_gil(plan));
	/* First, so that a signal during loading ends the run like a later one. */
	recording->signals = signals__block(windows && windows->hang_up);
	if (recording->signals < 0)
		status = obstacle__say(privileges__signals(recording->signals));
	else
		status = privileges__check(plan->pids, plan->pid_count,
					   plan->following == FOLLOW_ALL, plan->native);
	if (!status)
		status = read_kernel_symbols(recording);
	if (!status)
		status = limits__raise_files(plan->pid_count);
	if (!status)
		status = watch__open(recording->watch, plan->pids, plan->pid_count);
	if (!status)
		status = open_sampler(recording);
	if (!status && recording->scope.native)
		prepare_native(recording);
	return status;
}

void recording__free(struct recording *recording)
{
	if (!recording)
		return;
	unwinder__stop(recording->unwinder);
	sampler__free(recording->sampler);
	counts__free(recording->counts);
	symbolizer__free(recording->symbolizer);
	unwinder__free(recording->unwinder);
	obstacle__free(&recording->native_obstacle);
	kernel_symbols__free(recording->kernel);
	profile__free(recording->profile);
	watch__free(recording->watch);
	if (recording->signals >= 0)
		close(recording->signals);
	free(recording);
}

const struct profile *recording__profile(const struct recording *recording)
{
	return recording->profile;
}

struct watch *recording__watch(const struct recording *recording)
{
	return recording->watch;
}

static enum exit_status start_events(struct recording *recording)
{
	double rate = rate__choose(recording->plan->rate_hz, &recording->limit_hz);
	const struct sampler_scope *scope = &recording->scope;
	int error;

	recording->wanted_hz = rate;
	profile_events__set_rate(recording->profile, rate);
	error = sampler__start(recording->sampler,
			       (struct event_rate){ rate, recording->limit_hz });
	if (!error)
		return STATUS_WRITTEN;
	return obstacle__say(
		privileges__events(error, events__impossible(scope->events, scope->event_count)));
}

static void note_start(struct recording *recording)
{
	double duration_s = recording->plan->duration_s;

	recording->profile->start_unix_ns = clock_ns(CLOCK_REALTIME);
	recording->start_ns = now_ns();
	wall_clock__begin(&recording->clock, recording->start_ns,
			  recording->profile->start_unix_ns);
	if (recording->windows)
		recording->cut_ns = recording->start_ns + recording->windows->length_ns;
	if (duration_s > 0)
		recording->end_ns = recording->start_ns + (int64_t)(duration_s * NS_PER_S);
	log__debug("sampling %lld ms after start",
		   (recording->start_ns - recording->begin_ns) / NS_PER_MS);
}

/* Whether CAP_BPF can be dropped.  Rows of files that are mapped later need new maps. */
static bool may_go_on(const void *context)
{
	const struct recording *recording = context;

	return !recording->unwinder && sampler__may_use_maps(recording->sampler);
}

static enum exit_status start(struct recording *recording)
{
	char **command = recording->plan->command;
	enum exit_status status;
	int error = watch__begin(recording->watch, recording->sampler, recording->symbolizer,
				 recording->counts, now_ns());
	int64_t until_ns = now_ns() + READING_NS;

	if (error) {
		log__error("the processes cannot be sampled: %s", strerror(-error));
		return STATUS_FAILED;
	}
	/* Makes the rows of named processes before sampling, unless that takes long. */
	while (recording->plan->following != FOLLOW_ALL && now_ns() < until_ns &&
	       unwinder__work(recording->unwinder, now_ns()) <= now_ns())
		;
	status = start_events(recording);
	if (status)
		return status;
	note_start(recording);
	watch__enter_targets(recording->watch);
	if (command)
		status = watch__start_command(recording->watch, command,
					      !recording->plan->any_child, now_ns());
	/* Last, so that the started program keeps the privileges. */
	if (!status)
		privileges__drop(
			events__enter(recording->scope.events, recording->scope.event_count),
			may_go_on, recording);
	return status;
}

/* The next time at which something is due. */
static int64_t next_due(const struct recording *recording)
{
	const int64_t due[] = { news__due(&recording->news),
				/* The clock's ticks are frequent enough for checks, too. */
				recording->change_ns == INT64_MAX ? recording->check_ns
								  : recording->change_ns,
				recording->progress_ns, recording->names_ns,
				watch__due(recording->watch),
				recording->end_ns ? recording->end_ns : INT64_MAX,
				recording->cut_ns, recording->serve_ns, recording->unwind_ns };
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < sizeof(due) / sizeof(due[0]); i++)
		if (due[i] && due[i] < first)
			first = due[i];
	return first;
}

void recording__set_rate(struct recording *recording, double rate_hz, bool at_once)
{
	recording->wanted_hz = rate__choose(rate_hz, &recording->limit_hz);
	if (at_once)
		recording->cut_ns = now_ns();
}

/* A started program gets Ctrl-C as well.  The first one waits until that program ends. */
static void take_signal(struct recording *recording)
{
	pid_t child = watch__child(recording->watch);
	struct signalfd_siginfo info;

	if (read(recording->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP && recording->windows && recording->windows->hang_up) {
		recording->windows->hang_up(recording->windows->context);
		return;
	}
	recording->interrupted = !child || info.ssi_signo != SIGINT || recording->patient;
	if (recording->interrupted)
		return;
	recording->patient = true;
	log__info("waiting for process %d to end; press Ctrl-C again to leave it running", child);
}

/* Waits for a signal, for news, for something to serve, or until something is due. */
static void wait_for_news(struct recording *recording)
{
	struct pollfd fds[2 + NEWS_FDS] = {
		{ .fd = recording->signals, .events = POLLIN },
		{ .fd = recording->windows ? recording->windows->fd : -1, .events = POLLIN },
	};
	int64_t left = next_due(recording) - now_ns();
	struct timespec timeout;

	left = left > 0 ? left : 0;
	timeout.tv_sec = left / NS_PER_S;
	timeout.tv_nsec = left % NS_PER_S;
	news__await(&recording->news, fds + 2);
	if (ppoll(fds, sizeof(fds) / sizeof(fds[0]), &timeout, NULL) <= 0)
		return;
	if (fds[0].revents)
		take_signal(recording);
	if (fds[1].revents)
		recording->serve_ns = 1;
	news__note(&recording->news, fds + 2);
}

static void show_progress(struct recording *recording, int64_t now)
{
	struct ledger ledgers[EVENTS_MAX];

	recording__account(recording, ledgers);
	report__progress((double)(now - recording->start_ns) / NS_PER_S,
			 recording->plan->duration_s, ledgers, recording->profile->event_count);
	recording->progress_ns = now + PROGRESS_NS;
}

/* The window since the last cut: PROFILE has its samples, and LEDGERS the totals of all windows. */
static struct window window_of(const struct recording *recording, const struct profile *profile,
			       const struct ledger *ledgers, int64_t now)
{
	struct window window = { .start_unix_ns = recording->clock.begin_unix_ns,
				 .end_unix_ns = wall_clock__tell(&recording->clock, now),
				 .profile = profile };

	for (uint32_t i = 0; i < profile->event_count; i++) {
		window.ledgers[i] = ledger__since(&ledgers[i], &recording->cut[i]);
		window.ledgers[i].duration_s = (double)(now - recording->clock.begin_ns) / NS_PER_S;
	}
	return window;
}

/* Passes the window that window_of makes to TAKE, and begins the next one. */
static void hand_over(struct recording *recording, const struct profile *profile,
		      const struct ledger *ledgers)
{
	int64_t now = now_ns(), unix_ns = clock_ns(CLOCK_REALTIME);
	struct window window = window_of(recording, profile, ledgers, now);

	recording->windows->take(recording->windows->context, &window);
	memcpy(recording->cut, ledgers, sizeof(recording->cut));
	wall_clock__say_set(wall_clock__cut(&recording->clock, now, unix_ns));
}

int64_t recording__ahead_ns(const struct recording *recording)
{
	return recording->clock.ahead_ns;
}

/* NOW plus WAIT_NS; INT64_MAX if that is INT64_MAX, which means never. */
static int64_t after(int64_t now, int64_t wait_ns)
{
	return wait_ns == INT64_MAX ? INT64_MAX : now + wait_ns;
}

/* Sets the wanted rate just before a cut.  The samples until the cut are the last window's. */
static void change_rate(struct recording *recording, int64_t now)
{
	if (recording->wanted_hz == recording->profile->rate_hz)
		return;
	recording->change_ns =
		after(now, sampler__set_rate(recording->sampler,
					     (struct event_rate){ recording->wanted_hz,
								  recording->limit_hz }));
	recording->rate_changed = true;
}

/* Completes LEDGER, which has the profile's outcomes of EVENT. */
static void account(const struct recording *recording, uint32_t event, struct ledger *ledger)
{
	sampler__account(recording->sampler, event, ledger);
	if (!event) {
		symbolizer__account(recording->symbolizer, ledger);
		watch__account(recording->watch, ledger);
	}
	counts__account(recording->counts, event, ledger);
}

/* Samples that are not drained yet are left out, together with their events. */
void recording__account(const struct recording *recording, struct ledger *ledgers)
{
	memcpy(ledgers, recording->profile->ledgers, sizeof(recording->profile->ledgers));
	for (uint32_t i = 0; i < recording->profile->event_count; i++) {
		account(recording, i, &ledgers[i]);
		ledgers[i].events = ledger__events(&ledgers[i]);
	}
}

void recording__look(struct recording *recording, struct window *window)
{
	struct ledger ledgers[EVENTS_MAX];

	sampler__count_waits(recording->sampler);
	counts__settle(recording->counts, recording->sampler);
	symbolizer__read_names(recording->symbolizer, now_ns());
	recording__account(recording, ledgers);
	*window = window_of(recording, recording->profile, ledgers, now_ns());
}

/* Begins the profile anew if it holds much from the past.  Returns the retired one, or NULL. */
static const struct profile *leave_behind(struct recording *recording)
{
	size_t entries = profile__entries(recording->profile);
	const struct profile *retired;

	if (!recording->needed)
		recording->needed = entries;
	if (!recording->untidy && entries <= SURPLUS_FACTOR * recording->needed + SURPLUS_MIN)
		return NULL;
	retired = counts__begin_anew(recording->counts, recording->sampler);
	if (!retired)
		return NULL;
	log__debug("the profile begins anew, after %zu entries", entries);
	recording->needed = 0;
	recording->untidy = false;
	return retired;
}

void recording__tidy(struct recording *recording)
{
	recording->untidy = true;
}

/* Ends a window.  Call it after counts__settle. */
static void cut(struct recording *recording, int64_t now)
{
	struct profile *profile = recording->profile;
	const struct profile *retired = leave_behind(recording);
	struct ledger ledgers[EVENTS_MAX];

	recording__account(recording, ledgers);
	hand_over(recording, retired ?: profile, ledgers);
	if (!retired)
		profile__clear_samples(profile);
	profile_events__set_rate(profile, recording->wanted_hz);
	while (recording->cut_ns <= now)
		recording->cut_ns += recording->windows->length_ns;
}

static void serve(struct recording *recording)
{
	int64_t wait_ns = recording->windows->serve(recording->windows->context);

	recording->serve_ns = wait_ns == INT64_MAX ? 0 : now_ns() + wait_ns;
}

static void work(struct recording *recording)
{
	int64_t now = now_ns();
	bool cutting = recording->cut_ns && now >= recording->cut_ns;

	if (news__take(&recording->news, now))
		recording->names_ns = now;
	if (now >= recording->change_ns)
		recording->change_ns = after(now, sampler__tick(recording->sampler));
	if (recording->progress_ns && now >= recording->progress_ns)
		show_progress(recording, now);
	if (cutting) {
		change_rate(recording, now);
		sampler__count_waits(recording->sampler);
	}
	if (now >= recording->check_ns || cutting) {
		recording->check_ns = now + CHECK_NS;
		counts__settle(recording->counts, recording->sampler);
		recording->names_ns = now;
	}
	if (cutting)
		cut(recording, now);
	if (recording->names_ns <= now)
		recording->names_ns = symbolizer__read_names(recording->symbolizer, now);
	watch__look(recording->watch, now);
	recording->unwind_ns = unwinder__work(recording->unwinder, now_ns());
	if (recording->serve_ns && now >= recording->serve_ns)
		serve(recording);
}

static bool is_over(const struct recording *recording)
{
	return recording->interrupted || watch__is_over(recording->watch) ||
	       (recording->end_ns && now_ns() >= recording->end_ns);
}

/* Completes and checks the ledger of EVENT, once all its samples are in the profile. */
static void settle(struct recording *recording, uint32_t event)
{
	struct ledger *ledger = &recording->profile->ledgers[event];

	account(recording, event, ledger);
	if (!ledger__adds_up(ledger) ||
	    !counts__agree(recording->counts, event, recording->sampler))
		log__warning("internal error: sample counts do not add up; please report this");
}

/* Stops sampling and brings everything into the profile. */
static void finish(struct recording *recording)
{
	struct profile *profile = recording->profile;
	struct ledger *ledger = profile->ledgers;
	double cpu_s = watch__cpu_seconds(recording->watch);
	pid_t child = watch__child(recording->watch);

	sampler__stop(recording->sampler);
	profile->duration_ns = now_ns() - recording->start_ns;
	counts__settle_all(recording->counts, recording->sampler);
	watch__end(recording->watch);
	symbolizer__read_names(recording->symbolizer, THREAD_NAMES_ALL);
	profile__merge_functions(profile);
	profile__tell_files_apart(profile);
	for (uint32_t i = 0; i < profile->event_count; i++)
		settle(recording, i);
	ledger->duration_s = (double)profile->duration_ns / NS_PER_S;
	ledger->stacks = profile->stack_count;
	if (!recording->rate_changed && !profile->events[0].period)
		rate__judge(ledger, cpu_s);
	if (recording->windows)
		hand_over(recording, profile, ledger);
	if (child)
		log__info("process %d keeps running", child);
	/* Frees descriptors that the outputs may need, and the kernel's memory. */
	unwinder__stop(recording->unwinder);
	sampler__free(recording->sampler);
	recording->sampler = NULL;
}

enum exit_status recording__run(struct recording *recording)
{
	enum exit_status status = start(recording);

	if (status)
		return status;
	say_what_is_missing(recording);
	if (!recording->windows && report__shows_progress())
		recording->progress_ns = now_ns() + PROGRESS_NS;
	recording->check_ns = now_ns() + CHECK_NS;
	recording->change_ns = after(now_ns(), sampler__tick(recording->sampler));
	while (!is_over(recording)) {
		wait_for_news(recording);
		work(recording);
	}
	log__progress("");
	finish(recording);
	return profile_events__lack_samples(recording->profile)
		       ? watch__explain_empty(recording->watch, recording->profile->ledgers)
		       : STATUS_WRITTEN;
}
