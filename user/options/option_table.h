/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of all verbs, one entry each, and what reads values for them. */
#ifndef PYBPFPROF_OPTION_TABLE_H
#define PYBPFPROF_OPTION_TABLE_H

#include <stddef.h>

#include "options/options.h"

/* Flags of an option; without LIST or RULES its last value wins. */
#define OPTION_LIST  1	/* may be given several times */
#define OPTION_RULES 2	/* a list of JSON objects, in the file YAML mappings */
#define OPTION_FIXED 4	/* a reload does not change it */
#define OPTION_LOCAL 8	/* never in the file; one without argument on the command line only */
#define OPTION_OFF   16 /* the value "off" stands for none */
#define OPTION_WORDS 32 /* the words behind its value are more of them */
#define OPTION_LAST  64 /* what follows is another verb's command line */

struct option {
	const char *name; /* NULL: HELP is a heading of --help */
	char letter;	  /* 0: none */
	const char *argument, *help;
	/* Stores VALUE, NULL if there is no ARGUMENT, in FIELD.  NULL, or what is wrong,
	 * allocated. */
	char *(*take)(const struct option *option, void *field, const char *value);
	size_t field;	    /* its offset in struct options */
	unsigned int verbs; /* VERB_ bits */
	unsigned int flags;
	const char *fallback, *agent_fallback; /* the default; the agent's, if it has its own */
	unsigned int constant;		       /* what the option without ARGUMENT stores */
	const char *instead; /* there is no such option: what to do; not in --help */
};

/* VERB's option or heading after OPTION, NULL for the first one; NULL at the end. */
const struct option *option_table__next(const struct verb *verb, const struct option *option);

/* VERB's option NAME, or NULL. */
const struct option *option_table__find(const struct verb *verb, const char *name);

/* VERB's default of OPTION, or NULL. */
const char *option_table__fallback(const struct verb *verb, const struct option *option);

/* From what counts least to what counts most.  A place's values replace those of places that count
 * less: only what is in effect is kept. */
enum origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENVIRONMENT, ORIGIN_COMMAND_LINE };

struct settings;

/* Adds VALUE, "true" for an option without argument, from PLACE, which messages name. */
void settings__add(struct settings *settings, const struct option *option, enum origin origin,
		   const char *value, const char *place);

/* The same for a value that is not from a command line.  NULL, or what is wrong, allocated. */
char *settings__try(struct settings *settings, const struct option *option, enum origin origin,
		    const char *value, const char *place);

/* These add what they read, for VERB.  NULL, or what is wrong, allocated. */
char *command_line__read(const struct verb *verb, int count, char **arguments,
			 struct settings *settings, struct options *options);
char *config_file__read(const struct verb *verb, const char *path, struct settings *settings);

/* Prints a VALUE of OPTION as a configuration file has it. */
void config_file__print(const struct option *option, const char *value, FILE *file);

#endif
