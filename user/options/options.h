/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line. */
#ifndef PYBPFPROF_OPTIONS_H
#define PYBPFPROF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/exit_status.h"
#include "naming/symbolizer.h"
#include "output/output.h"
#include "processes/process_filter.h"
#include "pybpfprof.h"

#define RATE_HZ_DEFAULT 99

struct options {
	pid_t *pids;
	size_t pid_count;
	char **command; /* NULL-terminated; NULL: none */
	enum following following;
	struct process_filter filter; /* of those that are followed */
	uint32_t processes_max;
	double duration_s; /* 0: until Ctrl-C or the target's end */
	double rate_hz;
	const char *output; /* NULL: a default name; may hold %p and %t */
	const char *stats;  /* NULL: none */
	const struct output_format *format;
	struct output_options shown;
	enum line_detail lines;
	enum thread_detail threads; /* as much as is shown of them */
	bool help, version;
};

/* Parses a verb's command line; ARGUMENTS[0] is the verb's or the program's name.  STATUS_WRITTEN
 * with *OPTIONS for options__free, or STATUS_USAGE after what is wrong was said. */
enum exit_status options__parse(int count, char **arguments, struct options *options);
void options__free(struct options *options);

/* Take the value of --rate, --max-processes, and of one of the rules that choose processes, by what
 * process_filter__add calls its kind.  NULL, or what is wrong, which the caller frees. */
char *options__set_rate(struct options *options, const char *text);
char *options__set_max_processes(struct options *options, const char *text);
char *options__add_rule(struct options *options, const char *kind, const char *text);

/* The text of --help. */
void options__print_help(void);

/* "30", "1.5", "90s", "2m", "1h", "1d" as seconds. */
bool options__parse_duration(const char *text, double *seconds);

/* "500M", "2G" as bytes, without a letter bytes; false where it is no size of 1M or more. */
bool options__parse_size(const char *text, uint64_t *bytes);

#endif
