// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "elf/elf_cache.h"
#include "reading/reader.h"
#include "reading/process.h"
#include "system/limits.h"
#include "watch/discovery.h"

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

/* Looks and scans return to the main loop after this time, even if more is due. */
#define SLICE_NS (20 * NS_PER_MS)

/* The first wait between looks at a process that may become a Python, and the longest. */
#define LOOK_NS	    NS_PER_MS
#define LOOK_NS_MAX (50 * NS_PER_MS)

/* A look that takes longer is slow.  After the first slow one a process rests for as long as that
 * took, since it may have read files that are cached now.  After later ones it rests REST_FACTOR
 * times as long, which bounds the CPU time spent on it. */
#define SLOW_NS	    (5 * NS_PER_MS)
#define REST_FACTOR 50

/* A process may map any number of files. */
#define FILES_MAX 256

/* A program that is still no Python after this time is warned of. */
#define START_PATIENCE_NS (10 * NS_PER_S)
#define EXEC_PATIENCE_NS  (200 * NS_PER_MS)

/* Within this time BPF reports the end of each process that it knew. */
#define REPORT_NS NS_PER_S

/* The first scan is waited for up to this time, so that sampling begins with what runs already. */
#define SCAN_PATIENCE_NS NS_PER_S

/* After a scan, none begins for this many times its duration. */
#define SCAN_REST_FACTOR 10

/* Bounds the passes of a scan if processes keep starting others. */
#define PASSES_MAX 64

/* A scan that could not see all processes is repeated after this time. */
#define AGAIN_NS (100 * NS_PER_MS)

/* How often all processes are scanned if the kernel does not report mappings. */
#define ASK_NS (10 * NS_PER_S)

/* Plans a look now that does not depend on the result of the last one. */
static void look_anew(struct watch *watch, struct watched *watched, int64_t now)
{
	registry__look_at(watch, watched, now);
	watched->look_wait_ns = LOOK_NS;
	watched->signature = 0;
	watched->is_other = false;
	watched->is_done = false;
}

void discovery__ask(struct watch *watch, struct watched *watched,
		    const struct process_record *record)
{
	look_anew(watch, watched, now_ns());
	if (watched->file_count == FILES_MAX)
		return;
	watched->files = xgrow(watched->files, &watched->file_capacity, watched->file_count + 1,
			       sizeof(*watched->files));
	watched->files[watched->file_count++] =
		(struct asked_file){ record->file, record->start,
				     record->event == PROCESS_EXECUTED };
}

void discovery__map(struct watch *watch, struct watched *watched, const struct mapped_file *file)
{
	/* It is loading a program. */
	watched->since_ns = now_ns();
	look_anew(watch, watched, watched->since_ns);
	if (watched->mapped_count == FILES_MAX)
		return;
	watched->mapped = xgrow(watched->mapped, &watched->mapped_capacity,
				watched->mapped_count + 1, sizeof(*watched->mapped));
	watched->mapped[watched->mapped_count++] = *file;
}

/* The filter cannot be applied to TARGET, which WATCHED runs.  WAITED samples and those that BPF
 * took count as unknown. */
static void leave_unknown(struct watch *watch, struct watched *watched,
			  struct target_process *target, uint64_t waited)
{
	const char *command = target->identity.short_name;

	registry__exclude(watch, watched, EXCLUDED_UNKNOWN, command);
	counts__add_unknown(watch->counts, watched->key.serial, waited);
	/* For the processes that it forks until the next look. */
	registry__set_command(watched, command);
	target__free(target);
	/* The failure may have been temporary. */
	registry__look_at(watch, watched, now_ns());
}

void discovery__adopt(struct watch *watch, struct watched *watched,
		      const struct process_record *record)
{
	struct target_process *target;
	struct runtime runtime;

	if (watched->unwanted) {
		registry__exclude(watch, watched, EXCLUDED_BY_FILTER, NULL);
		target_map__set_aside(watch->map, watched->key);
		return;
	}
	/* A forgotten file is read again, and gets another number. */
	if (!images__runtime(watch->images, record->image, record->bias, &runtime)) {
		discovery__ask(watch, watched, record);
		return;
	}
	target = target__adopt(record->pid, &runtime, record->arguments, record->argument_bytes);
	if (registry__has_namesake(watch, watched))
		target__disown(target, record->arguments, record->argument_bytes);
	identity__inherit(&target->identity, watched->ancestor);
	if (!process_filter__can_tell(watch->filter, &target->identity)) {
		leave_unknown(watch, watched, target, record->waiting);
	} else if (!process_filter__wants(watch->filter, &target->identity)) {
		registry__exclude(watch, watched, EXCLUDED_BY_FILTER, NULL);
		registry__set_aside(watch, watched, target, now_ns());
	} else {
		watch->found = true;
		registry__take_target(watch, watched, target);
		/* The samples that waited came before the file was mapped. */
		registry__add_waited(watch, target, OUTCOME_NO_INTERPRETER, record->waiting);
	}
}

/* Whether ERROR is a lack of open files, which hides processes.  Warns of the first one. */
static bool lacks_files(struct watch *watch, int error)
{
	if (!limits__lack_files(error))
		return false;
	if (!watch->warned_of_files)
		limits__warn_of_files(error);
	watch->warned_of_files = true;
	return true;
}

/* Answers BPF's questions about WATCHED's files.  RUNTIME is what was found; NULL: no Python. */
static void answer(struct watch *watch, struct watched *watched, const struct runtime *runtime)
{
	for (size_t i = 0; i < watched->file_count; i++) {
		const struct asked_file *file = &watched->files[i];

		images__learn(watch->images, &file->key, file->start, file->began, runtime);
	}
	watched->file_count = 0;
	images__learn_mapped(watch->images, watched->pid, watched->mapped, watched->mapped_count,
			     runtime);
	watched->mapped_count = 0;
}

/* Looks again after twice the last wait; soon if what WATCHED maps has CHANGED. */
static void look_later(struct watch *watch, struct watched *watched, bool changed, int64_t now)
{
	int64_t wait_ns = changed ? LOOK_NS : 2 * watched->look_wait_ns;

	wait_ns = wait_ns > LOOK_NS ? wait_ns : LOOK_NS;
	registry__look_after(watch, watched, wait_ns < LOOK_NS_MAX ? wait_ns : LOOK_NS_MAX, now);
}

static void warn_of_other(struct watched *watched, bool started)
{
	watched->warned = true;
	if (started)
		log__warning("process %d has not started Python yet", watched->pid);
	else
		log__warning("process %d has exec'd a program that is not Python", watched->pid);
}

/* WATCHED runs no Python, as far as is known. */
static void take_other(struct watch *watch, struct watched *watched, bool changed, int64_t now)
{
	bool reported = sampler__sees_mappings(watch->sampler);
	int64_t since_ns = now - watched->since_ns;
	bool started = watched->pid == watch->child;
	/* If BPF does not report mappings, a Python may still be loaded. */
	bool settled = reported || since_ns > EXEC_PATIENCE_NS;

	if (settled)
		answer(watch, watched, NULL);
	watched->is_done = watch->following == FOLLOW_ALL && settled;
	if (watched->is_done && !watched->slow_ns) {
		registry__remove(watch, watched);
		return;
	}
	target_map__follow(watch->map, watched->key);
	/* If it maps a file before its rest ends, its slow look is remembered. */
	if (watched->is_done)
		registry__look_at(watch, watched, now_ns() + REST_FACTOR * watched->slow_ns);
	else if (!reported)
		look_later(watch, watched, changed, now);
	if ((watch->following == FOLLOW_NONE || (started && !watch->found)) && !watched->warned &&
	    since_ns >= (started ? START_PATIENCE_NS : EXEC_PATIENCE_NS))
		warn_of_other(watched, started);
	registry__drop_ended(watch, watched);
}

/* Whether TARGET, which WATCHED runs and which is not profiled because of ERROR, ends the
 * recording. Then it is kept. */
static bool ends_recording(struct watch *watch, struct watched *watched,
			   struct target_process *target, int error)
{
	if (watched->pid != watch->child || !watch->needs_python)
		return false;
	watch->refused = target;
	watch->refusal = error;
	return true;
}

/* WATCHED runs TARGET, a Python that is not supported. */
static void take_refused(struct watch *watch, struct watched *watched,
			 struct target_process *target, int64_t now)
{
	if (ends_recording(watch, watched, target, -ENOTSUP))
		return;
	target->outcome = OUTCOME_NOT_SUPPORTED;
	registry__take_python(watch, watched, target, now);
}

/* User space may not read WATCHED. */
static void take_unreadable(struct watch *watch, struct watched *watched, int64_t now)
{
	struct target_process *target = target__unknown(watched->pid);

	watch->unreadable++;
	watched->file_count = 0;
	target->outcome = OUTCOME_UNREADABLE;
	registry__take_python(watch, watched, target, now);
}

/* Whether an unsupported Python, found by the look after SIGNATURE, may still be loading: then
 * another part of the file lies at the address of its data. */
static bool is_early(struct watched *watched, uint64_t signature, int64_t now)
{
	if (now - watched->since_ns >= EXEC_PATIENCE_NS)
		return false;
	watched->signature = signature;
	return true;
}

/* As target__look.  Cached files are closed if that is needed to open its files.  A slow look
 * delays the next, so that no process can use up the profiler's time by the files that it maps. */
static int look(struct watched *watched, struct target_process **target)
{
	int64_t took_ns = -clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	int error = target__look(watched->pid, &watched->signature, target);

	if (limits__lack_files(error) && elf_cache__close_kept())
		error = target__look(watched->pid, &watched->signature, target);
	took_ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (took_ns > SLOW_NS) {
		watched->rest_ns = now_ns() + (watched->slow_ns ? REST_FACTOR : 1) * took_ns;
		watched->slow_ns = took_ns;
	}
	return error;
}

/* WATCHED has ended; BEFORE: the last look found the same.  BPF is about to report the end, unless
 * user space put the process into BPF's map after it. */
static void take_gone(struct watch *watch, struct watched *watched, bool before, int64_t now)
{
	if (before) {
		watch->child_ends |= watched->pid == watch->child;
		registry__remove(watch, watched);
		return;
	}
	registry__look_at(watch, watched, now + REPORT_NS);
	if (!target_map__has(watch->map, watched->key.kernel_pid))
		registry__drop(watch, watched);
}

/* Finds what WATCHED runs. */
static void look_what_runs(struct watch *watch, struct watched *watched, int64_t now)
{
	struct target_process *target = NULL;
	uint64_t before = watched->signature;
	bool changed, was_gone = watched->is_gone;
	int error;

	/* If it executes another program during the look, BPF gives it another serial.  So the
	 * result is not taken for that program. */
	target_map__await(watch->map, watched->key);
	error = look(watched, &target);
	changed = watched->signature != before;
	watched->is_gone = error == -ESRCH;
	if (error == -EAGAIN && !changed && watched->is_other)
		error = -ENOEXEC;
	watched->is_other = error == -ENOEXEC;
	if (target)
		identity__inherit(&target->identity, watched->ancestor);
	if (error == -ENOTSUP && is_early(watched, before, now)) {
		target__free(target);
		error = -EAGAIN;
	}
	/* reader.c has warned of ENOMEM. */
	lacks_files(watch, error);
	switch (error) {
	case 0:
		answer(watch, watched, &target->runtime);
		if (!registry__lacks_gil(watch, target) ||
		    !ends_recording(watch, watched, target, -ENODATA))
			registry__take_python(watch, watched, target, now);
		break;
	case -ENOTSUP:
		take_refused(watch, watched, target, now);
		break;
	case -EAGAIN:
	case -EINPROGRESS:
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		look_later(watch, watched, changed, now);
		break;
	case -ESRCH:
		take_gone(watch, watched, was_gone, now);
		break;
	case -ENOEXEC:
		take_other(watch, watched, changed, now);
		break;
	default:
		take_unreadable(watch, watched, now);
	}
}

void discovery__look_at(struct watch *watch, struct watched *watched, int64_t now)
{
	if (watched__python(watched))
		registry__check(watch, watched, now);
	else if (watched->is_done)
		registry__remove(watch, watched);
	else
		look_what_runs(watch, watched, now);
}

/* Whether BPF follows process PID, but could not report it. */
static bool is_unannounced(const struct watch *watch, pid_t pid)
{
	pid_t kernel_pid, namesake;

	return !sampler__find_kernel_pid(watch->sampler, pid, &kernel_pid, &namesake) &&
	       target_map__has_untold(watch->map, kernel_pid);
}

/* Begins to watch process PID, if the recording is to follow it and does not yet.  0 with *WATCHED,
 * or -errno. */
static int watch_wanted(struct watch *watch, pid_t pid, int64_t now, struct watched **watched)
{
	struct process process;
	int error;

	if (pid == getpid() || registry__of_pid(watch, pid))
		return -EEXIST;
	error = process__inspect(pid, &process);
	if (error)
		return error;
	if (process.kernel_thread || process.zombie ||
	    (watch->following != FOLLOW_ALL && !registry__of_pid(watch, process.parent) &&
	     !is_unannounced(watch, pid)))
		return -ESRCH;
	return registry__add(watch, pid, now, watched);
}

/* Looks at process PID, if it is not watched yet.  Returns whether it is watched from now on. */
static bool scan_one(struct watch *watch, pid_t pid, int64_t now)
{
	struct watched *watched;
	int error = watch_wanted(watch, pid, now, &watched);

	if (lacks_files(watch, error))
		discovery__want_scan(watch, now + AGAIN_NS);
	if (error || !registry__claim(watch, watched))
		return false;
	watched->is_found = true;
	discovery__look_at(watch, watched, now);
	watched = registry__of_pid(watch, pid);
	return watched && !watched->is_done;
}

static void begin_pass(struct watch *watch, int64_t now)
{
	struct scan *scan = &watch->scan;

	free(scan->pids);
	scan->next = scan->found = 0;
	scan->crowded = 0;
	scan->pids = process__list(&scan->count);
	if (scan->pids)
		return;
	scan->count = 0;
	if (lacks_files(watch, -errno))
		discovery__want_scan(watch, now + AGAIN_NS);
}

static void begin_scan(struct watch *watch, int64_t now)
{
	struct scan *scan = &watch->scan;

	scan->begin_ns = 0;
	if (watch->following == FOLLOW_NONE)
		return;
	scan->under_way = true;
	scan->passes = 0;
	scan->took_ns = 0;
	begin_pass(watch, now);
}

/* BPF does not report a process that starts during the scan if its parent was not found yet.  So
 * there is another pass until one finds nothing new. */
static void go_on(struct watch *watch, int64_t now)
{
	struct scan *scan = &watch->scan;
	int64_t begin_ns = now_ns(), passed_ns = 0;

	while (scan->under_way && passed_ns < SLICE_NS) {
		if (scan->next < scan->count)
			scan->found += scan_one(watch, scan->pids[scan->next++], now);
		else if (scan->found && ++scan->passes < PASSES_MAX)
			begin_pass(watch, now);
		else
			scan->under_way = false;
		passed_ns = now_ns() - begin_ns;
	}
	scan->took_ns += passed_ns;
	if (scan->under_way)
		return;
	scan->rest_ns = now_ns() + SCAN_REST_FACTOR * scan->took_ns;
	log__debug("scanned all processes in %lld ms: %zu watched",
		   (long long)(scan->took_ns / NS_PER_MS), (size_t)HASH_COUNT(watch->all));
}

/* BPF may have missed reports: removes processes that have ended, and looks again at those that are
 * not known. */
static void take_stock(struct watch *watch, int64_t now)
{
	uint64_t untold = sampler__untold(watch->sampler);
	struct watched *watched, *next;

	HASH_ITER (hh, watch->all, watched, next)
		if (!target_map__has_told(watch->map, watched->key))
			registry__drop(watch, watched);
		else if (untold != watch->untold && !watched__python(watched))
			registry__look_at(watch, watched, now);
	/* A report that is lost from here on causes another scan. */
	watch->untold = untold;
}

void discovery__begin(struct watch *watch, int64_t now)
{
	int64_t until_ns = now_ns() + SCAN_PATIENCE_NS;

	begin_scan(watch, now);
	while (watch->scan.under_way && now_ns() < until_ns)
		go_on(watch, now);
}

void discovery__want_scan(struct watch *watch, int64_t begin_ns)
{
	struct scan *scan = &watch->scan;

	if (!scan->begin_ns || begin_ns < scan->begin_ns)
		scan->begin_ns = begin_ns;
}

int64_t discovery__scan_due(const struct watch *watch)
{
	const struct scan *scan = &watch->scan;

	if (scan->under_way)
		return 1;
	if (!scan->begin_ns)
		return INT64_MAX;
	return scan->begin_ns > scan->rest_ns ? scan->begin_ns : scan->rest_ns;
}

int64_t discovery__due(const struct watch *watch)
{
	int64_t scan_ns = discovery__scan_due(watch);
	int64_t look_ns = watch->look_count ? watch->looks[0]->look_ns : INT64_MAX;

	return look_ns < scan_ns ? look_ns : scan_ns;
}

/* A process that maps a Python late is not reported if the kernel does not report mappings. */
static void ask_all(struct watch *watch, int64_t now)
{
	struct scan *scan = &watch->scan;

	if (watch->following == FOLLOW_NONE || sampler__sees_mappings(watch->sampler) ||
	    now < scan->ask_ns)
		return;
	if (scan->ask_ns)
		discovery__want_scan(watch, now);
	scan->ask_ns = now + ASK_NS;
}

void discovery__work(struct watch *watch, int64_t now)
{
	int64_t until_ns = now_ns() + SLICE_NS;
	struct watched *watched;

	while ((watched = registry__take_due(watch, now))) {
		discovery__look_at(watch, watched, now);
		if (now_ns() >= until_ns)
			break;
	}
	ask_all(watch, now);
	if (sampler__untold(watch->sampler) != watch->untold)
		discovery__want_scan(watch, now);
	if (!watch->scan.under_way && now >= discovery__scan_due(watch)) {
		take_stock(watch, now);
		begin_scan(watch, now);
	}
	if (watch->scan.under_way)
		go_on(watch, now);
}

/* Adds WATCHED, about which nothing is known, to the profile if it has samples. */
static void name_unknown(struct watch *watch, struct watched *watched)
{
	uint64_t samples = target_map__awaited(watch->map, watched->key);
	struct target_process *target = samples ? target__unknown(watched->pid) : NULL;

	if (!target || !process_filter__wants(watch->filter, &target->identity)) {
		target__free(target);
		return;
	}
	registry__take_target(watch, watched, target);
	registry__add_waited(watch, target, OUTCOME_NOT_KNOWN_YET, samples);
}

void discovery__name_unknown(struct watch *watch)
{
	struct watched *watched, *next;

	HASH_ITER (hh, watch->all, watched, next) {
		if (watched->unwanted && watched->is_undecided)
			unknown_processes__add(&watch->unknown, watched->command,
					       target_map__awaited(watch->map, watched->key));
		if (watched__python(watched))
			continue;
		if (reader__has_given_up(watched->pid))
			take_unreadable(watch, watched, now_ns());
		else
			name_unknown(watch, watched);
	}
}
