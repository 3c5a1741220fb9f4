// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "architecture/architecture.h"
#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "profile/plain_text.h"
#include "sampling/targets.h"
#include "system/limits.h"

/* How often the names of a forked process are read again before its end.  A worker sets its own
 * name once it has loaded what it serves, well after its first sample.  One reading could come too
 * early for that. But some processes change their names all the time, and names cost more to read
 * than the rest. */
#define RENAMINGS_MAX 2

/* The longest name in a message. */
#define NAME_BYTES_MAX 40

void target__warn_of_limits(const struct target_process *target)
{
	const struct runtime *runtime = &target->runtime;
	pid_t pid = target->process.pid;

	if (offsets__is_newer(&runtime->offsets))
		log__warning(
			"process %d runs Python %s, whose layout this pybpfprof does not know: it "
			"uses the process's debug offsets, which it has checked; it cannot tell "
			"which functions are hidden",
			pid, runtime->version);
	if (*runtime->other_version)
		log__warning("process %d runs more than one Python: the profile shows Python %s "
			     "but not Python %s",
			     pid, runtime->version, runtime->other_version);
}

static uint64_t mapping_signature(const struct mapping *mappings, ssize_t count)
{
	uint64_t signature = 1;

	for (ssize_t i = 0; i < count; i++)
		signature =
			(signature ^ mappings[i].start ^ mappings[i].inode) * 0x9e3779b97f4a7c15ULL;
	return signature;
}

uint64_t target__signature(pid_t pid)
{
	struct mapping *mappings;
	bool cut;
	ssize_t count = process__program_mappings(pid, process__reader(pid), &mappings, &cut);
	uint64_t signature = mapping_signature(mappings, count);

	free(mappings);
	return signature;
}

/* Finds the Python of PROCESS as runtime__find does, but without waiting.  -EAGAIN where the
 * process still has the mappings of *SIGNATURE, or its Python is not ready yet.  Sets *SIGNATURE
 * to that of the present mappings. */
static int find_ready(const struct process *process, uint64_t *signature, struct runtime *runtime)
{
	pid_t pid = process->pid, reader = process->reader;
	struct mapping *mappings;
	bool cut;
	ssize_t count = process__program_mappings(pid, reader, &mappings, &cut);
	uint64_t before = *signature;
	int error = -EAGAIN;

	*signature = mapping_signature(mappings, count);
	if (*signature != before)
		error = runtime__find_among(pid, reader, mappings, count, cut, runtime);
	free(mappings);
	/* Before the interpreter is initialized there is no thread pointer to note. */
	if (!error && ARCHITECTURE.is_noted_late && !runtime->initialized)
		return -EAGAIN;
	return error == -ENOTSUP && !*runtime->version ? -EAGAIN : error;
}

int target__look(pid_t pid, uint64_t *signature, struct target_process **result)
{
	struct target_process target = { 0 };
	uint64_t before = *signature;
	int error = process__inspect(pid, &target.process);

	if (error || target.process.zombie)
		return error ? error : -ESRCH;
	/* When the exec is complete, this is another process, and BPF reports it.  The samples up
	 * to then do not belong to that one. */
	if (target.process.executes)
		return -EAGAIN;
	error = find_ready(&target.process, signature, &target.runtime);
	/* A process that has just ended maps nothing: that tells nothing about its files. */
	if (error == -ENOEXEC && target__has_ended(&target))
		error = -ESRCH;
	/* The next look may succeed with the same mappings. */
	if (error == -EAGAIN || error == -EINPROGRESS || error == -ENOMEM ||
	    limits__lack_files(error))
		*signature = before;
	if (error && error != -ENOTSUP)
		return error;
	identity__read(pid, &target.identity);
	*result = xcalloc(1, sizeof(target));
	**result = target;
	return error;
}

/* What is known of process PID by its number alone. */
static struct process bare_process(pid_t pid)
{
	return (struct process){ .pid = pid, .reader = pid };
}

static struct target_process *new_target(pid_t pid)
{
	struct target_process *target = xcalloc(1, sizeof(*target));

	if (process__inspect(pid, &target->process))
		target->process = bare_process(pid);
	return target;
}

struct target_process *target__unknown(pid_t pid)
{
	struct target_process *target = new_target(pid);

	identity__read(pid, &target->identity);
	return target;
}

struct target_process *target__fork(const struct target_process *parent, pid_t pid)
{
	struct target_process *child = xcalloc(1, sizeof(*child));

	*child = *parent;
	child->parent = parent->key.serial;
	child->ancestor = parent->ancestor ? parent->ancestor : parent->key.serial;
	child->renamings = 0;
	/* /proc is not read: most children run briefly and are never sampled. */
	child->process = bare_process(pid);
	child->process.parent = parent->process.pid;
	child->process.forked = true;
	identity__copy(&parent->identity, &child->identity);
	child->identity.start_unix_ns = clock_ns(CLOCK_REALTIME);
	return child;
}

struct target_process *target__adopt(pid_t pid, const struct runtime *runtime,
				     const char *arguments, size_t bytes)
{
	struct target_process *target = new_target(pid);

	target->runtime = *runtime;
	if (identity__read(pid, &target->identity) || (target->identity.wordless && bytes))
		identity__take_words(arguments, bytes, &target->identity);
	return target;
}

void target__disown(struct target_process *target, const char *arguments, size_t bytes)
{
	target->process = bare_process(target->process.pid);
	identity__free(&target->identity);
	identity__take_words(arguments, bytes, &target->identity);
}

/* Whether NOW is another process that has taken TARGET's number. */
static bool is_namesake(const struct target_process *target, const struct process *now)
{
	uint64_t start_time = target->process.start_time;

	return start_time && now->start_time != start_time;
}

bool target__has_ended(const struct target_process *target)
{
	struct process now;
	int error = process__inspect(target->process.pid, &now);

	return error ? error == -ESRCH : now.zombie || is_namesake(target, &now);
}

/* Whether what was just read from /proc belongs to TARGET.  During an exec, /proc already has the
 * arguments of the new program, which counts as another process; BPF reports that later. */
static bool was_itself(const struct target_process *target, const struct target_map *map)
{
	struct process now;

	if (process__inspect(target->process.pid, &now) || now.executes)
		return false;
	if (target->process.forked && !now.forked)
		return false;
	return target_map__holds(map, target->key);
}

bool target__identify(struct target_process *target, const struct target_map *map,
		      enum identify what)
{
	struct identity now;

	identity__copy(&target->identity, &now);
	if (identity__read_again(target->process.pid, target->process.start_time, what, &now) ||
	    !was_itself(target, map)) {
		identity__free(&now);
		return false;
	}
	identity__free(&target->identity);
	target->identity = now;
	target->process.start_time = now.start_time;
	return true;
}

enum identify target__changeable(struct target_process *target)
{
	if (!target->process.forked || target->renamings == RENAMINGS_MAX)
		return IDENTIFY_OWNER;
	target->renamings++;
	return IDENTIFY_FORKED;
}

char *target__plain_name(const struct target_process *target)
{
	const char *name = target->identity.short_name ?: "python";

	return plain_text__of_bytes(name, strlen(name), NAME_BYTES_MAX);
}

double target__cpu_seconds(const struct target_process *target)
{
	struct process now;

	if (process__inspect(target->process.pid, &now) || is_namesake(target, &now))
		return -1;
	return (double)now.cpu_ticks / sysconf(_SC_CLK_TCK);
}

void target__free(struct target_process *target)
{
	if (!target)
		return;
	identity__free(&target->identity);
	free(target);
}
