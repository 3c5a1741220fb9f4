// SPDX-License-Identifier: BSD-2-Clause
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "options/option_table.h"

/* What getopt_long calls the first one: no letter. */
#define FIRST 256

#define HELP_COLUMN 27

static size_t count_of(const struct option_entry *options)
{
	size_t count = 0;

	while (options[count].name)
		count++;
	return count;
}

/* What getopt_long wants; the caller frees. */
static struct option *make_long(const struct option_entry *options)
{
	size_t count = count_of(options);
	struct option *longs = xcalloc(count + 1, sizeof(*longs));

	for (size_t i = 0; i < count; i++)
		longs[i] = (struct option){ options[i].name,
					    options[i].argument ? required_argument : no_argument,
					    NULL, FIRST + (int)i };
	return longs;
}

static char *make_short(const struct option_entry *options)
{
	size_t count = count_of(options), length = 0;
	char *letters = xcalloc(2 * count + 3, 1);

	/* It tells a missing value apart, and says nothing itself. */
	letters[length++] = '+';
	letters[length++] = ':';
	for (size_t i = 0; i < count; i++) {
		if (!options[i].letter)
			continue;
		letters[length++] = options[i].letter;
		if (options[i].argument)
			letters[length++] = ':';
	}
	return letters;
}

static const struct option_entry *find(const struct option_entry *options, int found)
{
	if (found >= FIRST)
		return &options[found - FIRST];
	while (options->letter != found)
		options++;
	return options;
}

static enum exit_status refuse_option(const char *verb, int option, const char *argument)
{
	if (option == ':')
		log__error("option '%s' needs a value; see pybpfprof %s --help", argument, verb);
	else
		log__error("unknown option '%s', or it takes no value; see pybpfprof %s --help",
			   argument, verb);
	return STATUS_USAGE;
}

/* Says what is WRONG, NULL: nothing, and frees it. */
static enum exit_status judge(const char *verb, char *wrong)
{
	if (!wrong)
		return STATUS_WRITTEN;
	log__error("%s; see pybpfprof %s --help", wrong, verb);
	free(wrong);
	return STATUS_USAGE;
}

enum exit_status option_table__walk(const char *verb, const struct option_entry *options, int count,
				    char **arguments,
				    char *(*take)(void *context, const struct option_entry *option,
						  const char *value),
				    void *context)
{
	struct option *longs = make_long(options);
	char *letters = make_short(options);
	enum exit_status status = STATUS_WRITTEN;
	int found;

	opterr = 0;
	/* Not 1: in the middle of a word of an earlier command line it would go on there. */
	optind = 0;
	while (!status && (found = getopt_long(count, arguments, letters, longs, NULL)) != -1) {
		if (found == '?' || found == ':')
			status = refuse_option(verb, found, arguments[optind - 1]);
		else
			status = judge(verb, take(context, find(options, found), optarg));
	}
	if (!status && optind < count) {
		log__error("'%s' is not an option; see pybpfprof %s --help", arguments[optind],
			   verb);
		status = STATUS_USAGE;
	}
	free(letters);
	free(longs);
	return status;
}

static char *take_by_itself(void *context, const struct option_entry *option, const char *value)
{
	return option->take(context, value);
}

enum exit_status option_table__parse(const char *verb, const struct option_entry *options,
				     void *context, int count, char **arguments)
{
	return option_table__walk(verb, options, count, arguments, take_by_itself, context);
}

char *option_table__refuse(const char *what, const char *value, const char *wanted)
{
	return xasprintf("%s '%s' is not %s", what, value, wanted);
}

static void print_option(const struct option_entry *option)
{
	char letter[8] = "    ", *head, *lines = xstrdup(option->help), *rest = lines, *line;

	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	head = xasprintf("  %s--%s%s%s", letter, option->name, option->argument ? " " : "",
			 option->argument ? option->argument : "");
	if (strlen(head) >= HELP_COLUMN) {
		puts(head);
		*head = '\0';
	}
	while ((line = strsep(&rest, "\n"))) {
		printf("%-*s%s\n", HELP_COLUMN, head, line);
		*head = '\0';
	}
	free(head);
	free(lines);
}

void option_table__print(const struct option_entry *options)
{
	for (; options->name; options++)
		print_option(options);
}
