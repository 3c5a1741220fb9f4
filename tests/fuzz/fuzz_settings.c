// SPDX-License-Identifier: BSD-2-Clause
/* The input: the settings of the agent or of a report, as users and their tools write them.  Its
 * first byte chooses: the agent's command line, environment and two states of its file; a
 * report's command line; push destinations; a file of credentials. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "input.h"
#include "push/credentials.h"
#include "python/unicode.h"
#include "verbs.h"

#define WORDS_MAX  32
#define PARTS_MAX  3
#define SEPARATOR  "\n---\n"
#define VARIABLE   "PYBPFPROF_"
#define BYTES_MAX  (64 * 1024)
#define HTTP	   "http://"
#define LOCALHOST  "localhost"
#define LOOPBACK_6 "[::1"

/* The contents of every file, except libFuzzer's own. */
static struct {
	char *text; /* NULL: its real contents */
	size_t length;
} file;

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
char *__wrap_store__open(const char *folder, enum store_access wanted, struct store **store);
void __wrap_store__close(struct store *store);

/* The linker directs calls of these functions here (see the Makefile). */
FILE *__wrap_fopen(const char *path, const char *mode)
{
	return file.text ? fmemopen(file.text, file.length, "r") : __real_fopen(path, mode);
}

char *__wrap_store__open(const char *folder, enum store_access wanted, struct store **store)
{
	CHECK(folder && wanted == STORE_READ);
	*store = NULL;
	return xstrdup("there is none");
}

void __wrap_store__close(struct store *store)
{
	CHECK(!store);
}

/* Splits TEXT into words, one per line, and sets variables among them.  Returns the number of
 * words. */
static int take_words(char *text, char *words[WORDS_MAX + 1])
{
	int count = 1;
	char *word;

	while (count < WORDS_MAX && (word = strsep(&text, "\n"))) {
		if (strncmp(word, VARIABLE, strlen(VARIABLE)) == 0 && strchr(word, '='))
			putenv(word);
		else
			words[count++] = word;
	}
	words[count] = NULL;
	return count;
}

static void check(const struct options *options)
{
	CHECK(options->plan.rate_hz > 0 && options->plan.processes_max > 0);
	CHECK(options->window_s >= 0.1 && options->window_s <= 3600);
	CHECK(options->store_bytes && options->store_age_s > 0);
	CHECK(options->cpu_budget >= 0 && options->cpu_budget <= 1);
	CHECK(options->node);
	CHECK(options->help || options->print_config || options->folder || options->pushed.count ||
	      (!options->listens_by_default && options->address));
}

/* Returns the settings, printed as a file; the caller frees. */
static char *print(const struct options *options)
{
	char *text;
	size_t size;
	FILE *printed = open_memstream(&text, &size);

	options__print_config(options, printed);
	CHECK(!fclose(printed));
	return text;
}

/* Removes from TEXT the comments on each value's source.  Returns false if a YAML file cannot
 * hold it. */
static bool strip(char *text)
{
	char *to = text, *valid;
	bool is_text;

	for (char *at = text, *end; *at; at = end) {
		char *comment = end = at + strcspn(at, "\n");

		while (comment > at && *comment != '#')
			comment--;
		end += *end != '\0';
		if (comment == at)
			continue;
		memmove(to, at, comment - at);
		to += comment - at;
		*to++ = '\n';
	}
	*to = '\0';
	valid = unicode__sanitize(text, strlen(text));
	is_text = strcmp(valid, text) == 0;
	free(valid);
	return is_text;
}

/* Checks that the printed file gives the same settings. */
static void check_printed(const struct options *options)
{
	char *words[] = { "agent", "--print-config", "--config", "printed", NULL };
	char *printed = print(options), *again;
	struct options from_file;
	const char *path = options->config;

	file.text = xstrdup(printed);
	file.length = strlen(printed);
	if (strip(printed) && (!path || !strchr(path, '#'))) {
		CHECK(!options__parse(&verb_agent, 4, words, &from_file));
		again = print(&from_file);
		CHECK(strip(again) && strcmp(printed, again) == 0);
		free(again);
		options__free(&from_file);
	}
	free(file.text);
	file.text = NULL;
	free(printed);
}

static void set_file(char *text)
{
	file.text = text ?: "";
	file.length = strlen(file.text);
}

static void try_agent(char *text)
{
	char *words[WORDS_MAX + 1] = { "agent" }, *parts[PARTS_MAX] = { text };
	struct options options;
	int count;

	for (int i = 1; i < PARTS_MAX && parts[i - 1]; i++) {
		parts[i] = strstr(parts[i - 1], SEPARATOR);
		if (!parts[i])
			break;
		*parts[i] = '\0';
		parts[i] += strlen(SEPARATOR);
	}
	clearenv();
	count = take_words(text, words);
	set_file(parts[1]);
	if (options__parse(&verb_agent, count, words, &options)) {
		file.text = NULL;
		return;
	}
	check(&options);
	set_file(parts[2]);
	options__reload(&options);
	check(&options);
	clearenv();
	check_printed(&options);
	options__free(&options);
}

static void try_report(char *text)
{
	char *words[WORDS_MAX + 1] = { "report" };
	int count = take_words(text, words);

	options__run(&verb_report, count, words);
}

/* Whether packets to HOST, the part behind http://, stay on this machine. */
static bool is_near(const char *host)
{
	size_t length;

	/* An address with an interface is local, too. */
	if (strncmp(host, LOOPBACK_6, strlen(LOOPBACK_6)) == 0)
		return strchr("]%", host[strlen(LOOPBACK_6)]);
	length = strcspn(host, ":/");
	return (length == strlen(LOCALHOST) && strncmp(host, LOCALHOST, length) == 0) ||
	       (strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == length);
}

static void try_destinations(char *text)
{
	struct push_destinations destinations = { 0 };
	char *word;

	while ((word = strsep(&text, "\n")))
		free(push_destinations__add(&destinations, word));
	for (size_t i = 0; i < destinations.count; i++) {
		const struct push_destination *destination = &destinations.list[i];
		const char *request = destination->url.request;
		bool is_open = strncmp(request, HTTP, strlen(HTTP)) == 0;

		CHECK(is_open || strncmp(request, "https://", 8) == 0);
		CHECK(!strpbrk(request, " \r\n?#"));
		CHECK(!memchr(request, '@', strcspn(request + strlen("https://"), "/")));
		CHECK(strstr(request, destination->url.backend->path));
		CHECK(destination->url.secure == (!is_open || is_near(request + strlen(HTTP))));
		CHECK(destination->timeout_s > 0 && destination->queue_bytes);
		CHECK(!destination->token_file || !destination->user_file);
		CHECK(!destination->tenant || *destination->tenant);
	}
	push_destinations__free(&destinations);
}

static void try_credentials(const uint8_t *bytes, size_t size)
{
	int fd = memfd_create("credentials", 0);
	char *path = xasprintf("/proc/self/fd/%d", fd), *wrong, *header;

	CHECK(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	for (int kind = CREDENTIALS_TOKEN; kind <= CREDENTIALS_USER; kind++) {
		wrong = NULL;
		header = credentials__header(path, kind, &wrong);
		CHECK(!header == !!wrong);
		CHECK(!header || !strpbrk(header, "\r\n"));
		free(header);
		free(wrong);
	}
	free(path);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static bool is_quiet;
	uint8_t choice = size ? bytes[0] % 4 : 0;
	char *text;

	if (!size || size > BYTES_MAX)
		return 0;
	if (!is_quiet)
		is_quiet = freopen("/dev/null", "w", stdout);
	text = xstrndup((const char *)bytes + 1, size - 1);
	if (choice == 0)
		try_agent(text);
	else if (choice == 1)
		try_report(text);
	else if (choice == 2)
		try_destinations(text);
	else
		try_credentials(bytes + 1, size - 1);
	free(text);
	return 0;
}
