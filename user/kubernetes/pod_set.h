/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pods of a node, from the lists and watch events of the API server.  A deleted pod is kept for
 * a while, since windows with its samples may still have no labels.
 *
 * Each pod has a record in JSON:
 *
 *	{"uid": ..., "name": ..., "namespace": ..., "service_name": ...,
 *	 "containers": {ID: {"name": ..., "image": ...}},
 *	 "hidden": {"__meta_kubernetes_pod_name": ...},
 *	 "cut": 7}
 *
 * service_name is the value of the first of these that the pod has: the annotations
 * resource.opentelemetry.io/service.name and pyroscope.io/service_name, the labels
 * app.kubernetes.io/name and app.
 *
 * The hidden labels are those that only rules see, under Prometheus' names:
 * __meta_kubernetes_namespace, and __meta_kubernetes_pod_ with name, node_name, ip,
 * controller_kind, controller_name, label_X, labelpresent_X, annotation_X, annotationpresent_X.
 * The size of one pod's labels and annotations is bounded.  They are taken in order, and "cut" is
 * the number of those that did not fit, if there are any.
 */
#ifndef PYBPFPROF_POD_SET_H
#define PYBPFPROF_POD_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pod_set;

struct pod_set *pod_set__new(void);
void pod_set__free(struct pod_set *set);

enum pod_news {
	POD_NEWS,      /* the set may have changed */
	POD_NO_NEWS,   /* only the version has changed */
	POD_TOO_OLD,   /* the server has forgotten the version: all must be listed again */
	POD_NOT_VALID, /* it is no list or event of the API */
};

/* Takes a list of all pods, as JSON. */
enum pod_news pod_set__take_list(struct pod_set *set, const char *text, size_t length,
				 int64_t now_ns);

/* Takes one event of a watch, as JSON. */
enum pod_news pod_set__take_event(struct pod_set *set, const char *text, size_t length,
				  int64_t now_ns);

/* The resource version that the next watch begins with; "" before the first list. */
const char *pod_set__version(const struct pod_set *set);

/* The number of pods that are not deleted. */
size_t pod_set__count(const struct pod_set *set);

/* Removes the pods that were deleted long ago.  Returns whether there were any. */
bool pod_set__forget(struct pod_set *set, int64_t now_ns);

/* All records as one JSON object; the caller frees.  A key is the pod's uid in the names of its
 * cgroups, which may differ from its uid in the API. */
char *pod_set__text(const struct pod_set *set);

#endif
