// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "agent/store_sink.h"
#include "base/log.h"
#include "base/xalloc.h"

struct store_sink {
	struct store *store;
	const struct store_limits *limits;
	bool growing; /* old windows could not be removed */
};

/* WRONG: why old windows could not be removed; NULL: they were. */
static void judge_removal(struct store_sink *sink, const char *wrong)
{
	if (wrong && !sink->growing)
		log__warning("%s: old windows are not removed until this is fixed", wrong);
	sink->growing = wrong;
}

static char *take(void *context, const struct labelled_window *window)
{
	struct store_sink *sink = context;
	char *wrong = store__put(sink->store, window);
	/* Also after a failure: if there was no room, removal may make some. */
	char *not_removed = store__retain(sink->store, sink->limits, window->end_unix_ns);

	if (!wrong)
		judge_removal(sink, not_removed);
	free(not_removed);
	return wrong;
}

static bool close_store(void *context)
{
	struct store_sink *sink = context;

	store__close(sink->store);
	free(sink);
	return true;
}

static const struct sink_operations operations = {
	.name = "store",
	.take = take,
	.close = close_store,
};

char *store_sink__add(struct sinks *sinks, const char *folder, const struct store_limits *limits)
{
	struct store_sink *sink = xcalloc(1, sizeof(*sink));
	char *wrong = store__open(folder, STORE_WRITE, &sink->store);

	sink->limits = limits;
	if (wrong)
		close_store(sink);
	else
		sinks__add(sinks, &operations, sink);
	return wrong;
}
