// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "services/relabel.h"
#include "services/relabel_rule.h"

char *relabel__add(struct relabel_rules *rules, const char *text)
{
	struct relabel_rule rule;
	char *wrong = relabel_rule__read(text, &rule);

	if (wrong)
		return wrong;
	rules->list = xreallocarray(rules->list, rules->count + 1, sizeof(*rules->list));
	rules->list[rules->count++] = rule;
	return NULL;
}

void relabel__free(struct relabel_rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		relabel_rule__free(&rules->list[i]);
	free(rules->list);
	*rules = (struct relabel_rules){ 0 };
}

/* A label that is not there is empty. */
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

/* What the rule looks at; the caller frees. */
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
	if (relabel_rule__is_name(target))
		set_label(labels, target, value);
	free(target);
	free(value);
}

static void change_case(const struct relabel_rule *rule, json_t *labels, char *source)
{
	for (char *at = source; *at; at++)
		*at = (char)(rule->action == RELABEL_LOWERCASE ? tolower((unsigned char)*at)
							       : toupper((unsigned char)*at));
	set_label(labels, rule->target, source);
}

/* Names as they are before the rule. */
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
		if (relabel_rule__is_name(mapped))
			json_object_set(labels, mapped, value);
		free(mapped);
	}
	json_decref(before);
}

static void remove_labels(const struct relabel_rule *rule, json_t *labels)
{
	bool matching = rule->action == RELABEL_LABELDROP;
	const char *name;
	json_t *value;
	void *next;

	json_object_foreach_safe(labels, next, name, value)
	{
		if (pattern__matches(rule->pattern, name) == matching)
			json_object_del(labels, name);
	}
}

/* False: what has these labels is dropped. */
static bool apply(const struct relabel_rule *rule, json_t *labels, char *source)
{
	switch (rule->action) {
	case RELABEL_KEEP:
		return pattern__matches(rule->pattern, source);
	case RELABEL_DROP:
		return !pattern__matches(rule->pattern, source);
	case RELABEL_KEEPEQUAL:
		return strcmp(source, value_of(labels, rule->target)) == 0;
	case RELABEL_DROPEQUAL:
		return strcmp(source, value_of(labels, rule->target)) != 0;
	case RELABEL_LABELMAP:
		map_labels(rule, labels);
		return true;
	case RELABEL_LABELDROP:
	case RELABEL_LABELKEEP:
		remove_labels(rule, labels);
		return true;
	case RELABEL_LOWERCASE:
	case RELABEL_UPPERCASE:
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
