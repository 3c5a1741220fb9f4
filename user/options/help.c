// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "options/option_table.h"

#define COLUMN 27
#define WIDTH  80

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
