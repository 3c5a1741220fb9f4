// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/xalloc.h"
#include "check/findings.h"

static const char *const verdicts[] = {
	[VERDICT_OK] = "OK",
	[VERDICT_LIMITED] = "LIMITED",
	[VERDICT_MISSING] = "MISSING",
};

static char *format_text(const char *format, va_list arguments)
{
	char *text;

	return vasprintf(&text, format, arguments) < 0 ? xstrdup("?") : text;
}

static struct finding *add(struct findings *findings, enum verdict verdict)
{
	struct finding *finding;

	findings->list = xgrow(findings->list, &findings->capacity, findings->count + 1,
			       sizeof(*findings->list));
	finding = &findings->list[findings->count++];
	*finding = (struct finding){ .name = findings->name, .verdict = verdict };
	return finding;
}

void findings__add_ok(struct findings *findings, const char *found, ...)
{
	struct finding *finding = add(findings, VERDICT_OK);
	va_list arguments;

	va_start(arguments, found);
	finding->found = format_text(found, arguments);
	va_end(arguments);
}

void findings__add(struct findings *findings, enum verdict verdict, const char *costs,
		   const char *found, ...)
{
	struct finding *finding = add(findings, verdict);
	va_list arguments;

	va_start(arguments, found);
	finding->found = format_text(found, arguments);
	va_end(arguments);
	finding->costs = xstrdup(costs);
}

void findings__mend(struct findings *findings, const char *mend, ...)
{
	va_list arguments;

	va_start(arguments, mend);
	findings->list[findings->count - 1].mend = format_text(mend, arguments);
	va_end(arguments);
}

static size_t count_missing(const struct findings *findings)
{
	size_t missing = 0;

	for (size_t i = 0; i < findings->count; i++)
		missing += findings->list[i].verdict == VERDICT_MISSING;
	return missing;
}

bool findings__work(const struct findings *findings)
{
	return !count_missing(findings);
}

void findings__print(const struct findings *findings, FILE *file)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->list[i];

		fprintf(file, "%-8s %-26s %s\n", verdicts[finding->verdict], finding->name,
			finding->found);
		if (finding->verdict != VERDICT_OK)
			fprintf(file, "%8s   effect  %s\n%8s   fix     %s\n", "", finding->costs,
				"", finding->mend);
	}
	if (findings__work(findings))
		fprintf(file, "\npybpfprof %s works here%s%s.\n", findings->verb,
			findings->own_alone ? ", but only for this user's own processes" : "",
			findings->less_able_alone
				? ", and only those without capabilities that pybpfprof lacks"
				: "");
	else
		fprintf(file, "\npybpfprof %s does not work here: fix what is MISSING (%zu).\n",
			findings->verb, count_missing(findings));
}

static json_t *finding_json(const struct finding *finding)
{
	return json_pack("{s:s, s:s, s:s, s:s?, s:s?}", "name", finding->name, "verdict",
			 verdicts[finding->verdict], "found", finding->found, "costs",
			 finding->costs, "mend", finding->mend);
}

void findings__print_json(const struct findings *findings, FILE *file)
{
	json_t *list = json_array(), *json;

	for (size_t i = 0; i < findings->count; i++)
		json_array_append_new(list, finding_json(&findings->list[i]));
	json = json_pack("{s:b, s:o}", "works", findings__work(findings), "checks", list);
	json_dumpf(json, file, JSON_INDENT(2));
	fputc('\n', file);
	json_decref(json);
}

void findings__free(struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		free(findings->list[i].found);
		free(findings->list[i].costs);
		free(findings->list[i].mend);
	}
	free(findings->list);
}
