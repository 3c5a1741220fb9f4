// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>

#include "agent/agent.h"
#include "cmd_agent.h"

enum exit_status cmd_agent(int count, char **arguments)
{
	struct agent_options options;
	enum exit_status status = agent_options__parse(count, arguments, &options);

	if (status)
		return status;
	if (options.help)
		agent_options__print_help();
	else if (options.print_config)
		settings__print(options.settings, stdout);
	else
		status = agent__run(&options);
	agent_options__free(&options);
	return status;
}
