// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent_options.h"
#include "log.h"
#include "option_table.h"

#define VERB "agent"

/* A rate that divides no other evenly, and costs little. */
#define AGENT_RATE_HZ 19

#define WINDOW_S     10.0
#define WINDOW_S_MIN 0.1
#define WINDOW_S_MAX 3600.0

#define STORE_BYTES	(1ULL << 30)
#define STORE_BYTES_MIN (1ULL << 20)
#define STORE_BYTES_MAX (1ULL << 46)
#define STORE_AGE_S	(7 * 86400.0)

#define NS_PER_S 1000000000LL

static char *take_store(void *options, const char *value)
{
	((struct agent_options *)options)->folder = value;
	return NULL;
}

/* "512M", "10G" as bytes; without a letter bytes. */
static bool parse_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	const char *unit;
	double number;
	char *end;

	errno = 0;
	number = strtod(text, &end);
	if (end == text || errno || !isfinite(number) || number <= 0)
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	if (*end && (!unit || end[1]))
		return false;
	for (const char *at = units; unit && at <= unit; at++)
		number *= 1024;
	if (number < STORE_BYTES_MIN || number > STORE_BYTES_MAX)
		return false;
	*bytes = (uint64_t)number;
	return true;
}

static char *take_size(void *options, const char *value)
{
	if (parse_size(value, &((struct agent_options *)options)->limits.bytes))
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
	(void)options;
	(void)value;
	log__set_level(LOG_ERROR);
	return NULL;
}

static char *take_verbose(void *options, const char *value)
{
	(void)options;
	(void)value;
	log__set_level(LOG_DEBUG);
	return NULL;
}

static char *take_help(void *options, const char *value)
{
	(void)value;
	((struct agent_options *)options)->help = true;
	return NULL;
}

static const struct option_entry entries[] = {
	{ "store", 0, "DIR", "where to keep the profiles; made where it is not there", take_store },
	{ "store-size", 0, "SIZE", "at most about so much, as 500M (1G): the oldest go",
	  take_size },
	{ "store-age", 0, "TIME", "and not for longer than that, as 12h (7d)", take_age },
	{ "window", 0, "TIME", "one profile for each such time (10s)", take_window },
	{ "rate", 'r', "HZ", "samples a second of busy CPU (19)", take_rate },
	{ "node", 0, "NAME", "the label `node` (this machine's name)", take_node },
	{ "with-pid", 0, NULL, "a label `pid`, so that each process is apart", take_with_pid },
	{ "comm", 0, "GLOB", "only processes with such a name: the script's, module's or kernel's;",
	  take_comm },
	{ "cgroup", 0, "PATH", "in this control group, or below;", take_cgroup },
	{ "container", 0, "ID", "in this container, by its ID or how that begins;",
	  take_container },
	{ "uid", 0, "USER", "of this user; several of a kind: any", take_uid },
	{ "exclude", 0, "KIND=X", "but not those with comm, cgroup, container or uid X",
	  take_exclude },
	{ "max-processes", 0, "N", "room for so many at a time (4096)", take_max_processes },
	{ "quiet", 'q', NULL, "say nothing but errors", take_quiet },
	{ "verbose", 'v', NULL, "say more", take_verbose },
	{ "help", 'h', NULL, "", take_help },
	{ 0 },
};

void agent_options__print_help(void)
{
	puts("Profiles every Python of the machine, always, into a store.\n\n"
	     "Usage: pybpfprof agent --store DIR [OPTION...]\n");
	option_table__print(entries);
	puts("\nIt ends with SIGTERM or Ctrl-C, and stores what it has until then.\n\n"
	     "Examples:\n"
	     "  sudo pybpfprof agent --store /var/lib/pybpfprof\n"
	     "  sudo pybpfprof report --store /var/lib/pybpfprof --since 5m\n\n"
	     "Exit status: 0 it was ended; 1 failed; 2 wrong usage; 4 the kernel or the "
	     "permissions do\nnot allow it.");
}

enum exit_status agent_options__parse(int count, char **arguments, struct agent_options *options)
{
	enum exit_status status;

	*options = (struct agent_options){
		.limits = { STORE_BYTES, (int64_t)(STORE_AGE_S * NS_PER_S) },
		.window_s = WINDOW_S,
		.sampled = { .rate_hz = AGENT_RATE_HZ,
			     .processes_max = TARGETS_MAX,
			     .following = FOLLOW_ALL },
	};
	status = option_table__parse(VERB, entries, options, count, arguments);
	if (!status && !options->help && !options->folder) {
		log__error("nowhere to keep profiles: --store DIR; see pybpfprof " VERB " --help");
		status = STATUS_USAGE;
	}
	uname(&options->machine);
	if (!options->node)
		options->node = options->machine.nodename;
	if (status)
		agent_options__free(options);
	return status;
}

void agent_options__free(struct agent_options *options)
{
	options__free(&options->sampled);
}
