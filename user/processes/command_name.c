// SPDX-License-Identifier: BSD-2-Clause
#include <stdbool.h>
#include <string.h>

#include "base/xalloc.h"
#include "processes/command_name.h"

/* As long as a file's name. */
#define NAME_BYTES_MAX 255

/* Of the options in any version, those that take an argument, in the same word or the next. */
#define OPTIONS_WITH_ARGUMENT	  "cmWXQ"
#define LONG_OPTION_WITH_ARGUMENT "--check-hash-based-pycs"

#define MULTIPROCESSING "from multiprocessing."

struct words {
	const char *next, *end;
};

/* What is run: NAME says which one, where it was not cut. */
enum what { INTERACTIVE, SCRIPT, MODULE, TEXT };

/* The next word; NULL where there is none. */
static const char *take(struct words *words)
{
	const char *word = words->next;
	const char *nul = memchr(word, '\0', words->end - word);

	if (!nul)
		return NULL;
	words->next = nul + 1;
	return word;
}

/* NULL where it is empty. */
static char *copy(const char *name, size_t length)
{
	if (!length)
		return NULL;
	return xstrndup(name, length < NAME_BYTES_MAX ? length : NAME_BYTES_MAX);
}

/* The last part of a path of LENGTH bytes. */
static char *copy_base(const char *path, size_t length)
{
	const char *slash;

	while (length > 1 && path[length - 1] == '/')
		length--;
	slash = memrchr(path, '/', length);
	if (!slash || length == 1)
		return copy(path, length);
	return copy(slash + 1, path + length - slash - 1);
}

/* "python", "python3.14t", "python2.7-dbg", and Red Hat's "platform-python3.6". */
static bool is_interpreter(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (strncmp(name, "platform-", strlen("platform-")) == 0)
		name += strlen("platform-");
	if (strncmp(name, "python", strlen("python")) != 0)
		return false;
	name += strlen("python");
	name += strspn(name, "0123456789.");
	name += strspn(name, "dmtu");
	return !*name || strcmp(name, "-dbg") == 0 || strcmp(name, "-debug") == 0;
}

/* Short options in one word.  What is behind one with an argument is that. */
static enum what parse_short_options(const char *options, struct words *words, const char **name)
{
	const char *option = strpbrk(options, OPTIONS_WITH_ARGUMENT);
	const char *argument;

	if (!option)
		return INTERACTIVE;
	argument = option[1] ? option + 1 : take(words);
	if (*option != 'c' && *option != 'm')
		return INTERACTIVE;
	*name = argument;
	return *option == 'c' ? TEXT : MODULE;
}

/* As CPython parses what comes behind its own name. */
static enum what parse_arguments(struct words *words, const char **name)
{
	enum what what = INTERACTIVE;
	const char *word;

	*name = NULL;
	while (what == INTERACTIVE && (word = take(words))) {
		if (word[0] != '-' || !word[1]) {
			*name = word;
			return SCRIPT;
		} else if (strcmp(word, "--") == 0) {
			*name = take(words);
			return SCRIPT;
		} else if (strcmp(word, LONG_OPTION_WITH_ARGUMENT) == 0) {
			take(words);
		} else if (word[1] != '-') {
			what = parse_short_options(word + 1, words, name);
		}
	}
	return what;
}

/* The module of multiprocessing's that a program given on the command line is the call of. */
static char *name_of_text(const char *text)
{
	/* Since 3.14. */
	if (strncmp(text, "import sys; ", strlen("import sys; ")) == 0)
		text += strlen("import sys; ");
	if (strncmp(text, MULTIPROCESSING, strlen(MULTIPROCESSING)) != 0)
		return xstrdup("-c");
	text += strlen("from ");
	return copy(text, strcspn(text, " "));
}

/* What an interpreter runs; NULL where it reads its standard input, or that was cut. */
static char *name_of_run(struct words words)
{
	const char *name;

	switch (parse_arguments(&words, &name)) {
	case SCRIPT:
		if (!name || strcmp(name, "-") == 0)
			return NULL;
		return copy_base(name, strlen(name));
	case MODULE:
		return name ? copy(name, strlen(name)) : NULL;
	case TEXT:
		return name_of_text(name ? name : "");
	default:
		return NULL;
	}
}

/* The name of a program that its first word tells: a path, or a title that the program has put
 * there, as "gunicorn: worker [app]" and "[celeryd: celery@host] -active-". */
static char *name_of_program(const char *word)
{
	if (*word != '/' && *word != '.') {
		word += strspn(word, "[( ");
		return copy_base(word, strcspn(word, " :[]()"));
	}
	return copy_base(word, strlen(word));
}

/* Whether all that is left is what a program leaves behind that wrote over its command line. */
static bool has_ended(const struct words *words)
{
	for (const char *at = words->next; at < words->end; at++)
		if (*at)
			return false;
	return true;
}

char *command_name__of(const char *bytes, size_t length, const char *executable)
{
	struct words words = { bytes, bytes + length };
	const char *program = take(&words);
	bool python = executable && is_interpreter(executable);
	bool named = program && is_interpreter(program);
	char *name = NULL;

	if (program && (named || (python && !has_ended(&words))))
		name = name_of_run(words);
	else if (program)
		name = name_of_program(program);
	if (!name && executable)
		name = copy(executable, strlen(executable));
	if (!name && program)
		name = name_of_program(program);
	return name;
}
