// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/xalloc.h"
#include "options/option_table.h"
#include "profile/plain_text.h"

#define ENVIRONMENT_PREFIX "PYBPFPROF_"

#define NO  "false"
#define OFF "off"

/* Of --help. */
#define COLUMN 27
#define WIDTH  80

static void take_list(struct settings *settings, const struct option *option, const char *values,
		      const char *variable)
{
	char *copy = xstrdup(values), *rest = copy, *value;

	while ((value = strsep(&rest, ",")))
		if (*value)
			settings__add(settings, option, ORIGIN_ENVIRONMENT, value, variable);
	free(copy);
}

static char *take_rules(struct settings *settings, const struct option *option, const char *values,
			const char *variable)
{
	json_t *rules = json_loads(values, JSON_REJECT_DUPLICATES, NULL), *rule;
	bool is_array = json_is_array(rules);
	size_t i;

	json_array_foreach(rules, i, rule)
	{
		char *text = json_dumps(rule, JSON_ENCODE_ANY);

		settings__add(settings, option, ORIGIN_ENVIRONMENT, text, variable);
		free(text);
	}
	json_decref(rules);
	return is_array ? NULL : xasprintf("%s must be a JSON list of rules", option->name);
}

static char *take_variable(struct settings *settings, const struct option *option)
{
	char *variable = xasprintf(ENVIRONMENT_PREFIX "%s", option->name), *wrong = NULL, *full;
	const char *value;

	for (char *at = variable; *at; at++)
		*at = *at == '-' ? '_' : toupper((unsigned char)*at);
	value = getenv(variable);
	if (value && *value && option->flags & OPTION_RULES)
		wrong = take_rules(settings, option, value, variable);
	else if (value && *value && option->flags & OPTION_LIST)
		take_list(settings, option, value, variable);
	else if (value && *value)
		wrong = settings__try(settings, option, ORIGIN_ENVIRONMENT, value, variable);
	full = wrong ? xasprintf("%s: %s", variable, wrong) : NULL;
	free(wrong);
	free(variable);
	return full;
}

/* Adds the defaults, and for the agent the values of the environment and the file.  Returns NULL,
 * or what is wrong. */
static char *complete(struct settings *settings, const struct verb *verb)
{
	const struct option *option = NULL;
	const struct setting *config;
	char *wrong = NULL;

	while (!wrong && (option = option_table__next(verb, option))) {
		const char *fallback = option_table__fallback(verb, option);

		if (fallback)
			settings__add(settings, option, ORIGIN_DEFAULT, fallback, "the default");
		if (option->name && verb->bit == VERB_AGENT &&
		    (option->argument || !(option->flags & OPTION_LOCAL)))
			wrong = take_variable(settings, option);
	}
	config = settings__next(settings, option_table__find(verb, "config"), NULL);
	return wrong || !config ? wrong : config_file__read(verb, config->value, settings);
}

static bool agree(const struct settings *one, const struct settings *other,
		  const struct option *option)
{
	const struct setting *left = NULL, *right = NULL;

	do {
		left = settings__next(one, option, left);
		right = settings__next(other, option, right);
	} while (left && right && strcmp(left->value, right->value) == 0);
	return !left && !right;
}

/* Restores OLD's values of fixed options, and warns if they differ. */
static void keep_fixed(struct settings *settings, const struct settings *old,
		       const struct verb *verb)
{
	const struct option *option = NULL;

	while ((option = option_table__next(verb, option))) {
		if (!(option->flags & OPTION_FIXED) || agree(settings, old, option))
			continue;
		log__warning("a change of %s takes effect when the %s restarts", option->name,
			     verb->name);
		settings__drop(settings, option);
		for (const struct setting *kept = NULL; (kept = settings__next(old, option, kept));)
			settings__add(settings, option, kept->origin, kept->value, kept->place);
	}
}

static char *apply_one(const struct setting *setting, struct options *options)
{
	const struct option *option = setting->option;

	if ((!option->argument && strcmp(setting->value, NO) == 0) ||
	    (option->flags & OPTION_OFF && strcmp(setting->value, OFF) == 0))
		return NULL;
	return option->take(option, (char *)options + option->field,
			    option->argument ? setting->value : NULL);
}

/* Parses all settings into the fields of OPTIONS.  The highest origin comes last, because several
 * options, such as -q and -v, share a field.  Returns NULL, or what is wrong, with its place in
 * *PLACE; NULL there stands for the command line. */
static char *apply(struct options *options, const char **place)
{
	const struct settings *settings = &options->settings;
	char *wrong = NULL;

	for (enum origin origin = ORIGIN_DEFAULT; origin <= ORIGIN_COMMAND_LINE; origin++) {
		for (size_t i = 0; i < settings->count && !wrong; i++) {
			const struct setting *setting = &settings->list[i];

			if (setting->origin != origin)
				continue;
			*place = origin == ORIGIN_COMMAND_LINE ? NULL : setting->place;
			wrong = apply_one(setting, options);
		}
	}
	return wrong;
}

char *options__choose_format(struct options *options)
{
	const char *output = options->output;

	if (!options->format && output)
		options->format = output__by_ending(output);
	if (!options->format && output && strlen(output) > 4 &&
	    strcmp(output + strlen(output) - 4, ".svg") == 0)
		return xasprintf("'%s': a flame graph is an html file here, such as flame.html",
				 output);
	if (!options->format && output && strcmp(output, "-") != 0 &&
	    strncmp(output, "/dev/", strlen("/dev/")) != 0)
		return xasprintf("the suffix of '%s' does not give the format: add -f FORMAT",
				 output);
	if (!options->format)
		options->format = output_formats[0];
	return NULL;
}

/* BEFORE: the settings whose fixed values are kept, or NULL. */
static enum exit_status read_all(const struct verb *verb, int count, char **arguments,
				 const struct settings *before, struct options *options)
{
	const char *place = NULL;
	char *wrong;

	*options = (struct options){
		.verb = verb, .level = LOG_INFO, .count = count, .arguments = arguments
	};
	wrong = command_line__read(options);
	if (!wrong) {
		wrong = complete(&options->settings, verb);
		place = "";
	}
	if (!wrong && before)
		keep_fixed(&options->settings, before, verb);
	if (!wrong)
		wrong = apply(options, &place);
	if (!wrong) {
		place = NULL;
		wrong = verb->check ? verb->check(options) : NULL;
	}
	if (!wrong)
		return STATUS_WRITTEN;
	if (place)
		log__error("%s%s%s", place, *place ? ": " : "", wrong);
	else
		log__error("%s; see pybpfprof %s%s--help", wrong,
			   verb->bit == VERB_RECORD ? "" : verb->name,
			   verb->bit == VERB_RECORD ? "" : " ");
	free(wrong);
	options__free(options);
	return STATUS_USAGE;
}

enum exit_status options__parse(const struct verb *verb, int count, char **arguments,
				struct options *options)
{
	enum exit_status status = read_all(verb, count, arguments, NULL, options);

	if (!status)
		log__set_level(options->level);
	return status;
}

bool options__reload(struct options *options)
{
	struct options fresh, old = *options;

	if (read_all(options->verb, options->count, options->arguments, &options->settings, &fresh))
		return false;
	/* The recording and the push process keep pointers to the plan and the destinations.  Only
	 * the rate can change. */
	*options = fresh;
	options->plan = old.plan;
	options->plan.rate_hz = fresh.plan.rate_hz;
	options->pushed = old.pushed;
	if (fresh.node == fresh.machine.nodename)
		options->node = options->machine.nodename;
	fresh.rules = old.rules;
	fresh.settings = old.settings;
	fresh.labels = old.labels;
	options__free(&fresh);
	log__set_level(options->level);
	return true;
}

void options__free(struct options *options)
{
	for (size_t i = 0; i < options->labels.count; i++)
		free((char *)options->labels.list[i].name);
	free(options->labels.list);
	push_destinations__free(&options->pushed);
	relabel__free(&options->rules);
	recording_plan__free(&options->plan);
	settings__free(&options->settings);
	*options = (struct options){ 0 };
}

/* Prints HEAD in the left column, and TEXT, wrapped, in the right one. */
static void print_wrapped(const char *head, const char *text)
{
	int at = strlen(head) < COLUMN ? printf("%-*s", COLUMN, head) : 0;

	if (!at)
		at = printf("%s\n%*s", head, COLUMN, "") - (int)strlen(head) - 1;
	while (*text) {
		int length = (int)strcspn(text, " ");

		if (at > COLUMN && at + length >= WIDTH)
			at = printf("\n%*s", COLUMN, "") - 1;
		else if (at > COLUMN)
			at += printf(" ");
		at += printf("%.*s", length, text);
		text += length + (text[length] == ' ');
	}
	puts("");
}

static void print_option(const struct verb *verb, const struct option *option)
{
	const char *fallback = option_table__fallback(verb, option);
	char letter[8] = "    ", *head, *text;

	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	head = xasprintf("  %s--%s%s%s", letter, option->name, option->argument ? " " : "",
			 option->argument ?: "");
	text = xasprintf(fallback ? "%s (default: %s)" : "%s", option->help, fallback);
	print_wrapped(head, text);
	free(text);
	free(head);
}

void options__print_help(const struct verb *verb)
{
	/* All is written at once when the program ends, and an error is reported there. */
	static char buffer[64 * 1024];
	bool has_formats = option_table__find(verb, "format");
	const struct option *option = NULL;

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	fputs(verb->usage, stdout);
	while ((option = option_table__next(verb, option)))
		if (option->instead)
			continue;
		else if (option->name)
			print_option(verb, option);
		else
			printf("\n%s\n", option->help);
	if (has_formats)
		puts("\nFormats:");
	for (size_t i = 0; has_formats && output_formats[i]; i++)
		printf("  %-12s %s%s\n", output_formats[i]->name, output_formats[i]->description,
		       i ? "" : " (default)");
	printf("\n%s", verb->tail);
}

enum exit_status options__run(const struct verb *verb, int count, char **arguments)
{
	struct options options;
	enum exit_status status = options__parse(verb, count, arguments, &options);

	if (status)
		return status;
	if (options.help)
		options__print_help(verb);
	else
		status = verb->run(&options);
	options__free(&options);
	return status;
}

bool options__is_chosen(const struct options *options, const char *name)
{
	const struct setting *setting =
		settings__next(&options->settings, option_table__find(options->verb, name), NULL);

	return setting && setting->origin != ORIGIN_DEFAULT;
}

static void print_setting(const struct settings *settings, const struct option *option, FILE *file)
{
	const struct setting *first = settings__next(settings, option, NULL);
	bool is_list = option->flags & (OPTION_LIST | OPTION_RULES);
	char *place;

	if (!first) {
		fprintf(file, "# %s: not set\n", option->name);
		return;
	}
	fprintf(file, "%s: %s", option->name, is_list ? "[" : "");
	for (const struct setting *setting = first; setting;
	     setting = settings__next(settings, option, setting)) {
		fputs(setting == first ? "" : ", ", file);
		config_file__print(option, setting->value, file);
	}
	/* A line break in a file name must not end the comment. */
	place = plain_text__of_bytes(first->place, strlen(first->place), SIZE_MAX);
	fprintf(file, "%s  # %s\n", is_list ? "]" : "", place);
	free(place);
}

void options__print_config(const struct options *options, FILE *file)
{
	const struct option *option = NULL;

	while ((option = option_table__next(options->verb, option)))
		if (option->name && !(option->flags & OPTION_LOCAL))
			print_setting(&options->settings, option, file);
}
