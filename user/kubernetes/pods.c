// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "kubernetes/pod_board.h"
#include "kubernetes/pod_watch.h"
#include "kubernetes/pods.h"
#include "services/relabel.h"
#include "system/keeper.h"
#include "system/limits.h"

struct pods {
	struct pod_board *board;
	struct keeper keeper;
	uint64_t serial;
	json_t *by_uid, *by_container; /* the same records */
	size_t cut;		       /* records that lack labels */
	bool cut_said;
};

/* The arguments of the process that asks. */
struct asker {
	const struct api_server *server;
	const char *node;
	struct pod_board *board;
};

static bool ask(void *context, int socket)
{
	const struct asker *asker = context;

	return pod_watch__run(socket, asker->server, asker->node, asker->board);
}

static void count_end(void *context, int error, bool again)
{
	const struct asker *asker = context;
	struct pod_board *board = asker->board;

	(void)error;
	board->bytes = 0;
	board->current = false;
	board->restarts += again;
}

static bool start_keeper(struct pods *pods, const struct api_server *server, const char *node)
{
	struct asker asker = { server, node, pods->board };
	const struct kept kept = { .name = "the process that watches pods",
				   .lost = "",
				   .run = ask,
				   .ended = count_end,
				   .context = &asker,
				   .alone = true };

	return keeper__start(&pods->keeper, &kept);
}

void pods__close(struct pods *pods)
{
	if (!pods)
		return;
	keeper__end(&pods->keeper);
	pod_board__free(pods->board);
	json_decref(pods->by_uid);
	json_decref(pods->by_container);
	free(pods);
}

char *pods__open(const struct api_server *server, const char *node, struct pods **result)
{
	struct pods *pods;
	char *wrong;
	int error;

	*result = NULL;
	if (!server->url)
		return NULL;
	pods = xcalloc(1, sizeof(*pods));
	pods->keeper = KEEPER_NONE;
	pods->by_uid = json_object();
	pods->by_container = json_object();
	pods->board = pod_board__new();
	if (pods->board && start_keeper(pods, server, node)) {
		*result = pods;
		return NULL;
	}
	error = -errno;
	wrong = xasprintf("cannot start the process that watches pods (%s): %s", strerror(-error),
			  limits__mend_start(error));
	pods__close(pods);
	return wrong;
}

/* Whether all hidden labels are text, and have names that only rules see. */
static bool is_valid(const json_t *record)
{
	json_t *hidden = json_object_get(record, "hidden"), *value;
	const char *name;

	json_object_foreach(hidden, name, value)
	{
		if (strncmp(name, RELABEL_HIDDEN, strlen(RELABEL_HIDDEN)) != 0 ||
		    !json_is_string(value))
			return false;
	}
	return true;
}

static void count_cut(struct pods *pods, const json_t *record)
{
	json_int_t cut = json_integer_value(json_object_get(record, "cut"));

	if (cut <= 0)
		return;
	pods->cut++;
	if (!pods->cut_said)
		log__warning("pod %s in %s has too many labels and annotations: rules do not see "
			     "%lld of them; pybpfprof_pods_cut counts such pods",
			     pods__text(record, "name"), pods__text(record, "namespace"),
			     (long long)cut);
	pods->cut_said = true;
}

static void take_over(struct pods *pods, json_t *records)
{
	const char *uid, *container;
	json_t *record, *value;
	void *next;

	pods->cut = 0;
	json_object_clear(pods->by_container);
	json_object_foreach_safe(records, next, uid, record)
	{
		if (!is_valid(record)) {
			json_object_del(records, uid);
			continue;
		}
		count_cut(pods, record);
		json_object_foreach(json_object_get(record, "containers"), container, value)
			json_object_set(pods->by_container, container, record);
	}
	json_decref(pods->by_uid);
	pods->by_uid = records;
}

/* Reports the end of the supervisor once.  The records so far stay. */
static void look_after(struct pods *pods)
{
	if (!keeper__has_ended(&pods->keeper))
		return;
	log__error("the process that watches pods has ended: new pods have no names; restart the "
		   "agent");
	pods->board->current = false;
}

void pods__refresh(struct pods *pods)
{
	json_t *records;
	size_t length;
	char *text;

	if (!pods)
		return;
	look_after(pods);
	text = pod_board__read(pods->board, &pods->serial, &length);
	if (!text)
		return;
	records = json_loadb(text, length, 0, NULL);
	free(text);
	if (records)
		take_over(pods, records);
}

const json_t *pods__find(const struct pods *pods, const char *uid, const char *container)
{
	const json_t *found = NULL;

	if (pods && *uid)
		found = json_object_get(pods->by_uid, uid);
	if (pods && !found && *container)
		found = json_object_get(pods->by_container, container);
	return found;
}

const char *pods__text(const json_t *pod, const char *key)
{
	const char *text = json_string_value(json_object_get(pod, key));

	return text ? text : "";
}

const char *pods__container_text(const json_t *pod, const char *container, const char *key)
{
	return pods__text(json_object_get(json_object_get(pod, "containers"), container), key);
}

uint64_t pods__bytes(const struct pods *pods)
{
	return pods ? pods->board->bytes : 0;
}

double pods__cpu_seconds(const struct pods *pods)
{
	return pods ? pods->board->cpu_ns / 1e9 : 0;
}

void pods__measure(const struct pods *pods, FILE *file)
{
	if (!pods)
		return;
	fprintf(file,
		"# HELP pybpfprof_pods Pods of this node with known names.\n"
		"# TYPE pybpfprof_pods gauge\n"
		"pybpfprof_pods %zu\n"
		"# HELP pybpfprof_pods_cut Pods with more labels and annotations than rules can "
		"see.\n"
		"# TYPE pybpfprof_pods_cut gauge\n"
		"pybpfprof_pods_cut %zu\n"
		"# HELP pybpfprof_pods_current 1 while the API server reports pods and all of them "
		"fit in memory.\n"
		"# TYPE pybpfprof_pods_current gauge\n"
		"pybpfprof_pods_current %d\n"
		"# HELP pybpfprof_pods_restarts_total Restarts of the process that watches pods.\n"
		"# TYPE pybpfprof_pods_restarts_total counter\n"
		"pybpfprof_pods_restarts_total %" PRIu64 "\n"
		"# HELP pybpfprof_pods_memory_bytes Private memory of the process that watches "
		"pods; counts toward the memory limit.\n"
		"# TYPE pybpfprof_pods_memory_bytes gauge\n"
		"pybpfprof_pods_memory_bytes %" PRIu64 "\n"
		"# HELP pybpfprof_pods_cpu_seconds_total CPU time of the processes that watch "
		"pods; counts toward the CPU budget.\n"
		"# TYPE pybpfprof_pods_cpu_seconds_total counter\n"
		"pybpfprof_pods_cpu_seconds_total %.9f\n",
		json_object_size(pods->by_uid), pods->cut,
		pods->board->current && !pods->board->crowded, pods->board->restarts,
		pods__bytes(pods), pods__cpu_seconds(pods));
}
