// SPDX-License-Identifier: BSD-2-Clause
/* Writes a synthetic profile in any format, for tests of the readers. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "synthetic.h"

static int usage(void)
{
	fputs("usage: synthetic_profile [-t] [-F] [-a] [-n FRAMES] [-m THREADS] [-p PROCESSES] "
	      "plain|hostile|machine|change|native|tree FORMAT FILE\n",
	      stderr);
	return 2;
}

/* BEFORE gets the profile to compare with, if KIND is "change". */
static struct profile *make_profile(const char *kind, uint32_t frames, uint32_t threads,
				    uint32_t processes, struct profile *before)
{
	if (!strcmp(kind, "change"))
		return synthetic__change(before);
	if (!strcmp(kind, "plain"))
		return synthetic__plain();
	if (!strcmp(kind, "events"))
		return synthetic__events();
	if (!strcmp(kind, "hostile"))
		return synthetic__hostile();
	if (!strcmp(kind, "machine"))
		return synthetic__machine();
	if (!strcmp(kind, "native"))
		return synthetic__native();
	return strcmp(kind, "tree") ? NULL : synthetic__tree(frames, threads, processes);
}

int main(int argc, char **argv)
{
	struct output_options options = { .title = "PID 100: python3 </title> \"app\".py" };
	const struct output_format *format;
	struct profile *profile, before = { 0 };
	uint32_t frames = 1000, threads = 1, processes = 1;
	FILE *file;
	int option, error;

	while ((option = getopt(argc, argv, "tFan:m:p:")) != -1) {
		if (option == 't')
			options.threads = true;
		else if (option == 'F')
			options.full_filenames = true;
		else if (option == 'a')
			options.by_process = true;
		else if (option == 'n')
			frames = strtoul(optarg, NULL, 10);
		else if (option == 'm')
			threads = strtoul(optarg, NULL, 10);
		else if (option == 'p')
			processes = strtoul(optarg, NULL, 10);
		else
			return usage();
	}
	if (argc - optind != 3 || !frames || !threads || !processes)
		return usage();
	format = output__by_name(argv[optind + 1]);
	profile = make_profile(argv[optind], frames, threads, processes, &before);
	if (before.samples)
		options.before = &before;
	if (!format || !profile)
		return usage();
	file = fopen(argv[optind + 2], "w");
	if (!file) {
		perror(argv[optind + 2]);
		return 1;
	}
	error = format->write(profile, &options, file);
	free(before.samples);
	profile__free(profile);
	return fclose(file) || error;
}
