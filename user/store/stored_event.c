// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "store/stored_event.h"

#define CPU "cpu"

bool stored_event__parse(const char *text, struct event *event)
{
	char *wrong;

	*event = event__default();
	if (!text || strcmp(text, CPU) == 0)
		return text;
	wrong = event__parse(text, event);
	free(wrong);
	return !wrong && event->period;
}

char *stored_event__text(const struct profile_event *event)
{
	if (!event->period)
		return xstrdup(CPU);
	/* A wait's value is its length. */
	if (event__named(event->name).source->at_switches)
		return xstrdup(event->name);
	return xasprintf("%s:%" PRIu64, event->name, event->period);
}

const char *stored_event__column(const struct store *store)
{
	return store->version >= 2 ? "event" : "'" CPU "'";
}

/* Adds EVENT to the COUNT events at *EVENTS, or lowers the period of the one with its name; returns
 * the new count. */
static size_t add_event(struct event **events, size_t count, const struct event *event)
{
	for (size_t i = 0; i < count; i++) {
		struct event *known = &(*events)[i];

		if (strcmp(known->name, event->name) != 0)
			continue;
		if (event->period < known->period)
			known->period = event->period;
		return count;
	}
	*events = xreallocarray(*events, count + 1, sizeof(**events));
	(*events)[count] = *event;
	return count + 1;
}

char *store__events(struct store *store, const struct store_query *query, struct event **events,
		    size_t *count)
{
	sqlite3_stmt *statement = NULL;
	char *select =
		xasprintf("SELECT %s AS name FROM windows WHERE end_ns > ?1 AND start_ns < ?2"
			  " GROUP BY name ORDER BY name <> '" CPU "', name",
			  stored_event__column(store));
	char *wrong = NULL;
	int code = database__prepare(store, select, &statement);

	*events = NULL;
	*count = 0;
	if (!code) {
		sqlite3_bind_int64(statement, 1, query->since_unix_ns);
		sqlite3_bind_int64(statement, 2, query->until_unix_ns);
	}
	while (!code && !wrong && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		struct event event;

		code = SQLITE_OK;
		if (stored_event__parse((const char *)sqlite3_column_text(statement, 0), &event))
			*count = add_event(events, *count, &event);
		else
			wrong = xasprintf("%s has an event that this pybpfprof does not know: "
					  "use the version that wrote it",
					  store->path);
	}
	if (!wrong && code != SQLITE_OK && code != SQLITE_DONE)
		wrong = database__explain(store);
	sqlite3_finalize(statement);
	free(select);
	return wrong;
}
