// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "services/pattern.h"
#include "services/relabel.h"

#define DIGITS	   "0123456789"
#define LETTERS	   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define REFERENCES "${}"

enum action {
	REPLACE,
	KEEP,
	DROP,
	KEEPEQUAL,
	DROPEQUAL,
	LABELMAP,
	LABELDROP,
	LABELKEEP,
	LOWERCASE,
	UPPERCASE,
	ACTION_COUNT,
};

static const struct {
	const char *name;
	bool needs_target;
} actions[ACTION_COUNT] = {
	[REPLACE] = { "replace", true },      [KEEP] = { "keep", false },
	[DROP] = { "drop", false },	      [KEEPEQUAL] = { "keepequal", true },
	[DROPEQUAL] = { "dropequal", true },  [LABELMAP] = { "labelmap", false },
	[LABELDROP] = { "labeldrop", false }, [LABELKEEP] = { "labelkeep", false },
	[LOWERCASE] = { "lowercase", true },  [UPPERCASE] = { "uppercase", true },
};

struct relabel_rule {
	enum action action;
	struct pattern *pattern;
	json_t *written;       /* the rule as JSON; it owns all that follows */
	const json_t *sources; /* a list of names, or NULL */
	const char *separator;
	const char *target; /* NULL: none was given */
	const char *replacement;
};

static bool is_name(const char *name)
{
	return *name && !strchr(DIGITS, *name) && !name[strspn(name, LETTERS DIGITS)];
}

/* Whether NAME is a label name, perhaps with references to groups. */
static bool is_template(const char *name)
{
	if (!strchr(name, '$'))
		return is_name(name);
	return !name[strspn(name, LETTERS DIGITS REFERENCES)];
}

/* The text of KEY, or BY_DEFAULT if the rule does not have it. */
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
	json_array_foreach(sources, i, name)
	{
		const char *text = json_is_string(name) ? json_string_value(name) : "";

		if (!is_name(text))
			return xasprintf("'%s' in source_labels is not a label name", text);
	}
	return NULL;
}

/* Returns what is wrong with the keys and the types of their values, or NULL. */
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

static char *find_action(const json_t *written, enum action *action)
{
	const char *name = text_of(written, "action", "replace");

	for (*action = 0; *action < ACTION_COUNT; (*action)++)
		if (strcasecmp(name, actions[*action].name) == 0)
			return NULL;
	return xasprintf(
		"a rule's action '%s' is not one of replace, keep, drop, keepequal, dropequal, "
		"labelmap, labeldrop, labelkeep, lowercase, uppercase",
		name);
}

/* Returns what RULE lacks for its action, or NULL. */
static char *check_parts(const struct relabel_rule *rule)
{
	const char *action = actions[rule->action].name;

	if (actions[rule->action].needs_target && !rule->target)
		return xasprintf("a rule to %s needs a target_label", action);
	if (rule->target &&
	    !(rule->action == REPLACE ? is_template(rule->target) : is_name(rule->target)))
		return xasprintf("a rule's target_label '%s' is not a label name", rule->target);
	if (rule->action == LABELMAP && !is_template(rule->replacement))
		return xasprintf("a labelmap's replacement '%s' is not a label name",
				 rule->replacement);
	/* Without labels such a rule would drop all or nothing. */
	if (!rule->sources && (rule->action == KEEP || rule->action == DROP))
		return xasprintf("a rule to %s needs source_labels", action);
	return NULL;
}

static void free_rule(struct relabel_rule *rule)
{
	pattern__free(rule->pattern);
	json_decref(rule->written);
}

/* Fills *RULE, which has WRITTEN only.  Returns NULL, or what is wrong, allocated. */
static char *read_rule(struct relabel_rule *rule, const char *text)
{
	json_t *written = rule->written;
	char *wrong;

	if (!json_is_object(written))
		return xasprintf("'%s' is not a rule such as "
				 "{\"source_labels\": [\"comm\"], \"regex\": \"sh\", "
				 "\"action\": \"drop\"}",
				 text);
	wrong = check_keys(written) ?: find_action(written, &rule->action);
	if (wrong)
		return wrong;
	rule->sources = json_object_get(written, "source_labels");
	rule->separator = text_of(written, "separator", ";");
	rule->target = text_of(written, "target_label", NULL);
	rule->replacement = text_of(written, "replacement", "$1");
	wrong = check_parts(rule);
	if (!wrong)
		rule->pattern = pattern__new(text_of(written, "regex", "(.*)"), &wrong);
	return wrong;
}

char *relabel__add(struct relabel_rules *rules, const char *text)
{
	struct relabel_rule rule = { .written = json_loads(text, JSON_REJECT_DUPLICATES, NULL) };
	char *wrong = read_rule(&rule, text);

	if (wrong) {
		free_rule(&rule);
		return wrong;
	}
	rules->list = xreallocarray(rules->list, rules->count + 1, sizeof(*rules->list));
	rules->list[rules->count++] = rule;
	return NULL;
}

void relabel__free(struct relabel_rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		free_rule(&rules->list[i]);
	free(rules->list);
	*rules = (struct relabel_rules){ 0 };
}

/* A missing label counts as empty. */
static const char *value_of(const json_t *labels, const char *name)
{
	const char *value = json_string_value(json_object_get(labels, name));

	return value ? value : "";
}

static void set_label(json_t *labels, const char *name, const char *value)
{
	if (*value)
		json_object_set_new(labels, name, json_string(value));
	else
		json_object_del(labels, name);
}

/* The joined values of the source labels; the caller frees it. */
static char *source_of(const struct relabel_rule *rule, const json_t *labels)
{
	char *text;
	size_t size, i;
	FILE *file = xopen_memstream(&text, &size);
	json_t *name;

	json_array_foreach(rule->sources, i, name)
	{
		if (i)
			fputs(rule->separator, file);
		fputs(value_of(labels, json_string_value(name)), file);
	}
	fclose(file);
	return text;
}

static void replace(const struct relabel_rule *rule, json_t *labels, const char *source)
{
	char *target, *value;

	if (!pattern__matches(rule->pattern, source))
		return;
	target = pattern__expand(rule->pattern, source, rule->target);
	value = pattern__expand(rule->pattern, source, rule->replacement);
	if (is_name(target))
		set_label(labels, target, value);
	free(target);
	free(value);
}

static void change_case(const struct relabel_rule *rule, json_t *labels, char *source)
{
	for (char *at = source; *at; at++)
		*at = (char)(rule->action == LOWERCASE ? tolower((unsigned char)*at)
						       : toupper((unsigned char)*at));
	set_label(labels, rule->target, source);
}

/* The loop sees the labels as they were before the rule. */
static void map_labels(const struct relabel_rule *rule, json_t *labels)
{
	json_t *before = json_copy(labels), *value;
	const char *name;

	json_object_foreach(before, name, value)
	{
		char *mapped;

		if (!pattern__matches(rule->pattern, name))
			continue;
		mapped = pattern__expand(rule->pattern, name, rule->replacement);
		if (is_name(mapped))
			json_object_set(labels, mapped, value);
		free(mapped);
	}
	json_decref(before);
}

static void remove_labels(const struct relabel_rule *rule, json_t *labels)
{
	bool matching = rule->action == LABELDROP;
	const char *name;
	json_t *value;
	void *next;

	json_object_foreach_safe(labels, next, name, value)
	{
		if (pattern__matches(rule->pattern, name) == matching)
			json_object_del(labels, name);
	}
}

/* Returns false if the rule drops the samples with these labels. */
static bool apply(const struct relabel_rule *rule, json_t *labels, char *source)
{
	switch (rule->action) {
	case KEEP:
		return pattern__matches(rule->pattern, source);
	case DROP:
		return !pattern__matches(rule->pattern, source);
	case KEEPEQUAL:
		return strcmp(source, value_of(labels, rule->target)) == 0;
	case DROPEQUAL:
		return strcmp(source, value_of(labels, rule->target)) != 0;
	case LABELMAP:
		map_labels(rule, labels);
		return true;
	case LABELDROP:
	case LABELKEEP:
		remove_labels(rule, labels);
		return true;
	case LOWERCASE:
	case UPPERCASE:
		change_case(rule, labels, source);
		return true;
	default:
		replace(rule, labels, source);
		return true;
	}
}

bool relabel__apply(const struct relabel_rules *rules, json_t *labels)
{
	bool kept = true;

	for (size_t i = 0; i < rules->count && kept; i++) {
		char *source = source_of(&rules->list[i], labels);

		kept = apply(&rules->list[i], labels, source);
		free(source);
	}
	return kept;
}

char *relabel__name(const char *prefix, const char *text)
{
	char *name = xasprintf("%s%s", prefix, text);

	for (char *at = name + strlen(prefix); *at; at++)
		if (!isascii((unsigned char)*at) || !isalnum((unsigned char)*at))
			*at = '_';
	return name;
}
