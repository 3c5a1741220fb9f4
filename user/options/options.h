/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the user wants, by verb.  option_table.c has one entry for each option, with the field below
 * that holds its value.  A value comes from, first to last,
 *
 *	--store-size 2G			the command line
 *	PYBPFPROF_STORE_SIZE=2G		the environment, for the agent
 *	store-size: 2G			the file that --config names, for the agent
 *	the table's default
 *
 * options.c keeps where each is from.
 */
#ifndef PYBPFPROF_OPTIONS_H
#define PYBPFPROF_OPTIONS_H

#include <stdbool.h>
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

struct options;

struct verb {
	enum { VERB_RECORD = 1, VERB_AGENT = 2, VERB_REPORT = 4, VERB_CHECK = 8 } bit;
	const char *name;
	const char *usage, *tail; /* --help before and after the options */
	/* What no single value shows to be wrong, and what follows from several; also with --help.
	 * NULL, or what is wrong, allocated; NULL: there is nothing to check. */
	char *(*check)(struct options *options);
};

struct option_labels {
	struct store_label *list; /* NAME is allocated, VALUE is in the same text */
	size_t count;
};

/* What is compared; all zero: nothing. */
struct option_diff {
	double earlier_s;
	int64_t since_unix_ns; /* when it begins, instead */
};

/* Strings belong to the command line or to SETTINGS; NULL: none was given. */
struct options {
	const struct verb *verb;
	bool help, version;
	enum log_level level;

	/* record, agent */
	struct recording_plan plan;
	const char *show; /* this event alone; NULL: all */
	bool all, subprocesses, threads;

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
	bool listens_by_default; /* nobody chose that address */
	const char *node;	 /* never NULL for the agent */
	bool with_pid;
	struct relabel_rules rules;
	const char *kubernetes, *credentials; /* as in api_server.h */

	/* report */
	int64_t since_unix_ns, until_unix_ns;
	struct option_diff diff;
	struct option_labels labels;

	/* check */
	bool json;
	char **agent; /* the agent's command line, which begins with "--agent" */
	int agent_count;

	struct utsname machine; /* NODE's default */
	struct settings *settings;
	int count;
	char **arguments;
};

/* Reads VERB's command line; ARGUMENTS[0] is the verb's or the program's name.  STATUS_WRITTEN with
 * *OPTIONS for options__free, or STATUS_USAGE after it said what is wrong. */
enum exit_status options__parse(const struct verb *verb, int count, char **arguments,
				struct options *options);
void options__free(struct options *options);

/* Reads the agent's configuration again.  False after it said what is wrong: OPTIONS are then as
 * before.  What needs a restart stays, with a warning. */
bool options__reload(struct options *options);

/* The format: -f's, that of -o's suffix, or the default.  NULL, or what is wrong, allocated. */
char *options__choose_format(struct options *options);

/* The configuration file; NULL: there is none. */
const char *options__file(const struct options *options);

/* Whether the option NAME has a value that is not the default's. */
bool options__is_chosen(const struct options *options, const char *name);

void options__print_help(const struct verb *verb);

/* Prints the values in effect as a configuration file, each with where it is from. */
void options__print_config(const struct options *options, FILE *file);

/* Whether a user may have meant OTHER by WORD, with as many ERRORS as letters that were changed,
 * added, dropped or swapped: from 1, for the nearest, to OPTIONS_TYPING_ERRORS. */
#define OPTIONS_TYPING_ERRORS 2
bool options__is_near(const char *word, const char *other, unsigned int errors);

#endif
