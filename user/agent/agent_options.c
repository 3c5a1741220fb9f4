// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_options.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "kubernetes/api_server.h"

#define VERB "agent"

/* A prime, which is in step with little, and costs little. */
#define RATE_HZ "19"

#define WINDOW_S_MIN 0.1
#define WINDOW_S_MAX 3600.0

#define OFF "off"

#define LISTEN "127.0.0.1:7117"

#define TEXT_OF(number) #number
#define TEXT(macro)	TEXT_OF(macro)
#define PROCESSES	TEXT(TARGETS_MAX)

#define NS_PER_S 1000000000LL

static char *take_store(void *options, const char *value)
{
	((struct agent_options *)options)->folder = value;
	return NULL;
}

static char *take_size(void *options, const char *value)
{
	if (options__parse_size(value, &((struct agent_options *)options)->limits.bytes))
		return NULL;
	return option_table__refuse("size", value, "a size of 1M or more, such as 500M or 2G");
}

static char *take_age(void *options, const char *value)
{
	double age_s;

	if (!options__parse_duration(value, &age_s))
		return option_table__refuse("age", value, "a time such as 12h or 7d");
	((struct agent_options *)options)->limits.age_ns = (int64_t)(age_s * NS_PER_S);
	return NULL;
}

static char *take_window(void *context, const char *value)
{
	struct agent_options *options = context;

	if (options__parse_duration(value, &options->window_s) &&
	    options->window_s >= WINDOW_S_MIN && options->window_s <= WINDOW_S_MAX)
		return NULL;
	return option_table__refuse("window", value, "a time from 0.1s to 1h");
}

/* "1%"; "off" is 0. */
static char *take_cpu_budget(void *options, const char *value)
{
	char *end;
	double percent = strcmp(value, OFF) == 0 ? 0 : strtod(value, &end);

	if (strcmp(value, OFF) != 0 &&
	    (end == value || strcmp(end, "%") != 0 || !(percent > 0) || percent > 100))
		return option_table__refuse("budget", value,
					    "a share of all CPUs such as 1%, or off");
	((struct agent_options *)options)->budget.cpu = percent / 100;
	return NULL;
}

static char *take_memory_limit(void *options, const char *value)
{
	uint64_t *bytes = &((struct agent_options *)options)->budget.bytes;

	if (strcmp(value, OFF) == 0)
		*bytes = 0;
	else if (!options__parse_size(value, bytes))
		return option_table__refuse("limit", value,
					    "a size of 1M or more such as 150M, or off");
	return NULL;
}

static char *take_push(void *options, const char *value)
{
	char *fault = push_destinations__add(&((struct agent_options *)options)->pushed, value);
	char *wrong;

	if (!fault)
		return NULL;
	/* It may hold a password. */
	wrong = xasprintf("cannot push to '%s': %s", strchr(value, '@') ? "..." : value, fault);
	free(fault);
	return wrong;
}

static char *take_listen(void *options, const char *value)
{
	((struct agent_options *)options)->address = strcmp(value, OFF) != 0 ? value : NULL;
	return NULL;
}

static char *take_rate(void *options, const char *value)
{
	return options__set_rate(&((struct agent_options *)options)->sampled, value);
}

static char *take_node(void *options, const char *value)
{
	((struct agent_options *)options)->node = value;
	return NULL;
}

static char *take_with_pid(void *options, const char *value)
{
	(void)value;
	((struct agent_options *)options)->with_pid = true;
	return NULL;
}

static char *take_with_thread(void *options, const char *value)
{
	(void)value;
	((struct agent_options *)options)->sampled.threads = THREADS_ALL;
	return NULL;
}

static char *take_relabel(void *options, const char *value)
{
	return relabel__add(&((struct agent_options *)options)->rules, value);
}

static char *take_kubernetes(void *options, const char *value)
{
	char *fault = api_server__check(value), *wrong;

	((struct agent_options *)options)->kubernetes = value;
	if (!fault)
		return NULL;
	/* It is not repeated: it may have a password. */
	wrong = xasprintf("--kubernetes is not auto, off or a usable URL: %s", fault);
	free(fault);
	return wrong;
}

static char *take_credentials(void *options, const char *value)
{
	((struct agent_options *)options)->credentials = value;
	return NULL;
}

static char *take_max_processes(void *options, const char *value)
{
	return options__set_max_processes(&((struct agent_options *)options)->sampled, value);
}

#define RULE(kind)                                                                           \
	static char *take_##kind(void *options, const char *value)                           \
	{                                                                                    \
		return options__add_rule(&((struct agent_options *)options)->sampled, #kind, \
					 value);                                             \
	}

RULE(comm)
RULE(cgroup)
RULE(container)
RULE(uid)
RULE(exclude)

static char *take_quiet(void *options, const char *value)
{
	(void)value;
	((struct agent_options *)options)->level = LOG_ERROR;
	return NULL;
}

static char *take_verbose(void *options, const char *value)
{
	(void)value;
	((struct agent_options *)options)->level = LOG_DEBUG;
	return NULL;
}

static char *take_help(void *options, const char *value)
{
	(void)value;
	((struct agent_options *)options)->help = true;
	return NULL;
}

static char *take_config(void *options, const char *value)
{
	(void)options;
	(void)value; /* settings.c has read it */
	return NULL;
}

static char *take_print_config(void *options, const char *value)
{
	(void)value;
	((struct agent_options *)options)->print_config = true;
	return NULL;
}

static const struct option_entry entries[] = {
	{ "config", 0, "FILE",
	  "read options from a YAML file, such as `store-age: 7d`;\nSIGHUP reads it again",
	  take_config, NULL, SETTING_HERE },
	{ "print-config", 0, NULL,
	  "print the options in effect and where each comes from, and exit", take_print_config,
	  NULL, SETTING_HERE },
	{ "store", 0, "DIR", "where to keep profiles; created if missing", take_store, NULL,
	  SETTING_FIXED },
	{ "store-size", 0, "SIZE", "remove the oldest profiles beyond this size, such as 500M (1G)",
	  take_size, "1G", 0 },
	{ "store-age", 0, "TIME", "remove profiles older than this, such as 12h (7d)", take_age,
	  "7d", 0 },
	{ "push", 0, "URL",
	  "push profiles to a backend: pyroscope+http://HOST:PORT,\nparca+https://..., "
	  "otlp+https://...; may be repeated.\nOptions follow the URL in the same argument, after "
	  "spaces:\n"
	  "token=FILE, user=FILE (NAME:PASSWORD), ca=FILE, tenant=ID,\n"
	  "queue=SIZE (32M), timeout=TIME (30s)",
	  take_push, NULL, SETTING_LIST | SETTING_FIXED },
	{ "window", 0, "TIME", "length of one profile (10s)", take_window, "10s", 0 },
	{ "cpu-budget", 0, "PERCENT",
	  "lower the rate if the agent uses more than this share\nof all CPUs (1%); off: no "
	  "limit",
	  take_cpu_budget, "1%", 0 },
	{ "memory-limit", 0, "SIZE", "the same for its memory, such as 300M (off)",
	  take_memory_limit, OFF, 0 },
	{ "listen", 0, "ADDRESS",
	  "serve metrics and profiles by HTTP here (" LISTEN
	  "); off: nowhere.\nThere is no authentication",
	  take_listen, LISTEN, SETTING_FIXED },
	{ "rate", 'r', "HZ", "samples per second of busy CPU (" RATE_HZ ")", take_rate, RATE_HZ,
	  0 },
	{ "node", 0, "NAME",
	  "the label `node` (this machine's name), and the node whose pods\nare read, as the "
	  "cluster names it; needs a restart",
	  take_node, NULL, 0 },
	{ "with-pid", 0, NULL, "add the label `pid`: keep processes apart", take_with_pid, NULL,
	  0 },
	{ "with-thread", 0, NULL, "add the label `thread`, its name: keep threads apart",
	  take_with_thread, NULL, SETTING_FIXED },
	{ "relabel", 0, "RULE",
	  "change labels or select by them, like Prometheus' relabel_config;\nmay be repeated. One "
	  "JSON object per rule:\n"
	  "{\"source_labels\": [\"comm\"], \"regex\": \"sh\", \"action\": \"drop\"}",
	  take_relabel, NULL, SETTING_RULES },
	{ "kubernetes", 0, "PLACE",
	  "the API server that names pods: https://HOST:PORT, off, or auto,\nthe server of the "
	  "cluster that the agent runs in (auto)",
	  take_kubernetes, API_SERVER_AUTO, SETTING_FIXED },
	{ "kubernetes-credentials", 0, "DIR",
	  "folder of `token` and `ca.crt`\n(" API_SERVER_CREDENTIALS ")", take_credentials,
	  API_SERVER_CREDENTIALS, SETTING_FIXED },
	{ "comm", 0, "GLOB", "only processes with a matching script, module or kernel name",
	  take_comm, NULL, SETTING_LIST | SETTING_FIXED },
	{ "cgroup", 0, "PATH", "only processes in this cgroup or below", take_cgroup, NULL,
	  SETTING_LIST | SETTING_FIXED },
	{ "container", 0, "ID", "only processes in this container (its ID or the start of it)",
	  take_container, NULL, SETTING_LIST | SETTING_FIXED },
	{ "uid", 0, "USER", "only processes of this user; several rules of one kind: any", take_uid,
	  NULL, SETTING_LIST | SETTING_FIXED },
	{ "exclude", 0, "KIND=X", "leave out processes with this comm, cgroup, container or uid",
	  take_exclude, NULL, SETTING_LIST | SETTING_FIXED },
	{ "max-processes", 0, "N", "sample at most this many processes at a time (" PROCESSES ")",
	  take_max_processes, PROCESSES, SETTING_FIXED },
	{ "quiet", 'q', NULL, "print errors only", take_quiet, NULL, 0 },
	{ "verbose", 'v', NULL, "say more", take_verbose, NULL, 0 },
	{ "help", 'h', NULL, "print this help", take_help, NULL, SETTING_HERE },
	{ 0 },
};

void agent_options__print_help(void)
{
	puts("Profiles every Python on the machine continuously: into a store, to backends, or for "
	     "HTTP clients.\n\n"
	     "Usage: pybpfprof agent [--store DIR] [--push URL]... [--listen ADDRESS] "
	     "[OPTION...]\n");
	option_table__print(entries);
	puts("\nEach option is also a key of the file and an environment variable: store-age "
	     "is\nPYBPFPROF_STORE_AGE. The command line overrides the environment, which overrides "
	     "the file.\n\n"
	     "SIGTERM or Ctrl-C stops it, after it has stored and pushed its last window.\n\n"
	     "Examples:\n"
	     "  sudo pybpfprof agent --store /var/lib/pybpfprof\n"
	     "  sudo pybpfprof agent --push pyroscope+http://localhost:4040\n"
	     "  sudo pybpfprof report --store /var/lib/pybpfprof --since 5m\n\n"
	     "Exit status: 0 stopped; 1 failed; 2 wrong usage; 4 the kernel or missing "
	     "permissions\nprevent it.");
}

/* Whether somebody is to fetch the profiles, where they are wanted nowhere else. */
static bool is_to_be_asked(const struct agent_options *options)
{
	return !options->listens_by_default && options->address;
}

/* What is neither an option's nor a default. */
static enum exit_status complete(struct agent_options *options)
{
	char *wrong = push_destinations__check_window(&options->pushed,
						      (int64_t)(options->window_s * NS_PER_S));

	options->listens_by_default = !settings__is_chosen(options->settings, "listen");
	uname(&options->machine);
	if (!options->node)
		options->node = options->machine.nodename;
	if (wrong) {
		log__error("%s", wrong);
		free(wrong);
		return STATUS_USAGE;
	}
	if (options->help || options->print_config || options->folder || options->pushed.count ||
	    is_to_be_asked(options))
		return STATUS_WRITTEN;
	log__error("nowhere to send profiles: add --store DIR, --push URL or --listen ADDRESS; see "
		   "pybpfprof " VERB " --help");
	return STATUS_USAGE;
}

/* What counts now, as far as it may differ from BEFORE, NULL: there was nothing. */
static enum exit_status read_options(int count, char **arguments, const struct settings *before,
				     struct agent_options *options)
{
	enum exit_status status;

	*options = (struct agent_options){
		.level = LOG_INFO,
		/* No label tells threads, unless that is asked for. */
		.sampled = { .following = FOLLOW_ALL, .threads = THREADS_MERGED },
		.count = count,
		.arguments = arguments,
	};
	status = settings__find(VERB, entries, count, arguments, &options->settings);
	if (!status && before)
		settings__keep_fixed(options->settings, before);
	if (!status)
		status = settings__apply(options->settings, options);
	if (!status)
		status = complete(options);
	if (status)
		agent_options__free(options);
	return status;
}

enum exit_status agent_options__parse(int count, char **arguments, struct agent_options *options)
{
	enum exit_status status = read_options(count, arguments, NULL, options);

	if (!status)
		log__set_level(options->level);
	return status;
}

bool agent_options__reload(struct agent_options *options)
{
	struct agent_options fresh;
	struct options sampled = options->sampled;
	struct push_destinations pushed = options->pushed;

	if (read_options(options->count, options->arguments, options->settings, &fresh))
		return false;
	/* A recording, and what pushes, have what does not change of these. */
	sampled.rate_hz = fresh.sampled.rate_hz;
	options__free(&fresh.sampled);
	push_destinations__free(&fresh.pushed);
	settings__free(options->settings);
	relabel__free(&options->rules);
	*options = fresh;
	options->sampled = sampled;
	options->pushed = pushed;
	if (options->node == fresh.machine.nodename)
		options->node = options->machine.nodename;
	log__set_level(options->level);
	return true;
}

void agent_options__free(struct agent_options *options)
{
	push_destinations__free(&options->pushed);
	relabel__free(&options->rules);
	options__free(&options->sampled);
	settings__free(options->settings);
}
