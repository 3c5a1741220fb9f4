/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the values of options come from.  An option `store-size` is
 *
 *	--store-size 2G			on the command line, which counts before
 *	PYBPFPROF_STORE_SIZE=2G		in the environment, which counts before
 *	store-size: 2G			in the file that --config names
 *
 * One without an argument is true or false there.  What may be given several times is
 * a list in the file and has commas in the environment, or is JSON's list of rules there, and one
 * place's list counts in place of another's.
 */
#ifndef PYBPFPROF_SETTINGS_H
#define PYBPFPROF_SETTINGS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/exit_status.h"
#include "options/option_table.h"

/* Flags of an option. */
#define SETTING_LIST  1 /* may be given several times */
#define SETTING_HERE  2 /* never in the file; without an argument, on the command line only */
#define SETTING_FIXED 4 /* until the program ends: a reload does not change it */
#define SETTING_RULES 8 /* as SETTING_LIST, of JSON's objects, which the file has as YAML's */

struct settings;

/* Finds the values of OPTIONS, the table of VERB, of which "config" names the file.  Nothing is
 * taken yet.  STATUS_WRITTEN with *SETTINGS for settings__free, which takes NULL too, or
 * STATUS_USAGE or STATUS_FAILED after what is wrong was said. */
enum exit_status settings__find(const char *verb, const struct option_entry *options, int count,
				char **arguments, struct settings **settings);
void settings__free(struct settings *settings);

/* Has the fixed ones what they are in OLD, and says so where they differ. */
void settings__keep_fixed(struct settings *settings, const struct settings *old);

/* Has each option take what counts for it.  STATUS_WRITTEN, or STATUS_USAGE after what is wrong was
 * said. */
enum exit_status settings__apply(const struct settings *settings, void *context);

/* Whether somebody has chosen the option NAME's value, be it that of the default. */
bool settings__is_chosen(const struct settings *settings, const char *name);

/* Prints what counts as a configuration file, each line with where it is from. */
void settings__print(const struct settings *settings, FILE *file);

/* The file's path; NULL: there is none. */
const char *settings__file(const struct settings *settings);

#endif
