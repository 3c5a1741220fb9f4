/* SPDX-License-Identifier: BSD-2-Clause */
/* One rule of relabel.h, as it is written. */
#ifndef PYBPFPROF_RELABEL_RULE_H
#define PYBPFPROF_RELABEL_RULE_H

#include <stdbool.h>

#include <jansson.h>

#include "services/pattern.h"

enum relabel_action {
	RELABEL_REPLACE,
	RELABEL_KEEP,
	RELABEL_DROP,
	RELABEL_KEEPEQUAL,
	RELABEL_DROPEQUAL,
	RELABEL_LABELMAP,
	RELABEL_LABELDROP,
	RELABEL_LABELKEEP,
	RELABEL_LOWERCASE,
	RELABEL_UPPERCASE,
	RELABEL_ACTION_COUNT,
};

struct relabel_rule {
	enum relabel_action action;
	struct pattern *pattern;
	json_t *written;		/* has all that follows */
	const json_t *sources;		/* a list of names; NULL: none */
	const char *separator, *target; /* target: NULL where there is none */
	const char *replacement;
};

/* NULL with *RULE for relabel_rule__free; or what is wrong, for the caller to free. */
char *relabel_rule__read(const char *text, struct relabel_rule *rule);
void relabel_rule__free(struct relabel_rule *rule);

/* Whether NAME is one that a label may have. */
bool relabel_rule__is_name(const char *name);

#endif
