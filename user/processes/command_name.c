// SPDX-License-Identifier: BSD-2-Clause
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "processes/command_name.h"
#include "processes/runner.h"

/* As long as a file's name. */
#define NAME_BYTES_MAX 255

/* Of the options in any version, those that take an argument, in the same word or the next. */
#define OPTIONS_WITH_ARGUMENT	  "cmWXQ"
#define LONG_OPTION_WITH_ARGUMENT "--check-hash-based-pycs"

#define MULTIPROCESSING "from multiprocessing."

/* Which a whole application has, whose name is its folder's. */
#define MAIN_FILE "__main__.py"

/* What the modules and files end with that workers run whatever they are for: joblib's and
 * torch's. */
static const char *const workers[] = {
	"loky.backend.popen_loky_posix",
	"/torch/_inductor/compile_worker/__main__.py",
};

/* What names of builds end with. */
static const char *const builds[] = {
	"-dbg", "-debug", "-nogil", "-freethreaded", "-freethreading", "-free-threaded", "-jit",
};

/* What names of dynamic linkers begin with, and those of their options that take an argument in
 * the next word: glibc's, musl's. */
static const char *const loaders[] = { "ld-linux", "ld-musl-", "ld.so", "ld-2." };
static const char *const loader_options[] = {
	"--argv0",   "--audit",	       "--glibc-hwcaps-mask", "--glibc-hwcaps-prepend",
	"--preload", "--library-path", "--inhibit-rpath",
};

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

/* What is run: NAME says which one, where it was not cut. */
enum what { INTERACTIVE, SCRIPT, MODULE, TEXT };

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

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The length of that one of COUNT PREFIXES which TEXT begins with; 0: none. */
static size_t match_prefix(const char *text, const char *const *prefixes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0)
			return strlen(prefixes[i]);
	return 0;
}

/* "python", "python3.14t", "python2.7-dbg", "python3.13-nogil", and Red Hat's
 * "platform-python3.6". */
static bool is_interpreter(const char *path)
{
	const char *name = base_of(path);
	size_t length;

	if (strncmp(name, "platform-", strlen("platform-")) == 0)
		name += strlen("platform-");
	if (strncmp(name, "python", strlen("python")) != 0)
		return false;
	name += strlen("python");
	name += strspn(name, "0123456789.");
	name += strspn(name, "dmtu");
	while ((length = match_prefix(name, builds, COUNT_OF(builds))))
		name += length;
	return !*name;
}

static bool is_worker(const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < COUNT_OF(workers); i++) {
		size_t ending = strlen(workers[i]);

		if (length >= ending && strcmp(name + length - ending, workers[i]) == 0)
			return true;
	}
	return false;
}

/* "PEX_ROOT/unzipped_pexes/1/HASH", "PEX_ROOT/venvs/1/HASH/HASH/pex". */
static bool is_unpacked(const char *path)
{
	return strstr(path, "/unzipped_pexes/") ||
	       (strstr(path, "/venvs/") && strcmp(base_of(path), "pex") == 0);
}

static bool is_loader(const char *path)
{
	return match_prefix(base_of(path), loaders, COUNT_OF(loaders));
}

/* The program that a dynamic linker was told to run, whose own words follow; NULL where there is
 * none. */
static const char *take_loaded(struct words *words)
{
	const char *word;

	while ((word = words__take(words))) {
		bool has_argument = false;

		if (strncmp(word, "--", 2) != 0)
			return word;
		if (!word[2])
			return words__take(words);
		for (size_t i = 0; i < COUNT_OF(loader_options); i++)
			has_argument |= strcmp(word, loader_options[i]) == 0;
		if (has_argument)
			words__take(words);
	}
	return NULL;
}

/* Short options in one word.  What is behind one with an argument is that. */
static enum what parse_short_options(const char *options, struct words *words, const char **name)
{
	const char *option = strpbrk(options, OPTIONS_WITH_ARGUMENT);
	const char *argument;

	if (!option)
		return INTERACTIVE;
	argument = option[1] ? option + 1 : words__take(words);
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
	while (what == INTERACTIVE && (word = words__take(words))) {
		if (word[0] != '-' || !word[1]) {
			*name = word;
			return SCRIPT;
		} else if (strcmp(word, "--") == 0) {
			*name = words__take(words);
			return SCRIPT;
		} else if (strcmp(word, LONG_OPTION_WITH_ARGUMENT) == 0) {
			words__take(words);
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

/* The name of an application's folder, where PATH is the file in it that is run; else PATH's. */
static char *name_of_script(const char *path)
{
	const char *base = base_of(path);
	size_t length = base - path;
	const char *folder;

	if (strcmp(base, MAIN_FILE) != 0)
		return copy_base(path, strlen(path));
	while (length > 1 &&
	       (path[length - 1] == '/' || (path[length - 1] == '.' && path[length - 2] == '/')))
		length--;
	folder = length ? memrchr(path, '/', length) : NULL;
	folder = folder ? folder + 1 : path;
	length -= folder - path;
	if (!length || (length <= 2 && strncmp(folder, "..", length) == 0))
		return copy(base, strlen(base));
	return copy(folder, length);
}

/* BOTH, of a program and its application, where there is one, else NAME; frees the other. */
static char *with_both(char *name, char *both)
{
	char *chosen = both ? copy(both, strlen(both)) : name;

	if (both)
		free(name);
	free(both);
	return chosen;
}

/* NAME, which is freed, with the application that it runs by its WORDS. */
static char *with_application(char *name, const struct words *words)
{
	char *both = NULL;

	if (name)
		both = runner__name(name, strlen(name), *words);
	return with_both(name, both);
}

/* What an interpreter runs; NULL where it reads its standard input, or that was cut. */
static char *name_of_run(struct words words)
{
	const char *name;

	switch (parse_arguments(&words, &name)) {
	case SCRIPT:
		if (!name || strcmp(name, "-") == 0)
			return NULL;
		return with_application(name_of_script(name), &words);
	case MODULE:
		return name ? with_application(copy(name, strlen(name)), &words) : NULL;
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
	char *name;

	if (*word == '/' || *word == '.')
		return copy_base(word, strlen(word));
	word += strspn(word, "[( ");
	name = copy_base(word, strcspn(word, " :[]()"));
	return with_both(name, runner__name_of_title(word));
}

/* Whether all that is left is what a program leaves behind that wrote over its command line. */
static bool has_ended(const struct words *words)
{
	for (const char *at = words->next; at < words->end; at++)
		if (*at)
			return false;
	return true;
}

/* A command line, taken apart as far as the program that it begins with. */
struct command {
	const char *program, *executable; /* NULL: not known */
	struct words words;		  /* the rest */
	bool is_python;
	bool runs; /* the rest are an interpreter's arguments */
};

static struct command parse(const char *bytes, size_t length, const char *executable)
{
	struct command command = { .executable = executable, .words = { bytes, bytes + length } };
	const char *loaded = NULL;
	bool named;

	command.program = words__take(&command.words);
	if (command.program && is_loader(command.program))
		loaded = take_loaded(&command.words);
	/* Which was started as an argument of what is the executable then. */
	if (loaded) {
		command.program = loaded;
		command.executable = NULL;
	}
	named = command.program && is_interpreter(command.program);
	command.is_python = named || (command.executable && is_interpreter(command.executable));
	command.runs =
		command.program && command.is_python && (named || !has_ended(&command.words));
	return command;
}

char *command_name__of(const char *bytes, size_t length, const char *executable)
{
	struct command command = parse(bytes, length, executable);
	char *name = NULL;

	if (command.runs)
		name = name_of_run(command.words);
	else if (command.program)
		name = name_of_program(command.program);
	if (!name && command.executable)
		name = copy(command.executable, strlen(command.executable));
	if (!name && command.program)
		name = name_of_program(command.program);
	return name;
}

enum command_kind command_name__kind(const char *bytes, size_t length, const char *executable)
{
	struct command command = parse(bytes, length, executable);
	enum what what = INTERACTIVE;
	const char *name = NULL;

	if (!command.is_python)
		return COMMAND_OTHER;
	if (command.runs)
		what = parse_arguments(&command.words, &name);
	if (what == TEXT || (name && is_worker(name)))
		return COMMAND_WORKER;
	return what == SCRIPT && name && is_unpacked(name) ? COMMAND_UNPACKED : COMMAND_PYTHON;
}
