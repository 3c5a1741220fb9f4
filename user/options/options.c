// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "options/option_table.h"
#include "options/options.h"
#include "pybpfprof.h"

/* Ten years; what is longer is a mistake, or an attempt to overflow. */
#define DURATION_S_MAX (10 * 365 * 86400.0)

#define SIZE_BYTES_MIN (1ULL << 20)
#define SIZE_BYTES_MAX (1ULL << 46)

/* The kernel's PID_MAX_LIMIT. */
#define PID_LIMIT 4194304

/* Each takes some 200 bytes of the kernel's memory from the start. */
#define PROCESSES_LIMIT (1024 * 1024)

#define SEE_HELP "; see pybpfprof --help"

enum long_only {
	OPTION_NOLINENO = 256,
	OPTION_FULL_FILENAMES,
	OPTION_STATS,
	OPTION_MAX_PROCESSES,
	OPTION_VERSION,
	OPTION_RULE, /* and the numbers behind it: rule_kinds */
};

/* By number, what process_filter__add calls them. */
static const char *const rule_kinds[] = { "comm", "cgroup", "container", "uid", "exclude" };

static const char short_options[] = "+:p:asd:r:o:f:tFqvh";

static const struct option long_options[] = {
	{ "pid", required_argument, NULL, 'p' },
	{ "all", no_argument, NULL, 'a' },
	{ "subprocesses", no_argument, NULL, 's' },
	{ "comm", required_argument, NULL, OPTION_RULE },
	{ "cgroup", required_argument, NULL, OPTION_RULE + 1 },
	{ "container", required_argument, NULL, OPTION_RULE + 2 },
	{ "uid", required_argument, NULL, OPTION_RULE + 3 },
	{ "exclude", required_argument, NULL, OPTION_RULE + 4 },
	{ "max-processes", required_argument, NULL, OPTION_MAX_PROCESSES },
	{ "duration", required_argument, NULL, 'd' },
	{ "rate", required_argument, NULL, 'r' },
	{ "output", required_argument, NULL, 'o' },
	{ "format", required_argument, NULL, 'f' },
	{ "threads", no_argument, NULL, 't' },
	{ "function", no_argument, NULL, 'F' },
	{ "nolineno", no_argument, NULL, OPTION_NOLINENO },
	{ "full-filenames", no_argument, NULL, OPTION_FULL_FILENAMES },
	{ "stats", required_argument, NULL, OPTION_STATS },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static const char help[] =
	"Profiles running Python programs by sampling. It does not change or pause them.\n"
	"\n"
	"Usage: pybpfprof [record] -p PID... [OPTION...]   profile running processes\n"
	"       pybpfprof [record] -a [OPTION...]          profile every Python process\n"
	"       pybpfprof [record] [OPTION...] -- COMMAND [ARG...]\n"
	"                                                  start a program and profile it\n"
	"       pybpfprof check [--json]                   check whether it works here\n"
	"       pybpfprof agent [OPTION...]                profile continuously\n"
	"       pybpfprof report --store DIR [OPTION...]   show what the agent stored\n"
	"\n"
	"For the options of check, agent and report: pybpfprof check --help, and so on.\n"
	"\n"
	"What to profile:\n"
	"  -p, --pid PID          this process; several with -p 1,2 or -p 1 2\n"
	"  -a, --all              every Python process, also those that start later\n"
	"  -s, --subprocesses     also all descendants of these processes\n"
	"      --max-processes N  at most N processes at a time (default: 4096)\n"
	"\n"
	"Filters for -a and -s. A process must match one value of each kind given:\n"
	"      --comm GLOB        processes with this name: of the script or module, or\n"
	"                         the kernel's name for the process\n"
	"      --cgroup PATH      processes in this cgroup or below\n"
	"      --container ID     processes in this container: its ID or the start of it\n"
	"      --uid USER         processes of this user\n"
	"      --exclude KIND=X   no processes with comm, cgroup, container or uid X\n"
	"\n"
	"How to sample:\n"
	"  -d, --duration TIME    time to sample: 30, 90s, 2m, 1h (default: until Ctrl-C\n"
	"                         or the end of the process)\n"
	"  -r, --rate HZ          samples per second of CPU time (default: 99)\n"
	"\n"
	"Output:\n"
	"  -o, --output FILE      where to write the profile; - is standard output; %p\n"
	"                         becomes the PID, %t the time (default:\n"
	"                         pybpfprof-%p-%t with the format's suffix)\n"
	"  -f, --format FORMAT    one of the formats below (default: by FILE's suffix)\n"
	"  -t, --threads          show each thread separately\n"
	"  -F, --function         show a function's first line, not the current line\n"
	"      --nolineno         show no line numbers\n"
	"      --full-filenames   show full file names, as the program has them\n"
	"      --stats FILE       write the ledger, which counts every sample, as JSON\n"
	"  -q, --quiet            print errors only\n"
	"  -v, --verbose          print more messages\n"
	"      --version          print the version\n"
	"  -h, --help             print this help\n"
	"\n"
	"Formats:\n";

static const char examples[] =
	"\n"
	"Examples:\n"
	"  sudo pybpfprof --pid 1234 --duration 30\n"
	"  sudo pybpfprof -p 1234 -d 10 -r 999 -o web.folded\n"
	"  sudo pybpfprof -o app.pb.gz -- python3 app.py\n"
	"  sudo pybpfprof -a -d 60\n"
	"\n"
	"Exit status:\n"
	"  0  a profile was written\n"
	"  1  failure\n"
	"  2  wrong usage\n"
	"  3  not a Python process, or a Python version that is not supported\n"
	"  4  the kernel or missing permissions prevent it\n"
	"  5  the process ended before it was sampled\n";

void options__print_help(void)
{
	fputs(help, stdout);
	for (size_t i = 0; output_formats[i]; i++)
		printf("  %-12s %s%s\n", output_formats[i]->name, output_formats[i]->description,
		       i ? "" : " (default)");
	fputs(examples, stdout);
}

static bool parse_number(const char *text, double *number, char **end)
{
	errno = 0;
	*number = strtod(text, end);
	return *end != text && !errno && isfinite(*number);
}

bool options__parse_duration(const char *text, double *seconds)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = { { "", 1 }, { "s", 1 }, { "m", 60 }, { "h", 3600 }, { "d", 86400 } };
	char *end;

	if (!parse_number(text, seconds, &end) || *seconds <= 0)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) == 0) {
			*seconds *= units[i].seconds;
			return *seconds <= DURATION_S_MAX;
		}
	}
	return false;
}

bool options__parse_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	const char *unit;
	double number;
	char *end;

	errno = 0;
	number = strtod(text, &end);
	if (end == text || errno || !isfinite(number) || number <= 0)
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	if (*end && (!unit || end[1]))
		return false;
	for (const char *at = units; unit && at <= unit; at++)
		number *= 1024;
	if (number < SIZE_BYTES_MIN || number > SIZE_BYTES_MAX)
		return false;
	*bytes = (uint64_t)number;
	return true;
}

/* Says what is WRONG with a value, NULL: nothing, and frees it. */
static enum exit_status judge(char *wrong)
{
	if (!wrong)
		return STATUS_WRITTEN;
	log__error("%s" SEE_HELP, wrong);
	free(wrong);
	return STATUS_USAGE;
}

static enum exit_status bad_value(const char *what, const char *value, const char *wanted)
{
	return judge(option_table__refuse(what, value, wanted));
}

static void add_pid(struct options *options, pid_t pid)
{
	for (size_t i = 0; i < options->pid_count; i++)
		if (options->pids[i] == pid)
			return;
	options->pids =
		xreallocarray(options->pids, options->pid_count + 1, sizeof(*options->pids));
	options->pids[options->pid_count++] = pid;
}

/* Adds the process IDs of "1,2,3". */
static enum exit_status add_pids(struct options *options, const char *list)
{
	const char *at = list;

	do {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(at, &end, 10);
		if (*at < '0' || *at > '9' || errno || pid <= 0 || pid > PID_LIMIT ||
		    (*end && *end != ','))
			return bad_value("process ID", list, "a number from 1 to 4194304");
		add_pid(options, pid);
		at = end;
	} while (*at++);
	return STATUS_WRITTEN;
}

char *options__set_rate(struct options *options, const char *text)
{
	char *end;

	if (!parse_number(text, &options->rate_hz, &end) || *end || options->rate_hz < 0.1 ||
	    options->rate_hz > 1e6)
		return option_table__refuse("rate", text,
					    "a number of samples per second from 0.1 to 1000000");
	return NULL;
}

char *options__set_max_processes(struct options *options, const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || number < 1 || number > PROCESSES_LIMIT)
		return option_table__refuse("number of processes", text,
					    "a number from 1 to 1048576");
	options->processes_max = number;
	return NULL;
}

char *options__add_rule(struct options *options, const char *kind, const char *text)
{
	return process_filter__add(&options->filter, kind, text);
}

static enum exit_status set_format(struct options *options, const char *name)
{
	options->format = output__by_name(name);
	if (!options->format)
		return bad_value("format", name, "one of html, folded, pprof, speedscope or text");
	return STATUS_WRITTEN;
}

static enum exit_status take_option(struct options *options, int option, const char *value)
{
	switch (option) {
	case 'p':
		return add_pids(options, value);
	case 'a':
		options->following = FOLLOW_ALL;
		break;
	case 's':
		if (options->following == FOLLOW_NONE)
			options->following = FOLLOW_CHILDREN;
		break;
	case OPTION_MAX_PROCESSES:
		return judge(options__set_max_processes(options, value));
	case 'd':
		if (!options__parse_duration(value, &options->duration_s))
			return bad_value("duration", value,
					 "a time of up to 10 years, such as 30, 90s or 2m");
		break;
	case 'r':
		return judge(options__set_rate(options, value));
	case 'o':
		options->output = value;
		break;
	case 'f':
		return set_format(options, value);
	case 't':
		options->shown.threads = true;
		options->threads = THREADS_ALL;
		break;
	case 'F':
		options->lines = LINES_FUNCTION;
		break;
	case OPTION_NOLINENO:
		options->lines = LINES_NONE;
		break;
	case OPTION_FULL_FILENAMES:
		options->shown.full_filenames = true;
		break;
	case OPTION_STATS:
		options->stats = value;
		break;
	case 'q':
		log__set_level(LOG_ERROR);
		break;
	case 'v':
		log__set_level(LOG_DEBUG);
		break;
	case OPTION_VERSION:
		options->version = true;
		break;
	case 'h':
		options->help = true;
		break;
	default:
		return judge(options__add_rule(options, rule_kinds[option - OPTION_RULE], value));
	}
	return STATUS_WRITTEN;
}

static enum exit_status bad_option(int option, int count, char **arguments)
{
	const char *argument = optind <= count ? arguments[optind - 1] : "";

	if (option == ':')
		log__error("option '%s' needs a value" SEE_HELP, argument);
	else if (optopt && optopt < 256)
		log__error("unknown option '-%c'" SEE_HELP, optopt);
	else
		log__error("unknown option '%s', or it takes no value" SEE_HELP, argument);
	return STATUS_USAGE;
}

/* What stands between the options: more process IDs, or a mistake. */
static enum exit_status take_word(struct options *options, const char *word)
{
	if (options->pid_count && word[0] >= '0' && word[0] <= '9')
		return add_pids(options, word);
	log__error("'%s' is not an option; to start a program: pybpfprof -- %s" SEE_HELP, word,
		   word);
	return STATUS_USAGE;
}

static enum exit_status parse_options(int count, char **arguments, struct options *options)
{
	enum exit_status status = STATUS_WRITTEN;
	int option;

	opterr = 0;
	/* Not 1: in the middle of a word of an earlier command line it would go on there. */
	optind = 0;
	while (!status && optind < count) {
		option = getopt_long(count, arguments, short_options, long_options, NULL);
		if (option == -1 && optind == count)
			break;
		if (option == -1)
			status = take_word(options, arguments[optind++]);
		else if (option == '?' || option == ':')
			status = bad_option(option, count, arguments);
		else
			status = take_option(options, option, optarg);
	}
	return status;
}

/* Whether PATTERN has CODE in what names its folder, which is looked at before the start. */
static bool is_in_folder(const char *pattern, const char *code)
{
	const char *slash = strrchr(pattern, '/'), *found = strstr(pattern, code);

	return slash && found && found < slash;
}

/* PATTERN is of a file to write, or NULL. */
static enum exit_status check_pattern(const struct options *options, const char *pattern)
{
	bool by_time = pattern && is_in_folder(pattern, "%t");

	if (!by_time && !(pattern && options->command && is_in_folder(pattern, "%p")))
		return STATUS_WRITTEN;
	log__error("'%s' has %s in its directory, which must be known before the start: use it in "
		   "the file's name" SEE_HELP,
		   pattern, by_time ? "%t" : "%p");
	return STATUS_USAGE;
}

static enum exit_status check_output(struct options *options)
{
	const char *output = options->output;

	if (options->stats && !*options->stats) {
		log__error("--stats needs a file" SEE_HELP);
		return STATUS_USAGE;
	}
	if (check_pattern(options, output) || check_pattern(options, options->stats))
		return STATUS_USAGE;
	if (!options->format && output)
		options->format = output__by_ending(output);
	if (!options->format && output && strcmp(output, "-") != 0 &&
	    strncmp(output, "/dev/", strlen("/dev/")) != 0) {
		log__error("the suffix of '%s' does not give the format: add -f FORMAT" SEE_HELP,
			   output);
		return STATUS_USAGE;
	}
	if (!options->format)
		options->format = output_formats[0];
	if (!options->shown.threads && !options->format->tells_threads)
		options->threads = THREADS_MERGED;
	return STATUS_WRITTEN;
}

static enum exit_status check(struct options *options)
{
	if (options->help || options->version)
		return STATUS_WRITTEN;
	if (!options->pid_count + !options->command + (options->following != FOLLOW_ALL) == 3) {
		log__error("nothing to profile: use -p PID, -a, or -- COMMAND" SEE_HELP);
		return STATUS_USAGE;
	}
	if (options->pid_count > options->processes_max) {
		log__error("%zu processes are too many for one run: the limit is %u; raise it with "
			   "--max-processes" SEE_HELP,
			   options->pid_count, options->processes_max);
		return STATUS_USAGE;
	}
	if (!options->pid_count + !options->command + (options->following != FOLLOW_ALL) < 2) {
		log__error("use only one of -p PID, -a, and -- COMMAND" SEE_HELP);
		return STATUS_USAGE;
	}
	if (options->following == FOLLOW_NONE && !process_filter__is_empty(&options->filter)) {
		log__error(
			"--comm, --cgroup, --container, --uid and --exclude filter the processes "
			"of -a or -s: add one of these" SEE_HELP);
		return STATUS_USAGE;
	}
	options->shown.by_process |= options->following != FOLLOW_NONE;
	return check_output(options);
}

enum exit_status options__parse(int count, char **arguments, struct options *options)
{
	enum exit_status status;
	int own = 1;

	memset(options, 0, sizeof(*options));
	options->rate_hz = RATE_HZ_DEFAULT;
	options->processes_max = TARGETS_MAX;
	while (own < count && strcmp(arguments[own], "--") != 0)
		own++;
	if (own + 1 < count)
		options->command = arguments + own + 1;
	status = parse_options(own, arguments, options);
	if (!status)
		status = check(options);
	if (status)
		options__free(options);
	return status;
}

void options__free(struct options *options)
{
	process_filter__free(&options->filter);
	free(options->pids);
	options->pids = NULL;
	options->pid_count = 0;
}
