// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "check/check.h"

bool check__needs_native(const struct check *check)
{
	return check->agent && check->agent->plan.native;
}

enum verdict check__say(struct check *check, enum verdict verdict, const char *found, ...)
{
	va_list arguments;

	va_start(arguments, found);
	if (vasprintf(&check->found, found, arguments) < 0)
		out_of_memory();
	va_end(arguments);
	return verdict;
}

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

bool check__run(const struct options *agent, bool json)
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
