/* SPDX-License-Identifier: BSD-2-Clause */
/* The values of options as text, before they are parsed, and where each comes from. */
#ifndef PYBPFPROF_SETTINGS_H
#define PYBPFPROF_SETTINGS_H

#include <stddef.h>

struct option;

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

void settings__free(struct settings *settings);

/* The first setting of OPTION, or NULL; also NULL if OPTION is NULL. */
const struct setting *settings__find(const struct settings *settings, const struct option *option);

/* Adds a setting.  It replaces those of a lower origin; one of a higher origin suppresses it. */
void settings__add(struct settings *settings, const struct option *option, enum origin origin,
		   const char *value, const char *place);

/* As settings__add, but checks that VALUE is "true" or "false" if OPTION has no argument.  Returns
 * NULL, or what is wrong, allocated. */
char *settings__try(struct settings *settings, const struct option *option, enum origin origin,
		    const char *value, const char *place);

/* Removes all settings of OPTION. */
void settings__drop(struct settings *settings, const struct option *option);

#endif
