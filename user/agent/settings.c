// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "agent/config_file.h"
#include "agent/config_text.h"
#include "agent/settings.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "profile/plain_text.h"

#define ENVIRONMENT_PREFIX "PYBPFPROF_"

#define TRUE  "true"
#define FALSE "false"

/* From what counts least to what counts most. */
enum origin {
	ORIGIN_DEFAULT,
	ORIGIN_FILE,
	ORIGIN_ENVIRONMENT,
	ORIGIN_COMMAND_LINE,
};

/* One value. */
struct setting {
	const struct option_entry *option;
	enum origin origin;
	char *value, *place;
	unsigned int line; /* of the file */
};

struct settings {
	const char *verb;
	const struct option_entry *options;
	struct setting *settings;
	size_t count, capacity;
	const char *path; /* of the file */
};

static bool is_list(const struct option_entry *option)
{
	return option->flags & (SETTING_LIST | SETTING_RULES);
}

static void add(struct settings *settings, const struct option_entry *option, enum origin origin,
		const char *value, char *place)
{
	settings->settings = xgrow(settings->settings, &settings->capacity, settings->count + 1,
				   sizeof(*settings->settings));
	settings->settings[settings->count++] =
		(struct setting){ .option = option,
				  .origin = origin,
				  .value = value ? xstrdup(value) : NULL,
				  .place = place };
}

static char *take_option(void *context, const struct option_entry *option, const char *value)
{
	add(context, option, ORIGIN_COMMAND_LINE, option->argument ? value : TRUE,
	    xasprintf("--%s", option->name));
	return NULL;
}

static const struct option_entry *find_option(const struct option_entry *options, const char *name)
{
	for (; options->name; options++)
		if (strcmp(options->name, name) == 0)
			return options;
	return NULL;
}

/* NULL, or why OPTION cannot be VALUE of that place. */
static char *check_kind(const struct option_entry *option, const char *value)
{
	if (option->argument || strcmp(value, TRUE) == 0 || strcmp(value, FALSE) == 0)
		return NULL;
	return xasprintf("%s '%s' is not true or false", option->name, value);
}

static const struct setting *find_in_file(const struct settings *settings,
					  const struct option_entry *option)
{
	for (size_t i = 0; i < settings->count; i++)
		if (settings->settings[i].option == option &&
		    settings->settings[i].origin == ORIGIN_FILE)
			return &settings->settings[i];
	return NULL;
}

static char *take_from_file(void *context, const char *key, const char *value, bool is_rule,
			    unsigned int line)
{
	struct settings *settings = context;
	const struct option_entry *option = find_option(settings->options, key);
	const struct setting *before;
	char *wrong;

	if (!option || option->flags & SETTING_HERE)
		return xasprintf("unknown key '%s'", key);
	if (is_rule != !!(option->flags & SETTING_RULES))
		return xasprintf("'%s' must be a list of %s", key, is_rule ? "values" : "rules");
	before = find_in_file(settings, option);
	if (before && !is_list(option))
		return xasprintf("'%s' is already set at %s", key, before->place);
	wrong = check_kind(option, value);
	if (!wrong)
		add(settings, option, ORIGIN_FILE, value, xasprintf("%s:%u", settings->path, line));
	return wrong;
}

static char *variable_of(const struct option_entry *option)
{
	char *name = xasprintf(ENVIRONMENT_PREFIX "%s", option->name);

	for (char *at = name; *at; at++)
		*at = *at == '-' ? '_' : toupper((unsigned char)*at);
	return name;
}

static void take_list(struct settings *settings, const struct option_entry *option,
		      const char *values, const char *variable)
{
	char *copy = xstrdup(values), *rest = copy, *value;

	while ((value = strsep(&rest, ",")))
		if (*value)
			add(settings, option, ORIGIN_ENVIRONMENT, value, xstrdup(variable));
	free(copy);
}

static char *take_rules(struct settings *settings, const struct option_entry *option,
			const char *values, const char *variable)
{
	json_t *rules = json_loads(values, JSON_REJECT_DUPLICATES, NULL), *rule;
	bool is_array = json_is_array(rules);
	size_t i;

	json_array_foreach(rules, i, rule)
	{
		char *text = json_dumps(rule, JSON_ENCODE_ANY);

		add(settings, option, ORIGIN_ENVIRONMENT, text, xstrdup(variable));
		free(text);
	}
	json_decref(rules);
	return is_array ? NULL : xasprintf("%s must be a JSON list of rules", option->name);
}

/* An empty variable says nothing. */
static char *take_variable(struct settings *settings, const struct option_entry *option)
{
	char *variable = variable_of(option), *wrong = NULL, *full;
	bool is_here = option->flags & SETTING_HERE && !option->argument;
	const char *value = is_here ? NULL : getenv(variable);

	if (value && *value && option->flags & SETTING_RULES) {
		wrong = take_rules(settings, option, value, variable);
	} else if (value && *value && is_list(option)) {
		take_list(settings, option, value, variable);
	} else if (value && *value) {
		wrong = check_kind(option, value);
		add(settings, option, ORIGIN_ENVIRONMENT, value, xstrdup(variable));
	}
	if (wrong) {
		full = xasprintf("%s: %s", variable, wrong);
		free(wrong);
		wrong = full;
	}
	free(variable);
	return wrong;
}

/* Whether SETTING counts: no other place that does so more has a value. */
static bool counts(const struct settings *settings, const struct setting *setting)
{
	bool listed = is_list(setting->option);

	for (const struct setting *other = settings->settings;
	     other < settings->settings + settings->count; other++) {
		if (other->option != setting->option || other == setting)
			continue;
		if (other->origin > setting->origin ||
		    (other->origin == setting->origin && !listed && other > setting))
			return false;
	}
	return true;
}

static const struct setting *find(const struct settings *settings,
				  const struct option_entry *option)
{
	for (size_t i = 0; i < settings->count; i++)
		if (settings->settings[i].option == option &&
		    counts(settings, &settings->settings[i]))
			return &settings->settings[i];
	return NULL;
}

static char *find_elsewhere(struct settings *settings)
{
	const struct option_entry *config = find_option(settings->options, "config");
	char *wrong = NULL;

	for (const struct option_entry *option = settings->options; option->name && !wrong;
	     option++) {
		if (option->fallback)
			add(settings, option, ORIGIN_DEFAULT, option->fallback,
			    xstrdup("the default"));
		wrong = take_variable(settings, option);
	}
	if (!wrong && find(settings, config)) {
		settings->path = find(settings, config)->value;
		wrong = config_file__read(settings->path, take_from_file, settings);
	}
	return wrong;
}

enum exit_status settings__find(const char *verb, const struct option_entry *options, int count,
				char **arguments, struct settings **result)
{
	struct settings *settings = *result = xcalloc(1, sizeof(*settings));
	enum exit_status status;
	char *wrong = NULL;

	settings->verb = verb;
	settings->options = options;
	status = option_table__walk(verb, options, count, arguments, take_option, settings);
	if (!status)
		wrong = find_elsewhere(settings);
	if (wrong) {
		log__error("%s", wrong);
		status = STATUS_USAGE;
	}
	free(wrong);
	return status;
}

void settings__free(struct settings *settings)
{
	if (!settings)
		return;
	for (size_t i = 0; i < settings->count; i++) {
		free(settings->settings[i].value);
		free(settings->settings[i].place);
	}
	free(settings->settings);
	free(settings);
}

/* Whether what counts for OPTION is the same in both. */
static bool agree(const struct settings *one, const struct settings *other,
		  const struct option_entry *option)
{
	char *texts[2] = { xstrdup(""), xstrdup("") };
	const struct settings *both[2] = { one, other };
	bool same;

	for (int i = 0; i < 2; i++) {
		for (size_t j = 0; j < both[i]->count; j++) {
			const struct setting *setting = &both[i]->settings[j];
			char *longer;

			if (setting->option != option || !counts(both[i], setting))
				continue;
			longer = xasprintf("%s,%s", texts[i], setting->value);
			free(texts[i]);
			texts[i] = longer;
		}
	}
	same = strcmp(texts[0], texts[1]) == 0;
	free(texts[0]);
	free(texts[1]);
	return same;
}

/* Has what counts for OPTION be OLD's. */
static void replace(struct settings *settings, const struct settings *old,
		    const struct option_entry *option)
{
	size_t kept = 0;

	for (size_t i = 0; i < settings->count; i++) {
		struct setting *setting = &settings->settings[i];

		if (setting->option != option) {
			settings->settings[kept++] = *setting;
			continue;
		}
		free(setting->value);
		free(setting->place);
	}
	settings->count = kept;
	for (size_t i = 0; i < old->count; i++)
		if (old->settings[i].option == option)
			add(settings, option, old->settings[i].origin, old->settings[i].value,
			    xstrdup(old->settings[i].place));
}

void settings__keep_fixed(struct settings *settings, const struct settings *old)
{
	for (const struct option_entry *option = settings->options; option->name; option++) {
		if (!(option->flags & SETTING_FIXED) || agree(settings, old, option))
			continue;
		log__warning("a change of %s takes effect when the %s restarts", option->name,
			     settings->verb);
		replace(settings, old, option);
	}
}

/* What is wrong with SETTING, as who wrote it is to read it. */
static void say_wrong(const struct settings *settings, const struct setting *setting,
		      const char *wrong)
{
	if (setting->origin == ORIGIN_COMMAND_LINE)
		log__error("%s; see pybpfprof %s --help", wrong, settings->verb);
	else
		log__error("%s: %s", setting->place, wrong);
}

enum exit_status settings__apply(const struct settings *settings, void *context)
{
	for (size_t i = 0; i < settings->count; i++) {
		const struct setting *setting = &settings->settings[i];
		const char *value = setting->option->argument ? setting->value : NULL;
		char *wrong;

		if (!counts(settings, setting) || (!value && strcmp(setting->value, FALSE) == 0))
			continue;
		wrong = setting->option->take(context, value);
		if (!wrong)
			continue;
		say_wrong(settings, setting, wrong);
		free(wrong);
		return STATUS_USAGE;
	}
	return STATUS_WRITTEN;
}

bool settings__is_chosen(const struct settings *settings, const char *name)
{
	const struct setting *setting = find(settings, find_option(settings->options, name));

	return setting && setting->origin != ORIGIN_DEFAULT;
}

static void print_option(const struct settings *settings, const struct option_entry *option,
			 FILE *file)
{
	const struct setting *first = find(settings, option);
	bool listed = is_list(option);
	char *place;

	if (!first) {
		fprintf(file, "# %s: not set\n", option->name);
		return;
	}
	fprintf(file, "%s: %s", option->name, listed ? "[" : "");
	for (const struct setting *setting = first; setting < settings->settings + settings->count;
	     setting++) {
		if (setting->option != option || !counts(settings, setting))
			continue;
		if (setting != first)
			fputs(", ", file);
		if (option->flags & SETTING_RULES)
			config_text__print_rule(setting->value, file);
		else
			config_text__print(setting->value, file);
	}
	/* The file's name must not end the comment. */
	place = plain_text__of_bytes(first->place, strlen(first->place), SIZE_MAX);
	fprintf(file, "%s  # %s\n", listed ? "]" : "", place);
	free(place);
}

void settings__print(const struct settings *settings, FILE *file)
{
	for (const struct option_entry *option = settings->options; option->name; option++)
		if (!(option->flags & SETTING_HERE))
			print_option(settings, option, file);
}

const char *settings__file(const struct settings *settings)
{
	return settings->path;
}
