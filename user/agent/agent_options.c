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
	return option_table__refuse("size", value, "a size of 1M or more, as 500M or 2G");
}

static char *take_age(void *options, const char *value)
{
	double age_s;

	if (!options__parse_duration(value, &age_s))
		return option_table__refuse("age", value, "a time, as 12h or 7d");
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
		return option_table__refuse("budget", value, "a part of all CPUs, as 1%, or off");
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
					    "a size of 1M or more, as 150M, or off");
	return NULL;
}

static char *take_push(void *options, const char *value)
{
	char *fault = push_destinations__add(&((struct agent_options *)options)->pushed, value);
	char *wrong;

	if (!fault)
		return NULL;
	/* It may hold a password. */
	wrong = xasprintf("nothing can be pushed to '%s': %s", strchr(value, '@') ? "..." : value,
			  fault);
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
	wrong = xasprintf("--kubernetes is neither auto, off, nor a URL to ask: %s", fault);
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
	  "options from there: YAML, as `store-age: 7d`; read again upon SIGHUP", take_config, NULL,
	  SETTING_HERE },
	{ "print-config", 0, NULL, "say what counts, and where it is from, and do nothing",
	  take_print_config, NULL, SETTING_HERE },
	{ "store", 0, "DIR", "where to keep the profiles; made where it is not there", take_store,
	  NULL, SETTING_FIXED },
	{ "store-size", 0, "SIZE", "at most about so much, as 500M (1G): the oldest go", take_size,
	  "1G", 0 },
	{ "store-age", 0, "TIME", "and not for longer than that, as 12h (7d)", take_age, "7d", 0 },
	{ "push", 0, "URL",
	  "send them to a backend: pyroscope+http://HOST:PORT, parca+https://...,\n"
	  "otlp+...; several are given one by one.  In one word with it, after spaces:\n"
	  "token=FILE, user=FILE (NAME:PASSWORD), ca=FILE, tenant=ID,\n"
	  "queue=SIZE (32M), timeout=TIME (30s)",
	  take_push, NULL, SETTING_LIST | SETTING_FIXED },
	{ "window", 0, "TIME", "one profile for each such time (10s)", take_window, "10s", 0 },
	{ "cpu-budget", 0, "PERCENT",
	  "how much of all CPUs the agent may take (1%), which it\nkeeps by lowering the rate; or "
	  "off",
	  take_cpu_budget, "1%", 0 },
	{ "memory-limit", 0, "SIZE", "the same for its memory (off)", take_memory_limit, OFF, 0 },
	{ "listen", 0, "ADDRESS",
	  "for metrics and profiles by HTTP (" LISTEN "); off: nowhere.\n"
	  "Nobody who can reach it is asked who he is",
	  take_listen, LISTEN, SETTING_FIXED },
	{ "rate", 'r', "HZ", "samples a second of busy CPU (" RATE_HZ ")", take_rate, RATE_HZ, 0 },
	{ "node", 0, "NAME",
	  "the label `node` (this machine's name), and the node whose pods are\nasked for: as the "
	  "cluster calls it; that takes a new start",
	  take_node, NULL, 0 },
	{ "with-pid", 0, NULL, "a label `pid`, so that each process is apart", take_with_pid, NULL,
	  0 },
	{ "with-thread", 0, NULL, "a label `thread`, its name, so that threads are apart",
	  take_with_thread, NULL, SETTING_FIXED },
	{ "relabel", 0, "RULE",
	  "change labels, or choose by them, as Prometheus' relabel_config\n"
	  "has it; several are given in order.  In one word, as JSON:\n"
	  "{\"source_labels\": [\"comm\"], \"regex\": \"sh\", \"action\": \"drop\"}",
	  take_relabel, NULL, SETTING_RULES },
	{ "kubernetes", 0, "PLACE",
	  "the API server that names pods: https://HOST:PORT, off, or auto\n"
	  "(auto): the one of the cluster that the agent runs in",
	  take_kubernetes, API_SERVER_AUTO, SETTING_FIXED },
	{ "kubernetes-credentials", 0, "DIR",
	  "where `token` and `ca.crt` are\n(" API_SERVER_CREDENTIALS ")", take_credentials,
	  API_SERVER_CREDENTIALS, SETTING_FIXED },
	{ "comm", 0, "GLOB", "only processes with such a name: the script's, module's or kernel's;",
	  take_comm, NULL, SETTING_LIST | SETTING_FIXED },
	{ "cgroup", 0, "PATH", "in this control group, or below;", take_cgroup, NULL,
	  SETTING_LIST | SETTING_FIXED },
	{ "container", 0, "ID", "in this container, by its ID or how that begins;", take_container,
	  NULL, SETTING_LIST | SETTING_FIXED },
	{ "uid", 0, "USER", "of this user; several of a kind: any", take_uid, NULL,
	  SETTING_LIST | SETTING_FIXED },
	{ "exclude", 0, "KIND=X", "but not those with comm, cgroup, container or uid X",
	  take_exclude, NULL, SETTING_LIST | SETTING_FIXED },
	{ "max-processes", 0, "N", "room for so many at a time (" PROCESSES ")", take_max_processes,
	  PROCESSES, SETTING_FIXED },
	{ "quiet", 'q', NULL, "say nothing but errors", take_quiet, NULL, 0 },
	{ "verbose", 'v', NULL, "say more", take_verbose, NULL, 0 },
	{ "help", 'h', NULL, "print this and end", take_help, NULL, SETTING_HERE },
	{ 0 },
};

void agent_options__print_help(void)
{
	puts("Profiles every Python of the machine, always: into a store, to backends, or for who "
	     "asks.\n\n"
	     "Usage: pybpfprof agent [--store DIR] [--push URL]... [--listen ADDRESS] "
	     "[OPTION...]\n");
	option_table__print(entries);
	puts("\nEach option may also be a key of the file, and a variable of the environment: "
	     "store-age is\nPYBPFPROF_STORE_AGE. What is given here counts before that, and that "
	     "before the file.\n\n"
	     "It ends with SIGTERM or Ctrl-C, and stores and pushes what it has until then.\n\n"
	     "Examples:\n"
	     "  sudo pybpfprof agent --store /var/lib/pybpfprof\n"
	     "  sudo pybpfprof agent --push pyroscope+http://localhost:4040\n"
	     "  sudo pybpfprof report --store /var/lib/pybpfprof --since 5m\n\n"
	     "Exit status: 0 it was ended; 1 failed; 2 wrong usage; 4 the kernel or the "
	     "permissions do\nnot allow it.");
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
	log__error("nowhere to keep profiles: --store DIR, --push URL, or --listen ADDRESS for "
		   "who fetches them; see pybpfprof " VERB " --help");
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
