// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "cmd_agent.h"
#include "cmd_check.h"
#include "cmd_record.h"
#include "cmd_report.h"

/* The verbs; the first one may be left out. */
static const struct {
	const struct verb *verb;
	enum exit_status (*run)(int count, char **arguments);
} verbs[] = {
	{ &verb_record, cmd_record },
	{ &verb_check, cmd_check },
	{ &verb_agent, cmd_agent },
	{ &verb_report, cmd_report },
};

#define VERB_COUNT (sizeof(verbs) / sizeof(verbs[0]))

/* Verbs of other profilers. */
static const char *const elsewhere[][2] = {
	{ "top",
	  "a live view is not supported yet; for a table: pybpfprof -p PID -d 5 -f text -o -" },
	{ "dump",
	  "stacks of one moment are not supported yet; for a second: pybpfprof -p PID -d 1" },
	{ "attach", "use pybpfprof -p PID" },
};

static const char *find_meant(const char *word)
{
	for (unsigned int errors = 1; errors <= OPTIONS_TYPING_ERRORS; errors++)
		for (size_t i = 0; i < VERB_COUNT; i++)
			if (options__is_near(word, verbs[i].verb->name, errors))
				return verbs[i].verb->name;
	return NULL;
}

static enum exit_status run(int count, char **arguments)
{
	const char *word = count > 1 ? arguments[1] : "-", *meant;

	for (size_t i = 0; i < VERB_COUNT; i++)
		if (strcmp(word, verbs[i].verb->name) == 0)
			return verbs[i].run(count - 1, arguments + 1);
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
		if (strcmp(word, elsewhere[i][0]) != 0)
			continue;
		log__error("unknown verb '%s': %s", word, elsewhere[i][1]);
		return STATUS_USAGE;
	}
	meant = *word == '-' ? NULL : find_meant(word);
	if (!meant)
		return cmd_record(count, arguments);
	log__error("unknown verb '%s': did you mean pybpfprof %s?", word, meant);
	return STATUS_USAGE;
}

/* How the program ends after a verb ended with STATUS: what was printed has yet to arrive, and
 * where it does not, nobody knows what else there was to tell. */
static enum exit_status close_output(enum exit_status status)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	log__error("cannot write to standard output: %s", strerror(errno ? errno : EIO));
	return STATUS_FAILED;
}

/* Else what is opened next, a profile too, would take the place of a closed stdout or stderr, and
 * get what is said.  Neither reads nor writes do with such a descriptor, as with none; nor has a
 * program that is started one. */
static void keep_places(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_CLOEXEC) != fd)
			return;
}

int main(int count, char **arguments)
{
	keep_places();
	/* What is too large for ulimit -f is told where it is written. */
	signal(SIGXFSZ, SIG_IGN);
	/* Lines of two processes, of which the agent may have another, are not to be mixed. */
	setvbuf(stderr, NULL, _IOLBF, 0);
	/* Else what there was no memory for would be missing in what is written, without a word. */
	json_set_alloc_funcs(xmalloc, free);
	return close_output(run(count, arguments));
}
