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
#include "base/near.h"
#include "base/xalloc.h"
#include "verbs.h"

/* The verbs; the first one may be left out. */
static const struct verb *const verbs[] = { &verb_record, &verb_check, &verb_agent, &verb_report,
					    &verb_events };

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
	struct near near = NEAR(word);

	for (size_t i = 0; i < VERB_COUNT; i++)
		near__try(&near, verbs[i]->name);
	return near.best;
}

static enum exit_status run(int count, char **arguments)
{
	const char *word = count > 1 ? arguments[1] : "-", *meant;

	for (size_t i = 0; i < VERB_COUNT; i++)
		if (strcmp(word, verbs[i]->name) == 0)
			return options__run(verbs[i], count - 1, arguments + 1);
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
		if (strcmp(word, elsewhere[i][0]) != 0)
			continue;
		log__error("unknown verb '%s': %s", word, elsewhere[i][1]);
		return STATUS_USAGE;
	}
	meant = *word == '-' ? NULL : find_meant(word);
	if (!meant)
		return options__run(verbs[0], count, arguments);
	log__error("unknown verb '%s': did you mean pybpfprof %s?", word, meant);
	return STATUS_USAGE;
}

/* Flushes standard output after a verb ended with STATUS.  Returns the exit status: lost output is
 * a failure. */
static enum exit_status close_output(enum exit_status status)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	log__error("cannot write to standard output: %s", strerror(errno ? errno : EIO));
	return STATUS_FAILED;
}

/* Opens "/" in place of a closed stdin, stdout or stderr.  Otherwise the next file, perhaps a
 * profile, would get its number, and messages would go there.  Reads and writes fail as on a closed
 * descriptor, and started programs do not inherit it. */
static void keep_places(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_CLOEXEC) != fd)
			return;
}

int main(int count, char **arguments)
{
	keep_places();
	/* A write beyond ulimit -f then fails with an error that is reported. */
	signal(SIGXFSZ, SIG_IGN);
	/* Whole lines, because helper processes of the agent write to stderr as well. */
	setvbuf(stderr, NULL, _IOLBF, 0);
	/* Without memory, jansson would silently leave things out of the output; xmalloc exits. */
	json_set_alloc_funcs(xmalloc, free);
	return close_output(run(count, arguments));
}
