// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "services/relabel_rule.h"

#define DIGITS	   "0123456789"
#define LETTERS	   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define REFERENCES "${}"

static const struct {
	const char *name;
	bool needs_target;
} actions[RELABEL_ACTION_COUNT] = {
	[RELABEL_REPLACE] = { "replace", true },      [RELABEL_KEEP] = { "keep", false },
	[RELABEL_DROP] = { "drop", false },	      [RELABEL_KEEPEQUAL] = { "keepequal", true },
	[RELABEL_DROPEQUAL] = { "dropequal", true },  [RELABEL_LABELMAP] = { "labelmap", false },
	[RELABEL_LABELDROP] = { "labeldrop", false }, [RELABEL_LABELKEEP] = { "labelkeep", false },
	[RELABEL_LOWERCASE] = { "lowercase", true },  [RELABEL_UPPERCASE] = { "uppercase", true },
};

bool relabel_rule__is_name(const char *name)
{
	return *name && !strchr(DIGITS, *name) && !name[strspn(name, LETTERS DIGITS)];
}

/* A name, or one in which groups stand for some of it. */
static bool is_template(const char *name)
{
	if (!strchr(name, '$'))
		return relabel_rule__is_name(name);
	return !name[strspn(name, LETTERS DIGITS REFERENCES)];
}

/* The text that KEY has; DEFAULT where there is none. */
static const char *text_of(const json_t *written, const char *key, const char *by_default)
{
	const json_t *value = json_object_get(written, key);

	return value ? json_string_value(value) : by_default;
}

static char *check_sources(const json_t *sources)
{
	size_t i;
	json_t *name;

	if (!json_is_array(sources))
		return xstrdup("a rule's source_labels must be a list, such as [comm, node]");
	json_array_foreach(sources, i, name) if (
		!json_is_string(name) ||
		!relabel_rule__is_name(json_string_value(
			name))) return xasprintf("'%s' in source_labels is not a label name",
						 json_is_string(name) ? json_string_value(name)
								      : "");
	return NULL;
}

/* That there is nothing but what a rule may have. */
static char *check_keys(json_t *written)
{
	static const char *const keys[] = { "separator", "regex", "target_label", "replacement",
					    "action" };
	const char *key;
	json_t *value;

	json_object_foreach(written, key, value)
	{
		bool known = false;

		if (strcmp(key, "source_labels") == 0)
			continue;
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			known |= strcmp(key, keys[i]) == 0;
		if (!known)
			return xasprintf("a rule has no '%s'", key);
		if (!json_is_string(value))
			return xasprintf("a rule's %s must be a string", key);
	}
	value = json_object_get(written, "source_labels");
	return value ? check_sources(value) : NULL;
}

static char *find_action(const json_t *written, enum relabel_action *action)
{
	const char *name = text_of(written, "action", "replace");

	for (*action = 0; *action < RELABEL_ACTION_COUNT; (*action)++)
		if (strcasecmp(name, actions[*action].name) == 0)
			return NULL;
	return xasprintf(
		"a rule's action '%s' is not one of replace, keep, drop, keepequal, dropequal, "
		"labelmap, labeldrop, labelkeep, lowercase, uppercase",
		name);
}

/* That it has what its action needs. */
static char *check_parts(const struct relabel_rule *rule)
{
	const char *action = actions[rule->action].name;

	if (actions[rule->action].needs_target && !rule->target)
		return xasprintf("a rule to %s needs a target_label", action);
	if (rule->target &&
	    !(rule->action == RELABEL_REPLACE ? is_template(rule->target)
					      : relabel_rule__is_name(rule->target)))
		return xasprintf("a rule's target_label '%s' is not a label name", rule->target);
	if (rule->action == RELABEL_LABELMAP && !is_template(rule->replacement))
		return xasprintf("a labelmap's replacement '%s' is not a label name",
				 rule->replacement);
	/* Without, all or nothing would be dropped, which nobody means. */
	if (!rule->sources && (rule->action == RELABEL_KEEP || rule->action == RELABEL_DROP))
		return xasprintf("a rule to %s needs source_labels", action);
	return NULL;
}

char *relabel_rule__read(const char *text, struct relabel_rule *rule)
{
	json_t *written = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	char *wrong = NULL;

	*rule = (struct relabel_rule){ .written = written };
	if (!json_is_object(written))
		wrong = xasprintf("'%s' is not a rule such as "
				  "{\"source_labels\": [\"comm\"], \"regex\": \"sh\", "
				  "\"action\": \"drop\"}",
				  text);
	if (!wrong)
		wrong = check_keys(written);
	if (!wrong)
		wrong = find_action(written, &rule->action);
	if (!wrong) {
		rule->sources = json_object_get(written, "source_labels");
		rule->separator = text_of(written, "separator", ";");
		rule->target = text_of(written, "target_label", NULL);
		rule->replacement = text_of(written, "replacement", "$1");
		wrong = check_parts(rule);
	}
	if (!wrong)
		rule->pattern = pattern__new(text_of(written, "regex", "(.*)"), &wrong);
	if (wrong)
		relabel_rule__free(rule);
	return wrong;
}

void relabel_rule__free(struct relabel_rule *rule)
{
	pattern__free(rule->pattern);
	json_decref(rule->written);
	*rule = (struct relabel_rule){ 0 };
}
