// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "options/option_table.h"

struct reading {
	const struct verb *verb;
	struct settings *settings;
	struct options *options;
	char **next, **end;
	const struct option *words; /* the option whose values may go on */
};

/* Whether at most ERRORS letters differ: changed, added, dropped, or swapped with the next one. */
static bool is_near(const char *one, const char *other, unsigned int errors)
{
	for (; *one && *one == *other; one++)
		other++;
	if (!*one && !*other)
		return true;
	if (!errors--)
		return false;
	return (*one && is_near(one + 1, other, errors)) ||
	       (*other && is_near(one, other + 1, errors)) ||
	       (*one && *other && is_near(one + 1, other + 1, errors)) ||
	       (*one && *other && one[0] == other[1] && one[1] == other[0] &&
		is_near(one + 2, other + 2, errors));
}

bool options__is_near(const char *word, const char *other, unsigned int errors)
{
	return strlen(word) > errors && is_near(word, other, errors);
}

static char *refuse_option(const struct verb *verb, const char *name)
{
	for (unsigned int errors = 1; errors <= OPTIONS_TYPING_ERRORS; errors++)
		for (const struct option *option = NULL;
		     (option = option_table__next(verb, option));)
			if (option->name && !option->instead &&
			    options__is_near(name, option->name, errors))
				return xasprintf("unknown option '--%s': did you mean --%s?", name,
						 option->name);
	return xasprintf("unknown option '--%s'", name);
}

static char *refuse_word(const struct verb *verb, const char *word)
{
	if (verb->bit != VERB_RECORD)
		return xasprintf("'%s' is not an option", word);
	return xasprintf("'%s' is not an option; to start a program: pybpfprof -- %s", word, word);
}

static void add(struct reading *reading, const struct option *option, const char *value)
{
	char *place = xasprintf("--%s", option->name);

	settings__add(reading->settings, option, ORIGIN_COMMAND_LINE, value ?: "true", place);
	free(place);
}

/* Takes OPTION, spelled SPELLED, with VALUE, or the next word if that is NULL. */
static char *take(struct reading *reading, const struct option *option, const char *spelled,
		  const char *value)
{
	if (option->instead)
		return xasprintf("unknown option '%s': %s", spelled, option->instead);
	if (value && !option->argument)
		return xasprintf("option '%s' takes no value", spelled);
	if (option->flags & OPTION_LAST) {
		reading->options->agent = reading->next - 1;
		reading->options->agent_count = reading->end - reading->next + 1;
		reading->next = reading->end;
		return NULL;
	}
	if (!value && option->argument) {
		if (reading->next == reading->end)
			return xasprintf("option '%s' needs a value", spelled);
		value = *reading->next++;
	}
	if (option->flags & OPTION_WORDS)
		reading->words = option;
	add(reading, option, value);
	return NULL;
}

/* The option that LENGTH bytes of NAME are, or the only one that they begin; NULL with what is
 * WRONG. */
static const struct option *find_name(const struct verb *verb, const char *name, size_t length,
				      char **wrong)
{
	const struct option *option = NULL, *found = NULL, *another = NULL;
	char *word = xstrndup(name, length);

	while ((option = option_table__next(verb, option))) {
		if (!option->name || strncmp(option->name, word, length) != 0)
			continue;
		if (!option->name[length]) {
			free(word);
			return option;
		}
		if (option->instead)
			continue;
		another = found;
		found = option;
	}
	if (!found)
		*wrong = refuse_option(verb, word);
	else if (another)
		*wrong = xasprintf("option '--%s' is ambiguous: --%s or --%s", word, another->name,
				   found->name);
	free(word);
	return another ? NULL : found;
}

static char *take_long(struct reading *reading, const char *word)
{
	size_t length = strcspn(word + 2, "=");
	char *wrong = NULL, *spelled;
	const struct option *option = find_name(reading->verb, word + 2, length, &wrong);

	if (!option)
		return wrong;
	spelled = xstrndup(word, length + 2);
	wrong = take(reading, option, spelled, word[length + 2] ? word + length + 3 : NULL);
	free(spelled);
	return wrong;
}

/* "-p 12", "-p12", or several letters: "-tF". */
static char *take_letters(struct reading *reading, const char *word)
{
	char *wrong = NULL;

	for (const char *at = word + 1; *at && !wrong; at++) {
		char spelled[] = { '-', *at, '\0' };
		const struct option *option = NULL;

		while ((option = option_table__next(reading->verb, option)))
			if (option->letter == *at)
				break;
		if (!option)
			return xasprintf("unknown option '%s'", spelled);
		if (option->argument && at[1])
			return take(reading, option, spelled, at + 1);
		wrong = take(reading, option, spelled, NULL);
	}
	return wrong;
}

char *command_line__read(const struct verb *verb, int count, char **arguments,
			 struct settings *settings, struct options *options)
{
	struct reading reading = {
		verb, settings, options, arguments + 1, arguments + count, NULL
	};
	char *wrong = NULL;

	for (int i = 1; i < count && verb->bit == VERB_RECORD; i++) {
		if (strcmp(arguments[i], "--") != 0)
			continue;
		reading.end = arguments + i;
		options->plan.command = i + 1 < count ? arguments + i + 1 : NULL;
		break;
	}
	while (!wrong && reading.next < reading.end) {
		const char *word = *reading.next++;

		if (word[0] == '-' && word[1] == '-' && word[2])
			wrong = take_long(&reading, word);
		else if (word[0] == '-' && word[1])
			wrong = take_letters(&reading, word);
		else if (reading.words && *word >= '0' && *word <= '9')
			add(&reading, reading.words, word);
		else
			wrong = refuse_word(verb, word);
	}
	return wrong;
}
