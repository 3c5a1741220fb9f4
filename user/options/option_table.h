/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of all verbs, one entry each, and the readers of their sources. */
#ifndef PYBPFPROF_OPTION_TABLE_H
#define PYBPFPROF_OPTION_TABLE_H

#include <stddef.h>

#include "options/options.h"

/* Flags of an option.  Without LIST or RULES its last value counts. */
#define OPTION_LIST  1	/* may be given several times */
#define OPTION_RULES 2	/* a list of JSON objects, in the file YAML mappings */
#define OPTION_FIXED 4	/* a reload does not change it */
#define OPTION_LOCAL 8	/* not in the file; without an argument not in the environment either */
#define OPTION_OFF   16 /* the value "off" means none */
#define OPTION_WORDS 32 /* words that follow its value are more values */
#define OPTION_LAST  64 /* all that follows is the command line of another verb */

struct option {
	const char *name; /* NULL: HELP is a heading of --help */
	char letter;	  /* 0: none */
	const char *argument, *help;
	/* Stores VALUE, or NULL if there is no ARGUMENT, in FIELD.  Returns NULL, or what is
	 * wrong, allocated. */
	char *(*take)(const struct option *option, void *field, const char *value);
	size_t field;	    /* its offset in struct options */
	unsigned int verbs; /* VERB_ bits */
	unsigned int flags;
	const char *fallback, *agent_fallback; /* the default; the agent's, if it has its own */
	unsigned int constant;		       /* what the option without ARGUMENT stores */
	const char *instead; /* the option does not exist: what to do; not in --help */
};

/* VERB's option or heading after OPTION, or the first one after NULL; NULL at the end. */
const struct option *option_table__next(const struct verb *verb, const struct option *option);

/* VERB's option NAME, or NULL. */
const struct option *option_table__find(const struct verb *verb, const char *name);

/* VERB's default of OPTION, or NULL. */
const char *option_table__fallback(const struct verb *verb, const struct option *option);

/* Adds a setting.  It replaces those of a lower origin; one of a higher origin suppresses it. */
void settings__add(struct settings *settings, const struct option *option, enum origin origin,
		   const char *value, const char *place);

/* The same, but checks that VALUE is "true" or "false" if OPTION has no argument.  Returns NULL, or
 * what is wrong, allocated. */
char *settings__try(struct settings *settings, const struct option *option, enum origin origin,
		    const char *value, const char *place);

/* The setting of OPTION after PREVIOUS, or the first one after NULL; NULL at the end.  OPTION may
 * be NULL, which has none. */
const struct setting *settings__next(const struct settings *settings, const struct option *option,
				     const struct setting *previous);

/* Removes the settings of OPTION, and all of them. */
void settings__drop(struct settings *settings, const struct option *option);
void settings__free(struct settings *settings);

/* Adds the settings of OPTIONS' command line.  Returns NULL, or what is wrong, allocated. */
char *command_line__read(struct options *options);

/* Adds VERB's settings from the file PATH.  Returns NULL, or what is wrong, allocated. */
char *config_file__read(const struct verb *verb, const char *path, struct settings *settings);

/* Writes VALUE of OPTION in the syntax of a configuration file. */
void config_file__print(const struct option *option, const char *value, FILE *file);

#endif
