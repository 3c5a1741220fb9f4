// SPDX-License-Identifier: BSD-2-Clause
/* The input: the words of a command line, one per line. */
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "verbs.h"

#define WORDS_MAX 64

static void check(const struct options *options)
{
	const struct identity identity = { .comm = "python3",
					   .short_name = "worker.py",
					   .cgroups = "4:memory:/a\n0::/a/b\n",
					   .container_id = "4f5b0123456789ab" };

	CHECK(process_filter__wants(&options->plan.filter, &identity) ||
	      !process_filter__is_empty(&options->plan.filter));
	CHECK(options->plan.rate_hz > 0);
	CHECK(options->plan.duration_s >= 0);
	CHECK(options->help || options->version || options->format);
	CHECK(options->plan.processes_max > 0);
	CHECK(!options->plan.pid_count || !options->plan.command || options->help ||
	      options->version);
	for (size_t i = 0; i < options->plan.pid_count; i++)
		CHECK(options->plan.pids[i] > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *text = strndup((const char *)bytes, size), *rest = text, *word;
	char *words[WORDS_MAX + 2] = { "pybpfprof" };
	struct options options;
	int count = 1;

	while (count <= WORDS_MAX && (word = strsep(&rest, "\n")))
		words[count++] = word;
	words[count] = NULL;
	if (!options__parse(&verb_record, count, words, &options)) {
		check(&options);
		options__free(&options);
	}
	free(text);
	return 0;
}
