// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "base/xalloc.h"
#include "options/option_table.h"

struct reading {
	struct options *options;
	char **next, **end;
	const struct option *words; /* the option that further words are values of, or NULL */
};

static char *refuse_option(const struct verb *verb, const char *name)
{
	const struct option *option = NULL;
	struct near near = NEAR(name);

	while ((option = option_table__next(verb, option)))
		if (option->name && !option->instead)
			near__try(&near, option->name);
	return near.best ? xasprintf("unknown option '--%s': did you mean --%s?", name, near.best)
			 : xasprintf("unknown option '--%s'", name);
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

	settings__add(&reading->options->settings, option, ORIGIN_COMMAND_LINE, value ?: "true",
		      place);
	free(place);
}

/* Takes OPTION, which the user spelled SPELLED.  If VALUE is NULL, its value is the next word. */
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

/* The option named by LENGTH bytes of NAME, or the only one that begins with them.  Returns NULL,
 * with *WRONG, if there is none. */
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
	const struct option *option = find_name(reading->options->verb, word + 2, length, &wrong);

	if (!option)
		return wrong;
	spelled = xstrndup(word, length + 2);
	wrong = take(reading, option, spelled, word[length + 2] ? word + length + 3 : NULL);
	free(spelled);
	return wrong;
}

/* Takes "-p 12", "-p12", or several letters as in "-tF". */
static char *take_letters(struct reading *reading, const char *word)
{
	char *wrong = NULL;

	for (const char *at = word + 1; *at && !wrong; at++) {
		char spelled[] = { '-', *at, '\0' };
		const struct option *option = NULL;

		while ((option = option_table__next(reading->options->verb, option)))
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

char *command_line__read(struct options *options)
{
	char **arguments = options->arguments, **end = arguments + options->count, *wrong = NULL;
	struct reading reading = { .options = options, .next = arguments + 1, .end = end };

	for (char **at = reading.next; at < end && options->verb->bit == VERB_RECORD; at++) {
		if (strcmp(*at, "--") != 0)
			continue;
		reading.end = at;
		options->plan.command = at + 1 < end ? at + 1 : NULL;
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
		else if (options->verb->bit == VERB_EVENTS && !options->tracepoint)
			options->tracepoint = word;
		else
			wrong = refuse_word(options->verb, word);
	}
	return wrong;
}
