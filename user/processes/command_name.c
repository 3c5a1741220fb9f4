// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "processes/command_name.h"

/* The kernel's limit on file names. */
#define NAME_BYTES_MAX 255

/* The options of all versions that take an argument, in the same word or the next. */
#define OPTIONS_WITH_ARGUMENT	  "cmWXQ"
#define LONG_OPTION_WITH_ARGUMENT "--check-hash-based-pycs"

#define MULTIPROCESSING "from multiprocessing."

/* The entry point of an application in a folder or archive, which gives the name. */
#define MAIN_FILE "__main__.py"

/* A module or file whose name ends so runs a worker's code, whatever that is: joblib's, torch's. */
static const char *const workers[] = {
	"loky.backend.popen_loky_posix",
	"/torch/_inductor/compile_worker/__main__.py",
};

/* Suffixes of special builds. */
static const char *const builds[] = {
	"-dbg", "-debug", "-nogil", "-freethreaded", "-freethreading", "-free-threaded", "-jit",
};

/* Prefixes of dynamic linkers, and the options of glibc's and musl's linker whose argument is in
 * the next word. */
static const char *const loaders[] = { "ld-linux", "ld-musl-", "ld.so", "ld-2." };
static const char *const loader_options[] = {
	"--argv0",   "--audit",	       "--glibc-hwcaps-mask", "--glibc-hwcaps-prepend",
	"--preload", "--library-path", "--inhibit-rpath",
};

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

/* The words of a /proc/PID/cmdline.  A NUL ends each; one without was cut. */
struct words {
	const char *next, *end;
};

/* Takes the next whole word; NULL: there is none. */
static const char *take_word(struct words *words)
{
	const char *word = words->next;
	const char *nul = memchr(word, '\0', words->end - word);

	if (!nul)
		return NULL;
	words->next = nul + 1;
	return word;
}

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

static const struct runner *find_runner(const char *name, size_t length)
{
	for (size_t i = 0; i < COUNT_OF(runners); i++)
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

	while ((argument = take_word(&words))) {
		if (argument[0] != '-' || !argument[1])
			return argument;
		if (strcmp(argument, "--") == 0)
			return take_word(&words);
		if (takes_next(runner, argument))
			take_word(&words);
	}
	return NULL;
}

static const char *find_in_option(struct words words)
{
	size_t length = strlen(APP_OPTION);
	const char *argument;

	while ((argument = take_word(&words)) && strcmp(argument, "--") != 0) {
		if (strcmp(argument, APP_OPTION) == 0)
			return take_word(&words);
		if (strncmp(argument, APP_OPTION "=", length + 1) == 0)
			return argument + length + 1;
		if (argument[0] == '-' && argument[1] == APP_LETTER)
			return argument[2] ? argument + 2 : take_word(&words);
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
static char *join_application(const struct runner *runner, const char *text, size_t length)
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

/* The program NAME with the application that ARGUMENTS tell; NULL: it runs no applications, or it
 * is not clear which. */
static char *name_of_runner(const char *name, struct words arguments)
{
	const struct runner *runner = find_runner(name, strlen(name));
	const char *found = NULL;

	if (!runner)
		return NULL;
	if (runner->place == FIRST)
		found = take_word(&arguments);
	else if (runner->place == BESIDE)
		found = find_beside(runner, arguments);
	else
		found = find_in_option(arguments);
	return found ? join_application(runner, found, strlen(found)) : NULL;
}

size_t command_name__runner_length(const char *name)
{
	size_t length = strcspn(name, " ");

	return name[length] && find_runner(name, length) ? length : 0;
}

/* As name_of_runner, but from a title that the program set. */
static char *name_of_title(const char *title)
{
	size_t length = strcspn(title, ":");
	const struct runner *runner = find_runner(title, length);
	const char *begin, *end;

	if (!runner || !runner->has_title)
		return NULL;
	begin = strchr(title, '[');
	end = begin ? strchr(begin, ']') : NULL;
	/* A runner that does not know the application has its own name there. */
	if (!end || find_runner(begin + 1, end - begin - 1) == runner)
		return NULL;
	return join_application(runner, begin + 1, end - begin - 1);
}

/* What the interpreter runs. */
enum what { INTERACTIVE, SCRIPT, MODULE, TEXT };

/* NULL if it is empty. */
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

/* The length of the prefix among PREFIXES that TEXT begins with; 0: none. */
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

/* Returns the program that a dynamic linker runs, and leaves that program's arguments in WORDS.
 * NULL if there is none. */
static const char *take_loaded(struct words *words)
{
	const char *word;

	while ((word = take_word(words))) {
		bool has_argument = false;

		if (strncmp(word, "--", 2) != 0)
			return word;
		if (!word[2])
			return take_word(words);
		for (size_t i = 0; i < COUNT_OF(loader_options); i++)
			has_argument |= strcmp(word, loader_options[i]) == 0;
		if (has_argument)
			take_word(words);
	}
	return NULL;
}

/* OPTIONS is one word.  What follows an option that takes an argument is that argument. */
static enum what parse_short_options(const char *options, struct words *words, const char **name)
{
	const char *option = strpbrk(options, OPTIONS_WITH_ARGUMENT);
	const char *argument;

	if (!option)
		return INTERACTIVE;
	argument = option[1] ? option + 1 : take_word(words);
	if (*option != 'c' && *option != 'm')
		return INTERACTIVE;
	*name = argument;
	return *option == 'c' ? TEXT : MODULE;
}

/* Parses the words after the interpreter's own.  *NAME: the script, module or text; NULL if it was
 * cut. */
static enum what parse_arguments(struct words *words, const char **name)
{
	enum what what = INTERACTIVE;
	const char *word;

	*name = NULL;
	while (what == INTERACTIVE && (word = take_word(words))) {
		if (word[0] != '-' || !word[1]) {
			*name = word;
			return SCRIPT;
		} else if (strcmp(word, "--") == 0) {
			*name = take_word(words);
			return SCRIPT;
		} else if (strcmp(word, LONG_OPTION_WITH_ARGUMENT) == 0) {
			take_word(words);
		} else if (word[1] != '-') {
			what = parse_short_options(word + 1, words, name);
		}
	}
	return what;
}

/* A program for `-c` is known by name if it calls a module of multiprocessing. */
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

/* The base name of PATH, but for MAIN_FILE the name of the folder or archive. */
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

/* Returns BOTH, a program with its application, or NAME if that is NULL.  Frees the other one. */
static char *with_both(char *name, char *both)
{
	char *chosen = both ? copy(both, strlen(both)) : name;

	if (both)
		free(name);
	free(both);
	return chosen;
}

/* Adds the application to NAME if WORDS, its arguments, tell it.  Frees NAME. */
static char *with_application(char *name, const struct words *words)
{
	char *both = NULL;

	if (name)
		both = name_of_runner(name, *words);
	return with_both(name, both);
}

/* NULL if the interpreter reads standard input, or if the name was cut. */
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

/* WORD is a path, or a title that the program set, such as "gunicorn: worker [app]" or "[celeryd:
 * celery@host] -active-". */
static char *name_of_program(const char *word)
{
	char *name;

	if (*word == '/' || *word == '.')
		return copy_base(word, strlen(word));
	word += strspn(word, "[( ");
	name = copy_base(word, strcspn(word, " :[]()"));
	return with_both(name, name_of_title(word));
}

/* Whether only NULs are left: the program has written over its command line. */
static bool has_ended(const struct words *words)
{
	for (const char *at = words->next; at < words->end; at++)
		if (*at)
			return false;
	return true;
}

/* A command line, parsed up to the name of the program. */
struct command {
	const char *program, *executable; /* NULL: not known */
	struct words words;		  /* those after PROGRAM */
	bool is_python;
	bool runs; /* the words are an interpreter's arguments */
};

static struct command parse(const char *bytes, size_t length, const char *executable)
{
	struct command command = { .executable = executable, .words = { bytes, bytes + length } };
	const char *loaded = NULL;
	bool named;

	command.program = take_word(&command.words);
	if (command.program && is_loader(command.program))
		loaded = take_loaded(&command.words);
	/* The executable is the dynamic linker then. */
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
