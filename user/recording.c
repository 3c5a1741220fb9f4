// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "log.h"
#include "privileges.h"
#include "recording.h"
#include "report.h"
#include "sampler.h"
#include "symbolizer.h"
#include "targets.h"
#include "xalloc.h"

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

/* New stacks are defined at once after a quiet time, then at most so often: the first of a process
 * that will soon end are named in time, and a storm of them costs little. */
#define DRAIN_PAUSE_NS (10 * NS_PER_MS)

#define PROGRESS_NS (200 * NS_PER_MS)

/* How often a started program is asked whether it is a Python by now: seldomer and seldomer while
 * it stays the same. */
#define LOOK_NS	    NS_PER_MS
#define LOOK_NS_MAX (50 * NS_PER_MS)
#define PATIENCE_NS (10 * NS_PER_S)

/* How often it is asked whether what was learnt still holds: that a code object is the one it was,
 * and a process the program it was.  The latter costs more and is asked only upon errors. */
#define CHECK_NS     (200 * NS_PER_MS)
#define RENEW_NS     (100 * NS_PER_MS)
#define RENEW_NS_MAX (10 * NS_PER_S)

/* Below this many samples, how many came says little. */
#define SAMPLES_TO_JUDGE 200

/* No thread state of the sample's process can be named: never happens, and never a guess. */
#define NO_NAME UINT64_MAX

struct recording {
	const struct options *options;
	struct profile *profile;
	struct symbolizer *symbolizer;
	struct sampler *sampler;
	struct target_process *targets;
	size_t target_count, living;
	pid_t child; /* of -- COMMAND; 0: none, or it has ended */
	pid_t first_pid;
	uint64_t look_signature;
	int64_t look_wait_ns;
	bool unsupported; /* the child runs a Python that is not */
	int signals;	  /* signalfd */
	bool interrupted, warned, patient;
	int64_t begin_ns, start_ns, end_ns; /* end: 0 without -d */
	int64_t first_sample_ns;
	/* When each is next due. */
	int64_t drain_ns, change_ns, progress_ns, look_ns, check_ns, renew_ns;
	int64_t renew_wait_ns;
	uint64_t lost_targets; /* samples whose process's Python was not where it was */
	double cpu_before_s;
	uint64_t unnamed_samples;
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static uint64_t define_stack(void *context, const struct definition *definition)
{
	struct recording *recording = context;
	uint32_t thread, stack;

	if (!symbolizer__define(recording->symbolizer, definition, &thread, &stack))
		return NO_NAME;
	return (uint64_t)thread << 32 | stack;
}

static void count_stack(void *context, uint64_t name, uint64_t samples, enum outcome outcome)
{
	struct recording *recording = context;

	if (name == NO_NAME) {
		recording->unnamed_samples += samples;
		return;
	}
	recording->profile->ledger.outcomes[outcome] += samples;
	profile__add(recording->profile, name >> 32, (uint32_t)name, samples);
}

static int block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	/* Blocked to the program's end: a second one must not cut the writing short. */
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static enum exit_status open_targets(struct recording *recording)
{
	const struct options *options = recording->options;
	enum exit_status status = STATUS_WRITTEN;

	recording->targets = xcalloc(options->pid_count + 1, sizeof(*recording->targets));
	for (size_t i = 0; i < options->pid_count && !status; i++) {
		status = target__open(options->pids[i], &recording->targets[i]);
		if (!status)
			recording->target_count++;
	}
	recording->first_pid = options->pid_count ? options->pids[0] : 0;
	return status;
}

static enum exit_status open_sampler(struct recording *recording)
{
	const struct sampler_sink sink = { define_stack, count_stack, recording };
	int64_t before = now_ns();
	int error = sampler__open(&sink, &recording->sampler);

	if (error)
		return privileges__explain_load(error);
	log__debug("BPF program loaded in %lld ms", (now_ns() - before) / NS_PER_MS);
	return STATUS_WRITTEN;
}

enum exit_status recording__open(const struct options *options, struct recording **result)
{
	struct recording *recording = xcalloc(1, sizeof(*recording));
	enum exit_status status;

	*result = recording;
	recording->begin_ns = now_ns();
	recording->options = options;
	recording->profile = profile__new();
	recording->symbolizer = symbolizer__new(recording->profile, options->lines);
	recording->signals = -1;
	status = privileges__check();
	if (!status)
		status = open_targets(recording);
	if (!status)
		status = open_sampler(recording);
	if (status)
		return status;
	recording->signals = block_signals();
	return STATUS_WRITTEN;
}

void recording__free(struct recording *recording)
{
	if (!recording)
		return;
	sampler__free(recording->sampler);
	symbolizer__free(recording->symbolizer);
	profile__free(recording->profile);
	for (size_t i = 0; i < recording->target_count; i++)
		target__close(&recording->targets[i]);
	free(recording->targets);
	if (recording->signals >= 0)
		close(recording->signals);
	free(recording);
}

const struct profile *recording__profile(const struct recording *recording)
{
	return recording->profile;
}

pid_t recording__pid(const struct recording *recording)
{
	return recording->first_pid;
}

static int sample_target(struct recording *recording, const struct target_process *target)
{
	double used_s = target__cpu_seconds(target);

	recording->cpu_before_s += used_s > 0 ? used_s : 0;
	symbolizer__add_target(recording->symbolizer, target);
	recording->living++;
	return sampler__add_target(recording->sampler, target->process.pid, &target->runtime);
}

static enum exit_status start_events(struct recording *recording)
{
	double limit = privileges__rate_limit(), rate = recording->options->rate_hz;
	int error;

	if (limit > 0 && rate > limit) {
		log__warning("rate lowered from %g to %g Hz, the kernel's limit: sysctl "
			     "kernel.perf_event_max_sample_rate raises it",
			     rate, limit);
		rate = limit;
	}
	recording->profile->rate_hz = recording->profile->ledger.rate_hz = rate;
	error = sampler__start(recording->sampler, rate, limit > 0 ? limit : HUGE_VAL);
	return error ? privileges__explain_events(error) : STATUS_WRITTEN;
}

static enum exit_status start_command(struct recording *recording)
{
	char **command = recording->options->command;
	pid_t child = command__start(command);

	if (child < 0) {
		log__error("cannot start %s: %s", command[0], strerror(-child));
		return STATUS_FAILED;
	}
	recording->child = recording->first_pid = child;
	return STATUS_WRITTEN;
}

static void note_start(struct recording *recording)
{
	double duration_s = recording->options->duration_s;
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	recording->profile->start_unix_ns = wall.tv_sec * NS_PER_S + wall.tv_nsec;
	recording->start_ns = now_ns();
	if (duration_s > 0)
		recording->end_ns = recording->start_ns + (int64_t)(duration_s * NS_PER_S);
	log__debug("sampling %lld ms after start",
		   (recording->start_ns - recording->begin_ns) / NS_PER_MS);
}

static enum exit_status start(struct recording *recording)
{
	enum exit_status status;
	int error = 0;

	for (size_t i = 0; i < recording->target_count && !error; i++)
		error = sample_target(recording, &recording->targets[i]);
	if (error)
		return privileges__explain_load(error);
	status = start_events(recording);
	if (status)
		return status;
	note_start(recording);
	return recording->options->command ? start_command(recording) : STATUS_WRITTEN;
}

/* Looks whether the started program is a Python by now. */
static void look_for_python(struct recording *recording, int64_t now)
{
	struct target_process *target = &recording->targets[0];
	uint64_t before = recording->look_signature;
	int error = target__find_started(recording->child, target, &recording->look_signature);

	recording->look_wait_ns =
		recording->look_signature != before ? LOOK_NS : 2 * recording->look_wait_ns;
	if (recording->look_wait_ns > LOOK_NS_MAX)
		recording->look_wait_ns = LOOK_NS_MAX;
	recording->look_ns = now + recording->look_wait_ns;
	if (!error) {
		recording->target_count = 1;
		recording->look_ns = INT64_MAX;
		if (sample_target(recording, target))
			log__warning("process %d cannot be sampled", recording->child);
	} else if (error == -ENOTSUP) {
		recording->unsupported = true;
	} else if (!recording->warned && now - recording->start_ns > PATIENCE_NS) {
		recording->warned = true;
		log__warning("process %d has not begun to run a Python", recording->child);
	}
}

/* Has all stacks defined anew where a code object's address was used again. */
static void check_codes(struct recording *recording, int64_t now)
{
	recording->check_ns = now + CHECK_NS;
	sampler__drain(recording->sampler);
	sampler__harvest(recording->sampler);
	if (symbolizer__recheck(recording->symbolizer))
		sampler__begin_epoch(recording->sampler);
}

static uint64_t count_lost_targets(const struct recording *recording)
{
	const struct sampler *sampler = recording->sampler;

	return sampler__outcomes(sampler, OUTCOME_NO_INTERPRETER) +
	       sampler__outcomes(sampler, OUTCOME_INTERPRETER_FAULT) +
	       sampler__outcomes(sampler, OUTCOME_THREAD_FAULT);
}

/* Looks whether a process whose Python is not where it was has called exec. */
static void follow_exec(struct recording *recording, int64_t now)
{
	uint64_t lost = count_lost_targets(recording);
	bool renewed = false;

	if (lost != recording->lost_targets) {
		recording->lost_targets = lost;
		for (size_t i = 0; i < recording->target_count; i++) {
			struct target_process *target = &recording->targets[i];

			if (target->pidfd < 0 || !target__renew(target))
				continue;
			renewed = true;
			symbolizer__renew_target(recording->symbolizer, target);
			sampler__add_target(recording->sampler, target->process.pid,
					    &target->runtime);
		}
		if (renewed)
			sampler__begin_epoch(recording->sampler);
		recording->renew_wait_ns = renewed ? RENEW_NS : 2 * recording->renew_wait_ns;
		if (recording->renew_wait_ns > RENEW_NS_MAX)
			recording->renew_wait_ns = RENEW_NS_MAX;
	}
	recording->renew_ns = now + recording->renew_wait_ns;
}

/* Takes note of the child's end. */
static void reap(struct recording *recording)
{
	int status;

	if (!recording->child || waitpid(recording->child, &status, WNOHANG) != recording->child)
		return;
	if (WIFSIGNALED(status))
		log__info("process %d was ended by signal %d (%s)", recording->child,
			  WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		log__info("process %d ended with status %d", recording->child, WEXITSTATUS(status));
	recording->child = 0;
}

/* The next moment at which something is due; what is checked again waits for the next such one. */
static int64_t next_due(const struct recording *recording)
{
	const int64_t due[] = { recording->drain_ns, recording->change_ns, recording->progress_ns,
				recording->look_ns,
				recording->end_ns ? recording->end_ns : INT64_MAX };
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < sizeof(due) / sizeof(due[0]); i++)
		if (due[i] && due[i] < first)
			first = due[i];
	return first;
}

/* Ctrl-C reaches a started program as well, which may take its time to end: the first one waits for
 * it. */
static void take_signal(struct recording *recording)
{
	struct signalfd_siginfo info;

	if (read(recording->signals, &info, sizeof(info)) != sizeof(info))
		return;
	recording->interrupted =
		!recording->child || info.ssi_signo != SIGINT || recording->patient;
	if (recording->interrupted)
		return;
	recording->patient = true;
	log__info("waiting for process %d to end; Ctrl-C again to leave it", recording->child);
}

static void end_target(struct recording *recording, struct target_process *target)
{
	sampler__remove_target(recording->sampler, target->process.pid);
	close(target->pidfd);
	target->pidfd = -1;
	recording->living--;
}

/* Waits for a signal, a target's end, a new stack, or for what is due. */
static void wait_for_news(struct recording *recording)
{
	struct pollfd *fds = xcalloc(recording->target_count + 2, sizeof(*fds));
	int64_t left = next_due(recording) - now_ns();
	struct timespec timeout;

	left = left > 0 ? left : 0;
	timeout.tv_sec = left / NS_PER_S;
	timeout.tv_nsec = left % NS_PER_S;
	fds[0] = (struct pollfd){ .fd = recording->signals, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = recording->drain_ns ? -1 : sampler__fd(recording->sampler),
				  .events = POLLIN };
	for (size_t i = 0; i < recording->target_count; i++)
		fds[i + 2] = (struct pollfd){ .fd = recording->targets[i].pidfd, .events = POLLIN };
	if (ppoll(fds, recording->target_count + 2, &timeout, NULL) > 0) {
		if (fds[0].revents)
			take_signal(recording);
		if (fds[1].revents)
			recording->drain_ns = 1;
		for (size_t i = 0; i < recording->target_count; i++) {
			if (!fds[i + 2].revents)
				continue;
			end_target(recording, &recording->targets[i]);
		}
	}
	free(fds);
}

static void note_first_sample(struct recording *recording, int64_t now)
{
	if (recording->first_sample_ns || !sampler__events(recording->sampler))
		return;
	recording->first_sample_ns = now;
	log__debug("first sample at most %lld ms after start",
		   (now - recording->begin_ns) / NS_PER_MS);
}

static void show_progress(struct recording *recording, int64_t now)
{
	report__progress((double)(now - recording->start_ns) / NS_PER_S,
			 recording->options->duration_s, sampler__events(recording->sampler),
			 sampler__lost(recording->sampler));
	recording->progress_ns = now + PROGRESS_NS;
}

/* Does what is due. */
static void work(struct recording *recording)
{
	int64_t now = now_ns();

	if (recording->drain_ns && now >= recording->drain_ns) {
		bool was_asked = recording->drain_ns == 1;

		note_first_sample(recording, now);
		sampler__drain(recording->sampler);
		recording->drain_ns = was_asked ? now + DRAIN_PAUSE_NS : 0;
	}
	if (now >= recording->change_ns)
		recording->change_ns = now + sampler__change_periods(recording->sampler);
	if (recording->progress_ns && now >= recording->progress_ns)
		show_progress(recording, now);
	if (recording->child && now >= recording->look_ns)
		look_for_python(recording, now);
	if (now >= recording->check_ns)
		check_codes(recording, now);
	if (now >= recording->renew_ns)
		follow_exec(recording, now);
	reap(recording);
}

static bool is_over(const struct recording *recording)
{
	bool waiting = recording->child && !recording->target_count;

	return recording->interrupted || recording->unsupported ||
	       (!recording->living && !waiting) ||
	       (recording->end_ns && now_ns() >= recording->end_ns);
}

/* Whether the kernel's own count of every outcome is the profile's, but for what was lost. */
static bool outcomes_agree(const struct recording *recording)
{
	const struct ledger *ledger = &recording->profile->ledger;
	uint64_t missing = 0;

	for (int i = 0; i < OUTCOME_COUNT; i++) {
		uint64_t counted = sampler__outcomes(recording->sampler, i);

		if (counted < ledger->outcomes[i])
			return false;
		missing += counted - ledger->outcomes[i];
	}
	return missing == ledger->lost;
}

/* CPU time that the targets used since they are sampled; negative where it is not known. */
static double cpu_used_s(const struct recording *recording)
{
	double used_s = -recording->cpu_before_s;

	for (size_t i = 0; i < recording->target_count; i++) {
		double now_s = target__cpu_seconds(&recording->targets[i]);

		if (now_s < 0)
			return -1;
		used_s += now_s;
	}
	return used_s;
}

/* Says where the kernel did not interrupt as often as it was asked to. */
static void judge_rate(const struct recording *recording, double used_s)
{
	const struct ledger *ledger = &recording->profile->ledger;
	double wanted = used_s * ledger->rate_hz;

	if (wanted < SAMPLES_TO_JUDGE || ledger->events > 0.85 * wanted)
		return;
	log__warning("the kernel took only %.0f%% of the samples of %.1f s of CPU time: what is "
		     "told in seconds is too low by that, the shares are right; -r lower helps",
		     100 * ledger->events / wanted, used_s);
}

/* Stops sampling and brings everything into the profile. */
static void finish(struct recording *recording)
{
	struct profile *profile = recording->profile;
	struct ledger *ledger = &profile->ledger;
	double used_s = cpu_used_s(recording);

	sampler__stop(recording->sampler);
	profile->duration_ns = now_ns() - recording->start_ns;
	sampler__drain(recording->sampler);
	sampler__harvest(recording->sampler);
	sampler__account(recording->sampler, ledger);
	symbolizer__account(recording->symbolizer, ledger);
	ledger->lost += recording->unnamed_samples;
	ledger->duration_s = (double)profile->duration_ns / NS_PER_S;
	ledger->stacks = profile->stack_count;
	if (!ledger__adds_up(ledger) || !outcomes_agree(recording))
		log__warning("the ledger does not add up: this is a mistake of pybpfprof's");
	judge_rate(recording, used_s);
	if (recording->child)
		log__info("process %d goes on running", recording->child);
}

/* How a recording that has nothing to show ends. */
static enum exit_status explain_empty(const struct recording *recording)
{
	if (recording->unsupported)
		return target__explain(recording->first_pid, &recording->targets[0].runtime,
				       -ENOTSUP);
	if (recording->options->command && !recording->target_count) {
		log__error("%s is not a Python, or ended before it ran any: name an interpreter, "
			   "as in -- python3 app.py",
			   recording->options->command[0]);
		return STATUS_NOT_PYTHON;
	}
	if (!recording->living) {
		log__error("process %d ended before a sample came: raise the rate with -r",
			   recording->first_pid);
		return STATUS_NO_SAMPLE;
	}
	log__warning("no samples: %s", cpu_used_s(recording) > 0
					       ? "the time was too short for the rate"
					       : "the process used no CPU in that time");
	return STATUS_WRITTEN;
}

enum exit_status recording__run(struct recording *recording)
{
	enum exit_status status = start(recording);

	if (status)
		return status;
	if (report__shows_progress())
		recording->progress_ns = now_ns() + PROGRESS_NS;
	recording->look_ns = recording->child ? now_ns() : INT64_MAX;
	recording->look_wait_ns = LOOK_NS;
	recording->check_ns = now_ns() + CHECK_NS;
	recording->renew_ns = now_ns() + RENEW_NS;
	recording->renew_wait_ns = RENEW_NS;
	recording->change_ns = now_ns() + sampler__change_periods(recording->sampler);
	while (!is_over(recording)) {
		wait_for_news(recording);
		work(recording);
	}
	log__progress("");
	finish(recording);
	return recording->profile->ledger.events ? STATUS_WRITTEN : explain_empty(recording);
}
