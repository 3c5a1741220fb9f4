/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is kept of a pod that the API server tells of, as JSON:
 *
 *	{"uid": ..., "name": ..., "namespace": ..., "service_name": ...,
 *	 "containers": {ID: {"name": ..., "image": ...}},
 *	 "hidden": {"__meta_kubernetes_pod_name": ...},
 *	 "cut": 7}
 *
 * service_name is what its annotation resource.opentelemetry.io/service.name or
 * pyroscope.io/service_name says, else its label app.kubernetes.io/name or app.  What is hidden are
 * the labels that rules see, by the names that Prometheus has for them:
 *__meta_kubernetes_namespace, and __meta_kubernetes_pod_ with name, node_name, ip, controller_kind,
 *controller_name, label_X, labelpresent_X, annotation_X, annotationpresent_X.  Of labels and
 * annotations there are as many as have room for one pod, in the order they are told in; cut is how
 * many had none, where there are such.
 */
#ifndef PYBPFPROF_POD_RECORD_H
#define PYBPFPROF_POD_RECORD_H

#include <jansson.h>

/* What POD, an object of the API, comes to, for json_decref, and *KEY, which the caller frees: its
 * uid, as the names of its cgroups have it, which may be another than the API's.  NULL where it is
 * no pod. */
json_t *pod_record__of(const json_t *pod, char **key);

#endif
