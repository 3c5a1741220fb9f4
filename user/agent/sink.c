// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <stdlib.h>

#include "agent/sink.h"
#include "base/log.h"
#include "base/xalloc.h"

void sinks__add(struct sinks *sinks, const struct sink_operations *operations, void *context)
{
	sinks->sinks = xreallocarray(sinks->sinks, sinks->count + 1, sizeof(*sinks->sinks));
	sinks->sinks[sinks->count++] =
		(struct sink){ .operations = operations, .context = context };
}

/* Logs what is WRONG with SINK when that begins, and when it ends.  WRONG is NULL if nothing is. */
static void judge(struct sink *sink, const char *wrong)
{
	if (wrong && !sink->failing)
		log__error("%s: windows are lost until this is fixed", wrong);
	if (!wrong && sink->failing)
		log__info("%s: windows are accepted again; %" PRIu64 " were lost",
			  sink->operations->name, sink->lost);
	sink->failing = wrong;
}

void sinks__take(struct sinks *sinks, const struct labelled_window *window)
{
	for (size_t i = 0; i < sinks->count; i++) {
		struct sink *sink = &sinks->sinks[i];
		char *wrong = sink->operations->take(sink->context, window);

		if (wrong)
			sink->lost++;
		else
			sink->taken++;
		judge(sink, wrong);
		free(wrong);
	}
}

static void sum_up(const struct sink *sink)
{
	if (sink->lost)
		log__error("%s: %" PRIu64 " of %" PRIu64 " windows were lost",
			   sink->operations->name, sink->lost, sink->taken + sink->lost);
	else
		log__info("%s: %" PRIu64 " windows", sink->operations->name, sink->taken);
}

bool sinks__close(struct sinks *sinks)
{
	bool whole = true;

	for (size_t i = 0; i < sinks->count; i++) {
		struct sink *sink = &sinks->sinks[i];

		if (sink->taken || sink->lost)
			sum_up(sink);
		whole &= !sink->lost;
		whole &= sink->operations->close(sink->context);
	}
	free(sinks->sinks);
	*sinks = (struct sinks){ 0 };
	return whole;
}
