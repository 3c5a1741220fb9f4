// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "services/relabel.h"

#define DIGITS	   "0123456789"
#define LETTERS	   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define REFERENCES "${}"

/* A usual label takes some hundred steps.  This limit is reached within about a millisecond. */
#define STEPS_MAX 50000
#define HEAP_KIB  1024

#define GROUP_NAME_MAX 32

/* As in Prometheus, the expression must match the whole text, and a dot matches any character.  As
 * in RE2, the text is UTF-8, but \d and the like match ASCII only. */
#define OPTIONS                                                                                 \
	(PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_UTF | \
	 PCRE2_NEVER_BACKSLASH_C)

struct pattern {
	char *regex;
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *limits;
	bool given_up;
};

/* Returns NULL if REGEX is not valid; the caller frees *WRONG then. */
static struct pattern *new_pattern(const char *regex, char **wrong)
{
	PCRE2_UCHAR message[128] = "";
	struct pattern *pattern;
	pcre2_code *code;
	size_t at;
	int error;

	code = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED, OPTIONS, &error, &at, NULL);
	if (!code) {
		pcre2_get_error_message(error, message, sizeof(message));
		*wrong = xasprintf("'%s' is not a valid regular expression: %s, at character %zu",
				   regex, (const char *)message, at + 1);
		return NULL;
	}
	pattern = xcalloc(1, sizeof(*pattern));
	pattern->regex = xstrdup(regex);
	pattern->code = code;
	pattern->match = pcre2_match_data_create_from_pattern(code, NULL);
	pattern->limits = pcre2_match_context_create(NULL);
	if (!pattern->match || !pattern->limits)
		out_of_memory();
	pcre2_set_match_limit(pattern->limits, STEPS_MAX);
	pcre2_set_heap_limit(pattern->limits, HEAP_KIB);
	return pattern;
}

static void free_pattern(struct pattern *pattern)
{
	if (!pattern)
		return;
	pcre2_match_context_free(pattern->limits);
	pcre2_match_data_free(pattern->match);
	pcre2_code_free(pattern->code);
	free(pattern->regex);
	free(pattern);
}

/* Whether PATTERN matches the whole of TEXT, which is UTF-8.  A match that is given up counts as no
 * match; the first one of each pattern is logged. */
static bool matches(struct pattern *pattern, const char *text)
{
	int found = pcre2_match(pattern->code, (PCRE2_SPTR)text, strlen(text), 0, 0, pattern->match,
				pattern->limits);

	if (found < 0 && found != PCRE2_ERROR_NOMATCH && !pattern->given_up) {
		pattern->given_up = true;
		log__warning(
			"matching a label against '%s' takes too long; it is treated as no match",
			pattern->regex);
	}
	return found > 0;
}

/* The number of the group NAME, LENGTH bytes, or SIZE_MAX if there is no such group. */
static size_t find_group(const struct pattern *pattern, const char *name, size_t length)
{
	char text[GROUP_NAME_MAX + 1];
	int number;

	if (length > GROUP_NAME_MAX)
		return SIZE_MAX;
	snprintf(text, sizeof(text), "%.*s", (int)length, name);
	if (!text[strspn(text, DIGITS)])
		return strtoul(text, NULL, 10);
	number = pcre2_substring_number_from_name(pattern->code, (PCRE2_SPTR)text);
	return number < 0 ? SIZE_MAX : (size_t)number;
}

static void put_group(const struct pattern *pattern, const char *text, size_t group, FILE *file)
{
	const size_t *bounds = pcre2_get_ovector_pointer(pattern->match);

	/* With \K a group may end before it begins. */
	if (group >= pcre2_get_ovector_count(pattern->match) || bounds[2 * group] == PCRE2_UNSET ||
	    bounds[2 * group] > bounds[2 * group + 1])
		return;
	fwrite(text + bounds[2 * group], 1, bounds[2 * group + 1] - bounds[2 * group], file);
}

/* Writes the text for the reference at AT, a "$".  Returns the length of the reference. */
static size_t put_reference(const struct pattern *pattern, const char *text, const char *at,
			    FILE *file)
{
	bool braced = at[1] == '{';
	const char *name = at + 1 + braced;
	size_t length = strspn(name, LETTERS DIGITS);

	if (at[1] == '$') {
		fputc('$', file);
		return 2;
	}
	if (!length || (braced && name[length] != '}')) {
		fputc('$', file);
		return 1;
	}
	put_group(pattern, text, find_group(pattern, name, length), file);
	return 1 + length + 2 * (size_t)braced;
}

/* TEMPLATE with each $1, ${1}, $name and ${name} replaced by the text of that group, and $$ by $.
 * PATTERN must have matched TEXT just before.  The caller frees the result. */
static char *expand(const struct pattern *pattern, const char *text, const char *template)
{
	char *expanded;
	size_t size;
	FILE *file = xopen_memstream(&expanded, &size);

	while (*template) {
		size_t plain = strcspn(template, "$");

		fwrite(template, 1, plain, file);
		template += plain;
		if (*template)
			template += put_reference(pattern, text, template, file);
	}
	fclose(file);
	return expanded;
}

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
	free_pattern(rule->pattern);
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
		rule->pattern = new_pattern(text_of(written, "regex", "(.*)"), &wrong);
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

	if (!matches(rule->pattern, source))
		return;
	target = expand(rule->pattern, source, rule->target);
	value = expand(rule->pattern, source, rule->replacement);
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

		if (!matches(rule->pattern, name))
			continue;
		mapped = expand(rule->pattern, name, rule->replacement);
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
		if (matches(rule->pattern, name) == matching)
			json_object_del(labels, name);
	}
}

/* Returns false if the rule drops the samples with these labels. */
static bool apply(const struct relabel_rule *rule, json_t *labels, char *source)
{
	switch (rule->action) {
	case KEEP:
		return matches(rule->pattern, source);
	case DROP:
		return !matches(rule->pattern, source);
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
