/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules that change labels, or choose by them, as Prometheus' relabel_config has them:
 *
 *	- source_labels: [__meta_kubernetes_namespace, comm]
 *	  separator: /			";" by default
 *	  regex: (.+)/python.*		the whole of what they are; "(.*)" by default
 *	  target_label: team
 *	  replacement: $1		"$1" by default; "" removes the label
 *	  action: replace		and keep, drop, keepequal, dropequal, labelmap, labeldrop,
 *					labelkeep, lowercase, uppercase
 */
#ifndef PYBPFPROF_RELABEL_H
#define PYBPFPROF_RELABEL_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* Of labels that only rules see. */
#define RELABEL_HIDDEN "__"

struct relabel_rule;

/* {} is none. */
struct relabel_rules {
	struct relabel_rule *list;
	size_t count;
};

/* Adds the rule that TEXT, a JSON object, is.  NULL, or what is wrong with it, for the caller to
 * free. */
char *relabel__add(struct relabel_rules *rules, const char *text);
void relabel__free(struct relabel_rules *rules);

/* Has LABELS, an object of strings, be what all rules make of them in turn.  False where one of
 * them drops what has these. */
bool relabel__apply(const struct relabel_rules *rules, json_t *labels);

/* TEXT as a part of a label's name: what that cannot have is "_"; for the caller to free. */
char *relabel__name(const char *prefix, const char *text);

#endif
