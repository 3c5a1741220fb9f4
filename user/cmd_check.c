// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "check/check.h"
#include "verbs.h"

static const char *const verdicts[] = { "OK", "LIMITED", "MISSING" };

static void show(const struct check *check, const struct probe *probe, enum verdict verdict)
{
	const char *costs = verdict == OK ? NULL : check->costs ?: probe->costs;
	const char *mend = verdict == OK ? NULL : check->mend ?: probe->mend;

	if (check->list) {
		json_array_append_new(check->list,
				      json_pack("{s:s, s:s, s:s, s:s?, s:s?}", "name", probe->name,
						"verdict", verdicts[verdict], "found", check->found,
						"costs", costs, "mend", mend));
		return;
	}
	printf("%-8s %-26s %s\n", verdicts[verdict], probe->name, check->found);
	if (verdict != OK)
		printf("%8s   effect  %s\n%8s   fix     %s\n", "", costs, "", mend);
}

static void try(struct check *check, const struct probe *probe)
{
	enum verdict verdict;

	check->name = probe->name;
	check->again = false;
	verdict = probe->try(check);
	check->missing += verdict == MISSING;
	if (check->found)
		show(check, probe, verdict);
	free(check->found);
	free(check->costs);
	free(check->mend);
	check->found = check->costs = check->mend = NULL;
}

static void walk(struct check *check, const struct probe *probe)
{
	for (; probe->name; probe++) {
		do {
			try(check, probe);
		} while (check->again);
	}
}

static void print_end(const struct check *check)
{
	const char *verb = check->agent ? "agent" : "record";

	if (check->list) {
		json_t *json =
			json_pack("{s:b, s:O}", "works", !check->missing, "checks", check->list);

		json_dumpf(json, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(json);
	} else if (check->missing) {
		printf("\npybpfprof %s does not work here: fix what is MISSING (%zu).\n", verb,
		       check->missing);
	} else {
		printf("\npybpfprof %s works here%s%s.\n", verb,
		       check->own_alone ? ", but only for this user's own processes" : "",
		       check->less_able_alone
			       ? ", and only those without capabilities that pybpfprof lacks"
			       : "");
	}
}

/* Checks whether record works, or the agent with the options AGENT if that is not NULL.  Prints a
 * table or JSON.  Returns whether nothing is missing.  A check of the agent drops all privileges
 * for good before it uses the network. */
static bool run_probes(const struct options *agent, bool json)
{
	unsigned int company = agent_probes__company(agent);
	struct check check = {
		.agent = agent,
		.trial = trial__run(company),
		.company = company,
		.list = json ? json_array() : NULL,
	};

	walk(&check, machine_probes);
	if (agent)
		walk(&check, agent_probes);
	print_end(&check);
	json_decref(check.list);
	return !check.missing;
}

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
		if (!run_probes(options->agent ? &agent : NULL, options->json))
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
