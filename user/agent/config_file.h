/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A configuration file: YAML, a mapping of keys to values or to lists of them, or of rules, which
 *are mappings of keys to values or to lists of them.
 *
 *	store: /var/lib/pybpfprof
 *	rate: 49
 *	exclude: [comm=make, uid=1000]
 *	relabel:
 *	  - source_labels: [comm]
 *	    regex: sh
 *	    action: drop
 */
#ifndef PYBPFPROF_CONFIG_FILE_H
#define PYBPFPROF_CONFIG_FILE_H

#include <stdbool.h>

/* A KEY's VALUE, in LINE, which is the rule's JSON where IS_RULE.  NULL, or what is wrong with it,
 * for free. */
typedef char *config_file__take(void *context, const char *key, const char *value, bool is_rule,
				unsigned int line);

/* Has all keys and values of the file PATH taken.  NULL, or what is wrong, with path and line,
 * which the caller frees. */
char *config_file__read(const char *path, config_file__take *take, void *context);

#endif
