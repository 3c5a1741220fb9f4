/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options of all verbs.  option_table.c has one entry for each, which names its field below.  A
 * value comes from the first of these that has it:
 *
 *	--store-size 2G			the command line
 *	PYBPFPROF_STORE_SIZE=2G		the environment, for the agent
 *	store-size: 2G			the file that --config names, for the agent
 *	the table's default
 *
 * The settings keep the source of each.
 */
#ifndef PYBPFPROF_OPTIONS_H
#define PYBPFPROF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "base/exit_status.h"
#include "base/log.h"
#include "output/output.h"
#include "push/push_destinations.h"
#include "recording/recording.h"
#include "services/relabel.h"
#include "store/store.h"

#define RATE_HZ_DEFAULT 99

struct option;
struct options;

struct verb {
	enum {
		VERB_RECORD = 1,
		VERB_AGENT = 2,
		VERB_REPORT = 4,
		VERB_CHECK = 8,
		VERB_EVENTS = 16
	} bit;
	const char *name;
	const char *usage, *tail; /* --help before and after the options */
	/* Checks combinations of values, and sets what follows from several; also called with
	 * --help.  Returns NULL, or what is wrong, allocated.  May be NULL itself. */
	char *(*check)(struct options *options);
	/* Does it. */
	enum exit_status (*run)(struct options *options);
};

/* From the lowest priority to the highest. */
enum origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENVIRONMENT, ORIGIN_COMMAND_LINE };

struct setting {
	const struct option *option;
	enum origin origin;
	char *value; /* "true" or "false" for an option without argument */
	char *place; /* such as "FILE:LINE", for messages */
};

/* The settings in effect.  All settings of an option have the same origin.  {} is an empty list. */
struct settings {
	struct setting *list;
	size_t count, capacity;
};

struct option_labels {
	struct store_label *list; /* NAME is allocated; VALUE points into the same text */
	size_t count;
};

/* The earlier time to compare with; all zero: none. */
struct option_diff {
	double earlier_s;
	int64_t since_unix_ns; /* its start, if that was given instead */
};

/* Strings belong to the command line or to SETTINGS.  NULL: the option was not given. */
struct options {
	const struct verb *verb;
	bool help, version;
	enum log_level level;

	/* record, agent */
	struct recording_plan plan;
	const char *show; /* this event alone; NULL: all */
	bool off_cpu;	  /* with the event off-cpu */
	bool gil_blame;	  /* record: beside the other events */
	bool wall;	  /* record: the clock and off-cpu as one event */
	bool all, subprocesses, threads;

	const char *tracepoint; /* events: show its fields; NULL: list all events */

	/* record */
	bool no_native;

	/* record, report */
	const char *output; /* may hold %p and %t */
	const char *stats;
	const struct output_format *format;
	struct output_options shown;

	/* agent, report */
	const char *folder; /* of the store */

	/* agent */
	const char *config;
	bool print_config;
	uint64_t store_bytes;
	double store_age_s;
	struct push_destinations pushed;
	double window_s;
	double cpu_budget;	 /* of all CPUs' time, as 0.01; 0: no limit */
	uint64_t memory_limit;	 /* bytes; 0: no limit */
	const char *address;	 /* to listen on */
	bool listens_by_default; /* the user did not choose that address */
	const char *node;	 /* never NULL for the agent */
	bool with_pid;
	struct relabel_rules rules;
	const char *kubernetes, *credentials; /* see api_server.h */

	/* report */
	int64_t since_unix_ns, until_unix_ns;
	struct option_diff diff;
	struct option_labels labels;

	/* check */
	bool json;
	char **agent; /* the agent's command line, which begins with "--agent" */
	int agent_count;

	struct utsname machine; /* NODE's default */
	struct settings settings;
	int count;
	char **arguments;
};

/* Reads VERB's command line, without the verb: ARGUMENTS[0] is its name or the program's.  Returns
 * STATUS_WRITTEN with *OPTIONS for options__free, or STATUS_USAGE after an error message. */
enum exit_status options__parse(const struct verb *verb, int count, char **arguments,
				struct options *options);
void options__free(struct options *options);

/* Runs VERB with its command line, or prints its help.  Returns the exit status. */
enum exit_status options__run(const struct verb *verb, int count, char **arguments);

/* Reads the agent's configuration again.  Options that need a restart keep their values, with a
 * warning.  Returns false after an error message; OPTIONS are unchanged then. */
bool options__reload(struct options *options);

/* Sets the format: that of -f, of the suffix of -o, or the default.  Returns NULL, or what is
 * wrong, allocated. */
char *options__choose_format(struct options *options);

/* Whether the user gave the option NAME, anywhere. */
bool options__is_chosen(const struct options *options, const char *name);

void options__print_help(const struct verb *verb);

/* Writes the values in effect as a configuration file, with the source of each in a comment. */
void options__print_config(const struct options *options, FILE *file);

#endif
