// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/xalloc.h"
#include "processes/runner.h"

/* Where the application is among the arguments. */
enum place {
	IN_OPTION, /* --app APPLICATION, -A */
	FIRST,	   /* the first argument, a command */
	BESIDE,	   /* the first argument that is no option */
};

#define APP_LETTER 'A'
#define APP_OPTION "--app"

struct runner {
	const char *name;
	enum place place;
	/* Options without an argument: letters, and words with a space before and after each. */
	const char *letters, *words;
	bool has_title; /* "NAME: ROLE [APPLICATION]" */
};

static const struct runner runners[] = {
	{ "uvicorn", BESIDE, "",
	  " reload use-colors proxy-headers server-header date-header access-log factory "
	  "reset-contextvars ",
	  false },
	{ "gunicorn", BESIDE, "DR",
	  " reload spew check-config print-config preload reuse-port daemon initgroups "
	  "capture-output disable-redirect-access-to-syslog log-syslog enable-stdio-inheritance "
	  "proxy-protocol suppress-ragged-eofs do-handshake-on-connect permit-obsolete-folding "
	  "permit-unconventional-http-method permit-unconventional-http-version "
	  "casefold-http-method strip-header-spaces ",
	  true },
	{ "hypercorn", BESIDE, "", " debug reload ", false },
	{ "daphne", BESIDE, "", " proxy-headers ", false },
	{ "celery", IN_OPTION, "", "", false },
	{ "flask", IN_OPTION, "", "", false },
	{ "manage.py", FIRST, "", "", false },
	{ "django", FIRST, "", "", false },
	{ "django-admin", FIRST, "", "", false },
	{ "airflow", FIRST, "", "", false },
};

static const struct runner *find(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(runners) / sizeof(runners[0]); i++)
		if (strlen(runners[i].name) == length && memcmp(runners[i].name, name, length) == 0)
			return &runners[i];
	return NULL;
}

static bool has_word(const char *words, const char *option)
{
	size_t length = strlen(option);

	for (const char *at = words; length && (at = strstr(at, option)); at++)
		if (at > words && at[-1] == ' ' && at[length] == ' ')
			return true;
	return false;
}

/* Whether the word after OPTION is its argument. */
static bool takes_next(const struct runner *runner, const char *option)
{
	if (option[1] == '-')
		return !strchr(option, '=') && strncmp(option, "--no-", strlen("--no-")) != 0 &&
		       !has_word(runner->words, option + 2);
	option += 1 + strspn(option + 1, runner->letters);
	/* Otherwise the argument is in the same word. */
	return *option && !option[1];
}

static const char *find_beside(const struct runner *runner, struct words words)
{
	const char *argument;

	while ((argument = words__take(&words))) {
		if (argument[0] != '-' || !argument[1])
			return argument;
		if (strcmp(argument, "--") == 0)
			return words__take(&words);
		if (takes_next(runner, argument))
			words__take(&words);
	}
	return NULL;
}

static const char *find_in_option(struct words words)
{
	size_t length = strlen(APP_OPTION);
	const char *argument;

	while ((argument = words__take(&words)) && strcmp(argument, "--") != 0) {
		if (strcmp(argument, APP_OPTION) == 0)
			return words__take(&words);
		if (strncmp(argument, APP_OPTION "=", length + 1) == 0)
			return argument + length + 1;
		if (argument[0] == '-' && argument[1] == APP_LETTER)
			return argument[2] ? argument + 2 : words__take(&words);
	}
	return NULL;
}

/* Of "package.module:attribute", a path to it, or a command. */
static bool is_part(char byte)
{
	return isalnum((unsigned char)byte) || byte & 0x80 || strchr("_.:-/", byte);
}

/* RUNNER's name with the application at TEXT, of LENGTH bytes at most.  The folders of a path are
 * left out, and so are the arguments of a call, which may be secret.  NULL if it is none. */
static char *join(const struct runner *runner, const char *text, size_t length)
{
	const char *slash;
	size_t end = 0;

	while (end < length && text[end] && is_part(text[end]))
		end++;
	if (end < length && text[end] && text[end] != '(')
		return NULL;
	slash = memrchr(text, '/', end);
	if (slash) {
		end -= slash + 1 - text;
		text = slash + 1;
	}
	if (!end || *text == '-')
		return NULL;
	return xasprintf("%s %.*s", runner->name, (int)end, text);
}

char *runner__name(const char *name, size_t length, struct words arguments)
{
	const struct runner *runner = find(name, length);
	const char *found = NULL;

	if (!runner)
		return NULL;
	if (runner->place == FIRST)
		found = words__take(&arguments);
	else if (runner->place == BESIDE)
		found = find_beside(runner, arguments);
	else
		found = find_in_option(arguments);
	return found ? join(runner, found, strlen(found)) : NULL;
}

size_t runner__length(const char *name)
{
	size_t length = strcspn(name, " ");

	return name[length] && find(name, length) ? length : 0;
}

char *runner__name_of_title(const char *title)
{
	size_t length = strcspn(title, ":");
	const struct runner *runner = find(title, length);
	const char *begin, *end;

	if (!runner || !runner->has_title)
		return NULL;
	begin = strchr(title, '[');
	end = begin ? strchr(begin, ']') : NULL;
	/* A runner that does not know the application has its own name there. */
	if (!end || find(begin + 1, end - begin - 1) == runner)
		return NULL;
	return join(runner, begin + 1, end - begin - 1);
}
