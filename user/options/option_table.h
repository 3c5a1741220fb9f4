/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of a verb, as a table: for the command line and for --help. */
#ifndef PYBPFPROF_OPTION_TABLE_H
#define PYBPFPROF_OPTION_TABLE_H

#include "base/exit_status.h"

struct option_entry {
	const char *name;
	char letter;	      /* 0: none */
	const char *argument; /* what --help calls it; NULL: the option takes none */
	const char *help;     /* its lines, without what stands in front */
	/* Takes VALUE, NULL where there is none, which must outlive CONTEXT.  NULL, or what is
	 * wrong with it, which the caller frees. */
	char *(*take)(void *context, const char *value);
	const char *fallback; /* of settings.h: its value where there is no other; NULL: none */
	unsigned int flags;   /* of settings.h */
};

/* Finds the options of VERB's command line by OPTIONS, which end with one that has no name, and has
 * each taken by TAKE.  STATUS_WRITTEN, or STATUS_USAGE after what is wrong was said. */
enum exit_status option_table__walk(const char *verb, const struct option_entry *options, int count,
				    char **arguments,
				    char *(*take)(void *context, const struct option_entry *option,
						  const char *value),
				    void *context);

/* The same, each taken by its own. */
enum exit_status option_table__parse(const char *verb, const struct option_entry *options,
				     void *context, int count, char **arguments);

/* That VALUE, of WHAT, is not WANTED: for what a `take` returns. */
char *option_table__refuse(const char *what, const char *value, const char *wanted);

/* Prints a line or more of --help for each option. */
void option_table__print(const struct option_entry *options);

#endif
