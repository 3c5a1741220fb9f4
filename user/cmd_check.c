// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>

#include "base/log.h"
#include "check/agent_needs.h"
#include "check/checks.h"
#include "check/findings.h"
#include "cmd_agent.h"
#include "cmd_check.h"

const struct verb verb_check = {
	.bit = VERB_CHECK,
	.name = "check",
	.usage = "Checks whether pybpfprof record works on this machine. Each problem is shown "
		 "with\n"
		 "its effect and a fix. The check loads the BPF program and takes a sample.\n"
		 "\n"
		 "Usage: pybpfprof check [--json] [--agent [OPTION...]]\n"
		 "\n",
	.tail = "Exit status: 0 it works; 1 failure; 2 wrong usage; 4 it does not work.\n",
};

enum exit_status cmd_check(int count, char **arguments)
{
	struct findings findings = { .verb = "record",
				     .without_company = "record -- COMMAND does not start; record "
							"-p and -a do" };
	struct options options, agent = { 0 };
	enum exit_status status = options__parse(&verb_check, count, arguments, &options);
	/* The program behind -- is one. */
	struct trial_needs needs = { .company = 1 };

	if (!status && options.agent)
		status = options__parse(&verb_agent, options.agent_count, options.agent, &agent);
	if (status) {
		options__free(&options);
		return status;
	}
	if (options.help || agent.help) {
		options__print_help(&verb_check);
		options__free(&agent);
		options__free(&options);
		return STATUS_WRITTEN;
	}
	/* The agent's options have a level, too. */
	if (options.level > log__level())
		log__set_level(options.level);
	if (options.agent) {
		findings.verb = "agent";
		findings.everybody = true;
		findings.without_company = "the agent does not start, does not push, or does "
					   "not find pods";
		needs = check_agent__needs(&agent);
	}
	checks__run(&findings, &needs);
	if (options.agent)
		check_agent(&agent, &findings);
	if (options.json)
		findings__print_json(&findings, stdout);
	else
		findings__print(&findings, stdout);
	status = findings__work(&findings) ? STATUS_WRITTEN : STATUS_NOT_ALLOWED;
	findings__free(&findings);
	options__free(&agent);
	options__free(&options);
	return status;
}
