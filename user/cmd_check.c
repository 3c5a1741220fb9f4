// SPDX-License-Identifier: BSD-2-Clause
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "check/agent_needs.h"
#include "check/checks.h"
#include "check/findings.h"
#include "cmd_check.h"

enum long_only {
	OPTION_JSON = 256,
	OPTION_AGENT,
};

static const char help[] =
	"Checks whether pybpfprof record works on this machine. Each problem is shown with\n"
	"its effect and a fix. The check loads the BPF program and takes a sample.\n"
	"\n"
	"Usage: pybpfprof check [--json] [--agent [OPTION...]]\n"
	"\n"
	"      --json     print JSON\n"
	"      --agent    also check what pybpfprof agent needs with the options after this\n"
	"                 one: its store, the address it listens on, its backends, and the\n"
	"                 Kubernetes API server\n"
	"  -v, --verbose  also print why the kernel rejects the BPF program\n"
	"  -h, --help     print this help\n"
	"\n"
	"Exit status: 0 it works; 1 failure; 2 wrong usage; 4 it does not work.\n";

struct request {
	bool json, asks_for_help, agent;
	struct agent_options options; /* where AGENT */
};

static enum exit_status parse(int count, char **arguments, struct request *request)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, OPTION_JSON },
		{ "agent", no_argument, NULL, OPTION_AGENT },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	enum exit_status status;
	bool verbose = false;
	int option = 0;

	opterr = 0;
	optind = 1;
	while (!request->agent &&
	       (option = getopt_long(count, arguments, "+vh", options, NULL)) != -1) {
		if (option == '?') {
			log__error("unknown option '%s'; see pybpfprof check --help",
				   arguments[optind - 1]);
			return STATUS_USAGE;
		}
		verbose |= option == 'v';
		request->json |= option == OPTION_JSON;
		request->asks_for_help |= option == 'h';
		request->agent = option == OPTION_AGENT;
	}
	status = STATUS_WRITTEN;
	if (request->agent) {
		status = agent_options__parse(count - optind + 1, arguments + optind - 1,
					      &request->options);
	} else if (optind < count) {
		log__error("'%s' is not an option; see pybpfprof check --help", arguments[optind]);
		status = STATUS_USAGE;
	}
	/* The agent's options have a level, too. */
	if (verbose)
		log__set_level(LOG_DEBUG);
	return status;
}

enum exit_status cmd_check(int count, char **arguments)
{
	struct request request = { 0 };
	enum exit_status status = parse(count, arguments, &request);
	struct findings findings = { .verb = "record",
				     .without_company = "record -- COMMAND does not start; record "
							"-p and -a do" };
	unsigned int company = 1;

	if (status)
		return status;
	if (request.asks_for_help || request.options.help) {
		fputs(help, stdout);
		if (request.agent)
			agent_options__free(&request.options);
		return STATUS_WRITTEN;
	}
	if (request.agent) {
		findings.verb = "agent";
		findings.everybody = true;
		findings.without_company = "the agent does not start, does not push, or does "
					   "not find pods";
		company = check_agent__company(&request.options);
	}
	checks__run(&findings, company);
	if (request.agent) {
		check_agent(&request.options, &findings);
		agent_options__free(&request.options);
	}
	if (request.json)
		findings__print_json(&findings, stdout);
	else
		findings__print(&findings, stdout);
	status = findings__work(&findings) ? STATUS_WRITTEN : STATUS_NOT_ALLOWED;
	findings__free(&findings);
	return status;
}
