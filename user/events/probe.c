// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls of a function, uprobe:PATH:FUNCTION, and USDT probes, usdt:PATH:PROVIDER:NAME.
 *
 * The kernel puts a breakpoint at the place into the memory of one process at a time, and runs the
 * program there.  A forked process has the breakpoint, without the program, until it first meets
 * it; then the kernel removes it.  So each target is given its own.  For a USDT probe the kernel
 * also increments the counter by which the program knows that somebody listens.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>

#include "base/log.h"
#include "base/now.h"
#include "base/small_file.h"
#include "base/xalloc.h"
#include "events/events.h"
#include "events/probe_places.h"
#include "reading/process.h"
#include "system/capabilities.h"

#define FUNCTION "uprobe:"
#define USDT	 "usdt:"

#define TYPE_PATH "/sys/bus/event_source/devices/uprobe/type"

/* In the event's config, the counter's place is in the upper half. */
#define COUNTER_SHIFT 32

/* What could not be set in a target is tried again after this time, then at longer intervals: a
 * process may not answer for now, or may be about to end. */
#define RETRY_NS     (100 * 1000 * 1000LL)
#define RETRY_NS_MAX (100 * RETRY_NS)

/* The breakpoints in one target. */
struct traps {
	uint64_t serial;
	pid_t pid;
	int *fds;
	size_t count;
	int64_t retry_ns; /* when they are set, if not yet; INT64_MAX: never */
	int64_t wait_ns;
	struct traps *next;
};

struct probe_run {
	const char *event;
	uint32_t type;		    /* of the kernel's events */
	int program;		    /* descriptor; negative: not attached */
	struct probe_places places; /* most targets map the same file */
	bool warned;
	struct traps *all;
};

static bool take(const char *text, size_t *length, struct event *event, char **wrong)
{
	bool usdt = strncmp(text, USDT, strlen(USDT)) == 0;
	const char *at = text + strlen(usdt ? USDT : FUNCTION);
	size_t bytes;

	if (!usdt && strncmp(text, FUNCTION, strlen(FUNCTION)) != 0)
		return false;
	*wrong = NULL;
	event->unit = "count";
	event->period = 1;
	bytes = *at == '/' ? strcspn(at, ":") : 0;
	for (int left = usdt ? 2 : 1; left && bytes; left--) {
		at += bytes;
		bytes = *at == ':' ? strcspn(++at, ":@") : 0;
	}
	*length = at + bytes - text;
	if (!bytes)
		*wrong = xasprintf("'%s' is no probe: use %s", text,
				   usdt ? USDT "/PATH:PROVIDER:NAME" : FUNCTION "/PATH:FUNCTION");
	return true;
}

/* The parts of an event's name; the caller frees TEXT. */
struct parts {
	char *text;
	struct probe_name name;
};

static struct parts split(const char *event)
{
	struct parts parts = { .text = xstrdup(event) };
	char *rest = parts.text;
	bool usdt = strcmp(strsep(&rest, ":"), "usdt") == 0;

	parts.name.path = strsep(&rest, ":");
	parts.name.provider = usdt ? strsep(&rest, ":") : NULL;
	parts.name.name = rest;
	return parts;
}

static char *find(const char *event, pid_t pid, struct probe_places *places)
{
	struct parts parts = split(event);
	char *wrong = probe_places__find(pid, &parts.name, places);

	free(parts.text);
	return wrong;
}

/* Whether the kernel lets this process set breakpoints.  CAP_PERFMON is not enough. */
static bool is_allowed(void)
{
	return capabilities__have(capabilities__effective(), CAP_SYS_ADMIN);
}

/* Whether PID has mapped the file of PLACES as code. */
static bool has_mapped(pid_t pid, const struct probe_places *places)
{
	struct mapping *mappings;
	pid_t reader = process__reader(pid);
	bool cut, found = false;
	ssize_t count = process__program_mappings(pid, reader, &mappings, &cut);

	for (ssize_t i = 0; i < count && !found; i++) {
		struct file_identity identity;

		found = mappings[i].executable &&
			!process__identify_mapping(pid, reader, &mappings[i], &identity) &&
			identity.device == places->identity.device &&
			identity.inode == places->identity.inode;
	}
	free(mappings);
	return found;
}

/* What is known to be impossible later is said before the start: who may not sample at all, and
 * which process is none, others say. */
static char *resolve(struct event *event, const struct event_users *users)
{
	struct probe_places places = NO_PROBE_PLACES;
	struct process process;
	char *wrong = NULL;

	if (users->everyone)
		return xasprintf("%s changes the memory of each process that is sampled: use "
				 "record with -p, or with a program to start",
				 event->name);
	for (size_t i = 0; i < users->count && is_allowed() && !wrong; i++) {
		pid_t pid = users->pids[i];

		if (process__inspect(pid, &process))
			continue;
		wrong = find(event->name, pid, &places);
		if (!wrong && pid != getpid() && !has_mapped(pid, &places))
			log__warning("process %d has not mapped the file of %s, or has an older "
				     "one of that name: calls count once it does",
				     pid, event->name);
		if (!wrong && places.refused)
			log__warning("%s is sampled in %zu of its %zu places", event->name,
				     places.count, places.count + places.refused);
	}
	probe_places__free(&places);
	return wrong;
}

/* Reads the number of the kernel's event type for uprobes; 0 or -errno. */
static int read_type(uint32_t *type)
{
	char number[16];
	ssize_t length = small_file__read(TYPE_PATH, number, sizeof(number));

	*type = strtoul(number, NULL, 10);
	return length > 0 ? 0 : -EOPNOTSUPP;
}

static int open_run(const struct event *event, struct event_rate rate, void **result)
{
	struct probe_run *run;
	uint32_t type;
	int error = read_type(&type);

	(void)rate;
	if (error)
		return error;
	if (!is_allowed())
		return -EACCES;
	run = xcalloc(1, sizeof(*run));
	*run = (struct probe_run){
		.event = event->name, .type = type, .program = -1, .places = NO_PROBE_PLACES
	};
	*result = run;
	return 0;
}

static int attach(void *context, const struct bpf_program *program)
{
	struct probe_run *run = context;
	static bool said;

	run->program = bpf_program__fd(program);
	if (!said)
		log__info("the kernel puts breakpoints into the memory of the targets, and "
			  "increments the counters of USDT probes there; it takes both back at the "
			  "end");
	said = true;
	return 0;
}

/* Traps PLACE of the file FD in process PID.  Returns the event's descriptor, or -errno. */
static int trap(const struct probe_run *run, pid_t pid, int fd, const struct probe_place *place)
{
	char *path = xasprintf("/proc/self/fd/%d", fd);
	struct perf_event_attr attributes = {
		.type = run->type,
		.size = sizeof(attributes),
		.config = place->counter << COUNTER_SHIFT,
		.config1 = (uintptr_t)path,
		.config2 = place->offset,
		.sample_period = 1,
	};
	int event = syscall(SYS_perf_event_open, &attributes, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	int error = event < 0 ? -errno : 0;

	free(path);
	if (!error && ioctl(event, PERF_EVENT_IOC_SET_BPF, run->program))
		error = -errno;
	if (error && event >= 0)
		close(event);
	return error ?: event;
}

/* Frees *TRAPS, and takes them out of the list and the process. */
static void remove_traps(struct traps **traps)
{
	struct traps *removed = *traps;

	*traps = removed->next;
	for (size_t i = 0; i < removed->count; i++)
		close(removed->fds[i]);
	free(removed->fds);
	free(removed);
}

static void leave(void *context, uint64_t serial)
{
	struct probe_run *run = context;

	for (struct traps **traps = &run->all; *traps; traps = &(*traps)->next)
		if ((*traps)->serial == serial) {
			remove_traps(traps);
			return;
		}
}

/* Warns of the first process in which not all is sampled.  A process that has ended is none. */
static void warn(struct probe_run *run, pid_t pid, const char *reason)
{
	struct process process;

	if (process__inspect(pid, &process) || process.zombie)
		return;
	if (run->warned)
		log__debug("%s is not sampled in process %d: %s", run->event, pid, reason);
	else
		log__warning("%s is not sampled in process %d: %s", run->event, pid, reason);
	run->warned = true;
}

/* Sets the breakpoints, or plans the next attempt. */
static void set_traps(struct probe_run *run, struct traps *traps)
{
	const struct probe_places *places = &run->places;
	char *wrong = find(run->event, traps->pid, &run->places);
	int fd = 0;

	traps->retry_ns = INT64_MAX;
	if (wrong) {
		warn(run, traps->pid, wrong);
		free(wrong);
		traps->wait_ns = traps->wait_ns ? 2 * traps->wait_ns : RETRY_NS;
		if (traps->wait_ns > RETRY_NS_MAX)
			traps->wait_ns = RETRY_NS_MAX;
		traps->retry_ns = now_ns() + traps->wait_ns;
		return;
	}
	traps->fds = xcalloc(places->count, sizeof(*traps->fds));
	for (size_t i = 0; i < places->count && fd >= 0; i++) {
		fd = trap(run, traps->pid, places->fd, &places->places[i]);
		if (fd >= 0)
			traps->fds[traps->count++] = fd;
		else
			warn(run, traps->pid, strerror(-fd));
	}
	log__debug("process %d has %zu breakpoints for %s", traps->pid, traps->count, run->event);
}

static void enter(void *context, uint64_t serial, pid_t pid)
{
	struct probe_run *run = context;
	struct traps *traps = xcalloc(1, sizeof(*traps));

	leave(run, serial);
	*traps = (struct traps){ .serial = serial, .pid = pid, .next = run->all };
	run->all = traps;
	set_traps(run, traps);
}

static int64_t tick(void *context, struct interruptions interruptions)
{
	struct probe_run *run = context;
	int64_t now = now_ns();

	(void)interruptions;
	for (struct traps *traps = run->all; traps; traps = traps->next)
		if (traps->retry_ns <= now)
			set_traps(run, traps);
	return RETRY_NS;
}

static void detach(void *context)
{
	struct probe_run *run = context;

	while (run->all)
		remove_traps(&run->all);
}

static void close_run(void *context)
{
	struct probe_run *run = context;

	detach(run);
	probe_places__free(&run->places);
	free(run);
}

const struct event_source event_probe = {
	.program = PROGRAM_PROBE,
	.take = take,
	.resolve = resolve,
	.open = open_run,
	.attach = attach,
	.enter = enter,
	.leave = leave,
	.tick = tick,
	.detach = detach,
	.close = close_run,
};
