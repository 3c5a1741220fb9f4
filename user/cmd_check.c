// SPDX-License-Identifier: BSD-2-Clause
#include "base/log.h"
#include "check/check.h"
#include "verbs.h"

static enum exit_status run(struct options *options)
{
	struct options agent = { 0 };
	enum exit_status status = STATUS_WRITTEN;

	if (options->agent)
		status = options__parse(&verb_agent, options->agent_count, options->agent, &agent);
	if (!status && agent.help) {
		options__print_help(&verb_check);
	} else if (!status) {
		/* The agent's options have set a level, too: the higher one applies. */
		if (options->level > log__level())
			log__set_level(options->level);
		if (!check__run(options->agent ? &agent : NULL, options->json))
			status = STATUS_NOT_ALLOWED;
	}
	options__free(&agent);
	return status;
}

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
	.run = run,
};
