/* SPDX-License-Identifier: BSD-2-Clause */
/* Values as a configuration file has them, which is YAML: what config_file.c reads as the same. */
#ifndef PYBPFPROF_CONFIG_TEXT_H
#define PYBPFPROF_CONFIG_TEXT_H

#include <stdio.h>

/* In quotes, where VALUE could be taken for something else.  One that is not valid UTF-8 cannot be
 * in such a file: it is printed as it is, and refused where it is read. */
void config_text__print(const char *value, FILE *file);

/* RULE: a rule of relabelling, valid, as JSON, of which YAML has not all: neither its spelling of
 * what is beyond U+FFFF, nor some of what it may have as it is. */
void config_text__print_rule(const char *rule, FILE *file);

#endif
