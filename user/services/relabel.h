/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules that change labels or select samples by them.  They work like Prometheus' relabel_config:
 *
 *	- source_labels: [__meta_kubernetes_namespace, comm]
 *	  separator: /			";" by default
 *	  regex: (.+)/python.*		must match the whole text; "(.*)" by default
 *	  target_label: team
 *	  replacement: $1		"$1" by default; "" removes the label
 *	  action: replace		or keep, drop, keepequal, dropequal, labelmap, labeldrop,
 *					labelkeep, lowercase, uppercase
 */
#ifndef PYBPFPROF_RELABEL_H
#define PYBPFPROF_RELABEL_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* The prefix of labels that only rules see. */
#define RELABEL_HIDDEN "__"

struct relabel_rule;

/* {} is an empty list. */
struct relabel_rules {
	struct relabel_rule *list;
	size_t count;
};

/* Adds the rule in TEXT, a JSON object.  Returns NULL, or what is wrong with it, for the caller to
 * free. */
char *relabel__add(struct relabel_rules *rules, const char *text);
void relabel__free(struct relabel_rules *rules);

/* Applies all rules in turn to LABELS, an object of strings.  Returns false if one of them drops
 * the samples with these labels. */
bool relabel__apply(const struct relabel_rules *rules, json_t *labels);

/* PREFIX and TEXT as a label name: each character of TEXT that a name cannot have becomes "_".  The
 * caller frees it. */
char *relabel__name(const char *prefix, const char *text);

#endif
