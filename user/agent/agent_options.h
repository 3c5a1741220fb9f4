/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of `pybpfprof agent`. */
#ifndef PYBPFPROF_AGENT_OPTIONS_H
#define PYBPFPROF_AGENT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/utsname.h>

#include "agent/budget.h"
#include "agent/settings.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "options/options.h"
#include "push/push_destinations.h"
#include "services/relabel.h"
#include "store/store.h"

struct agent_options {
	struct options sampled; /* what, and how often, as for a recording */
	const char *folder;	/* of the store; NULL: none */
	struct store_limits limits;
	struct push_destinations pushed;
	double window_s;
	struct budget_limits budget;
	const char *address;	 /* to listen on; NULL: none */
	bool listens_by_default; /* nobody chose that address */
	const char *node;	 /* what this machine is called */
	bool with_pid;
	struct relabel_rules rules;
	const char *kubernetes, *credentials; /* as api_server.h has them */
	enum log_level level;
	bool help, print_config;
	struct utsname machine; /* has the node's name, where no other was given */
	/* What all of it is from: */
	struct settings *settings;
	int count;
	char **arguments;
};

/* STATUS_WRITTEN with *OPTIONS for agent_options__free, or STATUS_USAGE after what is wrong was
 * said. */
enum exit_status agent_options__parse(int count, char **arguments, struct agent_options *options);
void agent_options__free(struct agent_options *options);

/* Reads all again.  False where something is wrong, which was said: OPTIONS are then as before. */
bool agent_options__reload(struct agent_options *options);

/* The text of --help. */
void agent_options__print_help(void);

#endif
