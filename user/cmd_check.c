// SPDX-License-Identifier: BSD-2-Clause
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "checks.h"
#include "cmd_check.h"
#include "findings.h"
#include "log.h"

enum long_only {
	OPTION_JSON = 256,
};

static const char help[] =
	"Tells what of this machine lets pybpfprof record work and what does not, what that costs\n"
	"and what mends it; loads the BPF program and takes a sample for it.\n"
	"\n"
	"Usage: pybpfprof check [--json]\n"
	"\n"
	"      --json     print JSON\n"
	"  -v, --verbose  say also why the kernel refuses the BPF program\n"
	"  -h, --help\n"
	"\n"
	"Exit status: 0 record works; 1 failed; 2 wrong usage; 4 record does not work.\n";

static enum exit_status parse(int count, char **arguments, bool *json, bool *asks_for_help)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, OPTION_JSON },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option;

	opterr = 0;
	optind = 1;
	while ((option = getopt_long(count, arguments, "vh", options, NULL)) != -1) {
		if (option == '?') {
			log__error("check has no option '%s'; see pybpfprof check --help",
				   arguments[optind - 1]);
			return STATUS_USAGE;
		}
		if (option == 'v')
			log__set_level(LOG_DEBUG);
		*json |= option == OPTION_JSON;
		*asks_for_help |= option == 'h';
	}
	if (optind < count) {
		log__error("check takes no '%s'; see pybpfprof check --help", arguments[optind]);
		return STATUS_USAGE;
	}
	return STATUS_WRITTEN;
}

enum exit_status cmd_check(int count, char **arguments)
{
	bool json = false, asks_for_help = false;
	enum exit_status status = parse(count, arguments, &json, &asks_for_help);
	struct findings findings = { 0 };

	if (status)
		return status;
	if (asks_for_help) {
		fputs(help, stdout);
		return STATUS_WRITTEN;
	}
	checks__run(&findings);
	if (json)
		findings__print_json(&findings, stdout);
	else
		findings__print(&findings, stdout);
	status = findings__work(&findings) ? STATUS_WRITTEN : STATUS_NOT_ALLOWED;
	findings__free(&findings);
	return status;
}
