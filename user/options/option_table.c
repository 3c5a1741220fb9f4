// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/now.h"
#include "base/quantity.h"
#include "base/xalloc.h"
#include "kubernetes/api_server.h"
#include "options/option_table.h"

#define WINDOW_S_MIN 0.1
#define WINDOW_S_MAX 3600.0

/* PID_MAX_LIMIT of the kernel. */
#define PID_LIMIT 4194304

/* Each process takes about 200 bytes of kernel memory, which are allocated at the start. */
#define PROCESSES_LIMIT (1024 * 1024)

/* The message that VALUE is not WANTED. */
static char *refuse(const struct option *option, const char *value, const char *wanted)
{
	return xasprintf("%s '%s' is not %s", option->name, value, wanted);
}

static char *take_flag(const struct option *option, void *field, const char *value)
{
	(void)option;
	(void)value;
	*(bool *)field = true;
	return NULL;
}

static char *take_constant(const struct option *option, void *field, const char *value)
{
	(void)value;
	*(unsigned int *)field = option->constant;
	return NULL;
}

static char *take_text(const struct option *option, void *field, const char *value)
{
	(void)option;
	*(const char **)field = value;
	return NULL;
}

static char *take_shown(const struct option *option, void *field, const char *value)
{
	return take_text(option, field, event__canonical(value));
}

/* Takes process IDs, as in "1,2,3". */
static char *take_pids(const struct option *option, void *field, const char *value)
{
	struct recording_plan *plan = field;
	const char *at = value;
	char *end;
	long pid;

	do {
		errno = 0;
		pid = strtol(at, &end, 10);
		if (*at < '0' || *at > '9' || errno || pid <= 0 || pid > PID_LIMIT ||
		    (*end && *end != ','))
			return refuse(option, value, "a number from 1 to 4194304");
		recording_plan__add_pid(plan, pid);
		at = end;
	} while (*at++);
	return NULL;
}

static char *take_rule(const struct option *option, void *field, const char *value)
{
	return process_filter__add(field, option->name, value);
}

static char *take_count(const struct option *option, void *field, const char *value)
{
	char *end;
	long number = strtol(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || number < 1 || number > PROCESSES_LIMIT)
		return refuse(option, value, "a number from 1 to 1048576");
	*(uint32_t *)field = number;
	return NULL;
}

static char *take_rate(const struct option *option, void *field, const char *value)
{
	double *rate_hz = field;
	char *end;

	if (!quantity__number(value, rate_hz, &end) || *end || *rate_hz < 0.1 || *rate_hz > 1e6)
		return refuse(option, value, "a number of samples per second from 0.1 to 1000000");
	return NULL;
}

static char *take_events_per_sample(const struct option *option, void *field, const char *value)
{
	uint64_t *count = field;

	*count = event__number(value, EVENT_PERIOD_MAX);
	return *count ? NULL : refuse(option, value, "a number of events from 1 to 10^12");
}

static char *take_event(const struct option *option, void *field, const char *value)
{
	struct recording_plan *plan = field;
	struct event event;
	char *wrong = event__parse(value, &event);
	int error;

	(void)option;
	if (wrong)
		return wrong;
	error = recording_plan__add_event(plan, &event);
	if (error == -EEXIST)
		return xasprintf("-e names %s twice", event.name);
	return error ? xasprintf("-e takes at most %d events", EVENTS_MAX) : NULL;
}

static char *take_duration(const struct option *option, void *field, const char *value)
{
	return quantity__duration(value, field)
		       ? NULL
		       : refuse(option, value, "a time such as 30, 90s, 2m, 12h or 7d");
}

static char *take_window(const struct option *option, void *field, const char *value)
{
	double *window_s = field;

	if (quantity__duration(value, window_s) && *window_s >= WINDOW_S_MIN &&
	    *window_s <= WINDOW_S_MAX)
		return NULL;
	return refuse(option, value, "a time from 0.1s to 1h");
}

static char *take_size(const struct option *option, void *field, const char *value)
{
	if (quantity__size(value, field))
		return NULL;
	return refuse(option, value,
		      option->flags & OPTION_OFF ? "a size of 1M or more, such as 150M, or off"
						 : "a size of 1M or more, such as 500M or 2G");
}

static char *take_share(const struct option *option, void *field, const char *value)
{
	double percent;
	char *end;

	if (!quantity__number(value, &percent, &end) || strcmp(end, "%") != 0 || percent <= 0 ||
	    percent > 100)
		return refuse(option, value, "a share of all CPUs such as 1%, or off");
	*(double *)field = percent / 100;
	return NULL;
}

static char *take_format(const struct option *option, void *field, const char *value)
{
	/* Names that other profilers use. */
	static const char *const elsewhere[][2] = {
		{ "raw", "folded" }, { "collapsed", "folded" },	      { "flamegraph", "html" },
		{ "svg", "html" },   { "chrometrace", "speedscope" },
	};
	const struct output_format **format = field;

	*format = output__by_name(value);
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if (strcmp(value, elsewhere[i][0]) == 0)
			return xasprintf("format '%s' is called %s here", value, elsewhere[i][1]);
	return *format ? NULL
		       : refuse(option, value, "one of html, folded, pprof, speedscope or text");
}

static char *take_moment(const struct option *option, void *field, const char *value)
{
	if (quantity__moment(value, clock_ns(CLOCK_REALTIME), field))
		return NULL;
	return refuse(option, value,
		      "an age such as 10min, 1h or 2d, or a time such as 01:20, 2026-01-02, "
		      "'2026-01-02 03:04' or 2026-01-02T03:04:05Z");
}

static char *take_diff(const struct option *option, void *field, const char *value)
{
	struct option_diff *diff = field;

	if (quantity__duration(value, &diff->earlier_s))
		return NULL;
	return take_moment(option, &diff->since_unix_ns, value);
}

static char *take_label(const struct option *option, void *field, const char *value)
{
	struct option_labels *labels = field;
	char *text, *equals;

	if (!strchr(value, '=') || *value == '=')
		return refuse(option, value, "NAME=VALUE, such as service_name=web");
	text = xstrdup(value);
	equals = strchr(text, '=');
	*equals = '\0';
	labels->list = xreallocarray(labels->list, labels->count + 1, sizeof(*labels->list));
	labels->list[labels->count++] = (struct store_label){ text, equals + 1 };
	return NULL;
}

/* The value may hold a password, which the message must not repeat. */
static char *take_push(const struct option *option, void *field, const char *value)
{
	char *fault = push_destinations__add(field, value), *wrong;

	(void)option;
	if (!fault)
		return NULL;
	wrong = xasprintf("cannot push to '%s': %s", strchr(value, '@') ? "..." : value, fault);
	free(fault);
	return wrong;
}

/* Nor does this message repeat the value. */
static char *take_kubernetes(const struct option *option, void *field, const char *value)
{
	char *fault = api_server__check(value), *wrong;

	*(const char **)field = value;
	if (!fault)
		return NULL;
	wrong = xasprintf("--%s is not auto, off or a usable URL: %s", option->name, fault);
	free(fault);
	return wrong;
}

static char *take_relabel(const struct option *option, void *field, const char *value)
{
	(void)option;
	return relabel__add(field, value);
}

#define RECORD VERB_RECORD
#define AGENT  VERB_AGENT
#define REPORT VERB_REPORT
#define CHECK  VERB_CHECK
#define EVENTS VERB_EVENTS

#define FIELD(name) offsetof(struct options, name)
/* An option of other profilers. */
#define ELSEWHERE(name, letter, text)                          \
	{                                                      \
		name, letter, .verbs = RECORD, .instead = text \
	}
#define HEADING(verb, text)                 \
	{                                   \
		.help = text, .verbs = verb \
	}

#define TEXT_OF(number) #number
#define TEXT(macro)	TEXT_OF(macro)

/* The agent's rate, 19, is cheap, and a prime: few programs run in step with it. */
static const struct option option_table[] = {
	HEADING(RECORD | AGENT, "What to profile:"),
	{ "pid", 'p', "PID", "this process; several with -p 1,2 or -p 1 2", take_pids, FIELD(plan),
	  .verbs = RECORD, .flags = OPTION_LIST | OPTION_WORDS },
	{ "all", 'a', NULL, "every Python process, also those that start later", take_flag,
	  FIELD(all), .verbs = RECORD },
	{ "subprocesses", 's', NULL, "also all descendants of these processes", take_flag,
	  FIELD(subprocesses), .verbs = RECORD },
	{ "max-processes", 0, "N", "at most N processes at a time", take_count,
	  FIELD(plan.processes_max), .verbs = RECORD | AGENT, .flags = OPTION_FIXED,
	  .fallback = TEXT(TARGETS_MAX) },

	HEADING(RECORD,
		"Filters for -a, -s and --. A process must match one value of each kind given:"),
	HEADING(AGENT, "Filters. A process must match one value of each kind given:"),
	{ "comm", 0, "GLOB",
	  "processes with this name: of the script or module, or the kernel's name for the process",
	  take_rule, FIELD(plan.filter), .verbs = RECORD | AGENT,
	  .flags = OPTION_LIST | OPTION_FIXED },
	{ "cgroup", 0, "PATH", "processes in this cgroup or below", take_rule, FIELD(plan.filter),
	  .verbs = RECORD | AGENT, .flags = OPTION_LIST | OPTION_FIXED },
	{ "container", 0, "ID", "processes in this container: its ID or the start of it", take_rule,
	  FIELD(plan.filter), .verbs = RECORD | AGENT, .flags = OPTION_LIST | OPTION_FIXED },
	{ "uid", 0, "USER", "processes of this user", take_rule, FIELD(plan.filter),
	  .verbs = RECORD | AGENT, .flags = OPTION_LIST | OPTION_FIXED },
	{ "exclude", 0, "KIND=X", "no processes with comm, cgroup, container or uid X", take_rule,
	  FIELD(plan.filter), .verbs = RECORD | AGENT, .flags = OPTION_LIST | OPTION_FIXED },

	HEADING(RECORD | AGENT, "How to sample:"),
	{ "duration", 'd', "TIME",
	  "time to sample: 30, 90s, 2m, 1h (default: until Ctrl-C or the end of the process)",
	  take_duration, FIELD(plan.duration_s), .verbs = RECORD },
	{ "rate", 'r', "HZ", "samples per second: of CPU time, and of the processor's counters",
	  take_rate, FIELD(plan.rate_hz), .verbs = RECORD | AGENT,
	  .fallback = TEXT(RATE_HZ_DEFAULT), .agent_fallback = "19" },
	{ "count", 'c', "COUNT",
	  "a sample for COUNT events, for counted ones (page-faults, cycles and others) that -e "
	  "names without :COUNT or @HZ",
	  take_events_per_sample, FIELD(plan.sample_count), .verbs = RECORD },
	{ "event", 'e', "EVENT",
	  "sample this event: cpu-clock (the default), page-faults, cycles, off-cpu and others "
	  "that `pybpfprof events` lists; record: calls of a function with uprobe:/PATH:FUNCTION; "
	  "several with -e each. EVENT:COUNT: a sample for COUNT events; EVENT@HZ: that rate",
	  take_event, FIELD(plan), .verbs = RECORD | AGENT, .flags = OPTION_LIST | OPTION_FIXED },
	{ "any-context", 0, NULL,
	  "with -e, also tracepoints that the kernel may call for another thread than the one that "
	  "runs",
	  take_flag, FIELD(plan.any_context), .verbs = RECORD | AGENT, .flags = OPTION_FIXED },
	{ "off-cpu", 0, NULL,
	  "where threads wait, for what, and for how long; record: the same as -e off-cpu, agent: "
	  "beside the other events",
	  take_flag, FIELD(off_cpu), .verbs = RECORD | AGENT, .flags = OPTION_FIXED },
	{ "off-cpu-min", 0, "TIME", "leave out waits that are shorter: 50us, 1ms, 1s",
	  take_duration, FIELD(plan.off_cpu_min_s), .verbs = RECORD | AGENT,
	  .flags = OPTION_FIXED },
	{ "split-runqueue", 0, NULL,
	  "with off-cpu: the time from a thread's wake-up until it runs is [runnable, not running]",
	  take_flag, FIELD(plan.split_run_queue), .verbs = RECORD | AGENT, .flags = OPTION_FIXED },
	{ "wall", 'i', NULL,
	  "all time of the threads in one profile, in nanoseconds: on a CPU, and waiting",
	  take_flag, FIELD(wall), .verbs = RECORD },
	{ "idle", 0, NULL, "the same as --wall, as py-spy calls it", take_flag, FIELD(wall),
	  .verbs = RECORD },
	{ "gil", 'g', NULL, "only samples of the thread that holds the GIL", take_flag,
	  FIELD(plan.gil), .verbs = RECORD },
	{ "gil-blame", 0, NULL,
	  "who keeps others from running: samples of the thread that holds the GIL, each as the "
	  "nanoseconds that other threads waited for it meanwhile",
	  take_flag, FIELD(gil_blame), .verbs = RECORD },
	{ "window", 0, "TIME", "length of one profile", take_window, FIELD(window_s),
	  .verbs = AGENT, .fallback = "10s" },
	{ "cpu-budget", 0, "PERCENT",
	  "lower the rate if the agent uses more than this share of all CPUs; off: no limit",
	  take_share, FIELD(cpu_budget), .verbs = AGENT, .flags = OPTION_OFF, .fallback = "1%" },
	{ "memory-limit", 0, "SIZE", "the same for its memory, such as 300M", take_size,
	  FIELD(memory_limit), .verbs = AGENT, .flags = OPTION_OFF, .fallback = "off" },

	{ "kernel", 'k', NULL, "add the kernel's frames, such as vfs_read_[k]", take_flag,
	  FIELD(plan.kernel), .verbs = RECORD | AGENT, .flags = OPTION_FIXED },
	{ "native", 'n', NULL,
	  "add native frames: C extensions, libraries, and the interpreter's own functions that do "
	  "the work, such as list_sort",
	  take_flag, FIELD(plan.native), .verbs = RECORD | AGENT, .flags = OPTION_FIXED },
	{ "native-all", 0, NULL, "add all native frames, also those of the interpreter's calls",
	  take_flag, FIELD(plan.native_all), .verbs = RECORD },
	{ "no-native", 0, NULL,
	  "leave out the native and kernel frames that html has without -n and -k", take_flag,
	  FIELD(no_native), .verbs = RECORD },
	{ "unwind-memory", 0, "SIZE", "memory for the unwind tables of native frames", take_size,
	  FIELD(plan.unwind_memory), .verbs = RECORD | AGENT, .flags = OPTION_FIXED,
	  .fallback = "64M" },

	HEADING(REPORT, "What to show:"),
	HEADING(AGENT, "Where profiles go:"),
	{ "store", 0, "DIR", "folder of the agent's store; the agent creates it if it is missing",
	  take_text, FIELD(folder), .verbs = AGENT | REPORT, .flags = OPTION_FIXED },
	{ "store-size", 0, "SIZE", "remove the oldest profiles beyond this size, such as 500M",
	  take_size, FIELD(store_bytes), .verbs = AGENT, .fallback = "1G" },
	{ "store-age", 0, "TIME", "remove profiles older than this, such as 12h", take_duration,
	  FIELD(store_age_s), .verbs = AGENT, .fallback = "7d" },
	{ "push", 0, "URL",
	  "push profiles to a backend: pyroscope+http://HOST:PORT, parca+https://..., "
	  "otlp+https://...; may be repeated. Options follow the URL in the same argument, after "
	  "spaces: token=FILE, user=FILE (NAME:PASSWORD), ca=FILE, tenant=ID, queue=SIZE (32M), "
	  "timeout=TIME (30s)",
	  take_push, FIELD(pushed), .verbs = AGENT, .flags = OPTION_LIST | OPTION_FIXED },
	{ "listen", 0, "ADDRESS",
	  "serve metrics and profiles by HTTP here; off: nowhere. There is no authentication",
	  take_text, FIELD(address), .verbs = AGENT, .flags = OPTION_FIXED | OPTION_OFF,
	  .fallback = "127.0.0.1:7117" },
	{ "since", 0, "TIME",
	  "start of the time to show: an age such as 10min, 1h or 2d, or a time such as 01:20, "
	  "2026-01-02 or 2026-01-02T03:04:05Z",
	  take_moment, FIELD(since_unix_ns), .verbs = REPORT, .fallback = "1h" },
	{ "until", 0, "TIME", "end of the time to show (default: now)", take_moment,
	  FIELD(until_unix_ns), .verbs = REPORT },
	{ "diff", 0, "TIME",
	  "compare with an equally long time that was TIME earlier, such as 1d, or began then: a "
	  "table of functions; a flame graph with -f html; each stack with -f folded or pprof",
	  take_diff, FIELD(diff), .verbs = REPORT },
	{ "label", 0, "NAME=VALUE",
	  "only services with this label, such as service_name=web; repeat it for one name to "
	  "match "
	  "any of the values, for several names to match all",
	  take_label, FIELD(labels), .verbs = REPORT, .flags = OPTION_LIST },

	HEADING(AGENT, "Labels:"),
	{ "node", 0, "NAME",
	  "the label `node`, and the node whose pods are read, as the cluster names it (default: "
	  "this "
	  "machine's name); needs a restart",
	  take_text, FIELD(node), .verbs = AGENT },
	{ "with-pid", 0, NULL, "add the label `pid`: keep processes apart", take_flag,
	  FIELD(with_pid), .verbs = AGENT },
	{ "with-thread", 0, NULL, "add the label `thread`, its name: keep threads apart", take_flag,
	  FIELD(threads), .verbs = AGENT, .flags = OPTION_FIXED },
	{ "relabel", 0, "RULE",
	  "change labels or select by them, like Prometheus' relabel_config; may be repeated. One "
	  "JSON object per rule: {\"source_labels\": [\"comm\"], \"regex\": \"sh\", \"action\": "
	  "\"drop\"}",
	  take_relabel, FIELD(rules), .verbs = AGENT, .flags = OPTION_RULES },
	{ "kubernetes", 0, "PLACE",
	  "the API server that names pods: https://HOST:PORT, off, or auto, the server of the "
	  "cluster "
	  "that the agent runs in",
	  take_kubernetes, FIELD(kubernetes), .verbs = AGENT, .flags = OPTION_FIXED,
	  .fallback = API_SERVER_AUTO },
	{ "kubernetes-credentials", 0, "DIR", "folder of `token` and `ca.crt`", take_text,
	  FIELD(credentials), .verbs = AGENT, .flags = OPTION_FIXED,
	  .fallback = API_SERVER_CREDENTIALS },

	HEADING(RECORD | REPORT, "Output:"),
	HEADING(AGENT, "Other:"),
	{ "output", 'o', "FILE",
	  "where to write; - is standard output; %p becomes the PID or all, %t the time (default: "
	  "a name "
	  "with these and the format's suffix)",
	  take_text, FIELD(output), .verbs = RECORD | REPORT },
	{ "format", 'f', "FORMAT", "one of the formats below (default: by FILE's suffix)",
	  take_format, FIELD(format), .verbs = RECORD | REPORT },
	{ "threads", 't', NULL, "show each thread separately", take_flag, FIELD(threads),
	  .verbs = RECORD },
	{ "show", 0, "EVENT", "of several events, show this one", take_shown, FIELD(show),
	  .verbs = RECORD | REPORT },
	{ "function", 'F', NULL, "show a function's first line, not the current line",
	  take_constant, FIELD(plan.lines), .verbs = RECORD, .constant = LINES_FUNCTION },
	{ "nolineno", 0, NULL, "show no line numbers", take_constant, FIELD(plan.lines),
	  .verbs = RECORD, .constant = LINES_NONE },
	{ "full-filenames", 0, NULL, "show full file names, as the program has them", take_flag,
	  FIELD(shown.full_filenames), .verbs = RECORD | REPORT },
	{ "stats", 0, "FILE", "write the ledger, which counts every sample, as JSON", take_text,
	  FIELD(stats), .verbs = RECORD },
	{ "config", 0, "FILE",
	  "read options from a YAML file, such as `store-age: 7d`; SIGHUP reads it again",
	  take_text, FIELD(config), .verbs = AGENT, .flags = OPTION_LOCAL },
	{ "print-config", 0, NULL,
	  "print the options in effect and where each comes from, and exit", take_flag,
	  FIELD(print_config), .verbs = AGENT, .flags = OPTION_LOCAL },
	{ "json", 0, NULL, "print JSON", take_flag, FIELD(json), .verbs = CHECK },
	{ "agent", 0, NULL,
	  "also check what pybpfprof agent needs with the options after this one: its store, the "
	  "address it listens on, its backends, and the Kubernetes API server",
	  NULL, 0, .verbs = CHECK, .flags = OPTION_LAST },
	{ "quiet", 'q', NULL, "print errors only", take_constant, FIELD(level),
	  .verbs = RECORD | AGENT | REPORT, .constant = LOG_ERROR },
	{ "verbose", 'v', NULL, "print more messages", take_constant, FIELD(level),
	  .verbs = RECORD | AGENT | CHECK, .constant = LOG_DEBUG },
	{ "version", 0, NULL, "print the version", take_flag, FIELD(version), .verbs = RECORD },
	{ "help", 'h', NULL, "print this help", take_flag, FIELD(help),
	  .verbs = RECORD | AGENT | REPORT | CHECK | EVENTS, .flags = OPTION_LOCAL },

	ELSEWHERE("nonblocking", 0, "leave it out: pybpfprof never pauses a process"),
};

const struct option *option_table__next(const struct verb *verb, const struct option *option)
{
	const struct option *end = option_table + sizeof(option_table) / sizeof(option_table[0]);

	for (option = option ? option + 1 : option_table; option < end; option++)
		if (option->verbs & verb->bit)
			return option;
	return NULL;
}

const struct option *option_table__find(const struct verb *verb, const char *name)
{
	const struct option *option = NULL;

	while ((option = option_table__next(verb, option)))
		if (option->name && strcmp(option->name, name) == 0)
			break;
	return option;
}

const char *option_table__fallback(const struct verb *verb, const struct option *option)
{
	return verb->bit == VERB_AGENT && option->agent_fallback ? option->agent_fallback
								 : option->fallback;
}
