/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of this node's pods, for the agent.  A process without privileges asks the API server
 * (pod_watch.h), and another restarts it if it ends (keeper.h).  The agent waits for neither.
 */
#ifndef PYBPFPROF_PODS_H
#define PYBPFPROF_PODS_H

#include <stdio.h>

#include <jansson.h>

#include "kubernetes/api_server.h"

struct pods;

/* Begins to follow the pods of NODE.  NULL with *PODS for pods__close, or an error message for the
 * caller to free.  *PODS is NULL if SERVER has no URL; the functions below take NULL, too. */
char *pods__open(const struct api_server *server, const char *node, struct pods **pods);
void pods__close(struct pods *pods);

/* Takes over the newest records. */
void pods__refresh(struct pods *pods);

/* The record (pod_set.h) of the pod UID; if there is none, of the pod with CONTAINER.  Valid until
 * the next refresh.  NULL: not known. */
const json_t *pods__find(const struct pods *pods, const char *uid, const char *container);

/* The text of KEY in the record POD, or in its CONTAINER; "" if there is none. */
const char *pods__text(const json_t *pod, const char *key);
const char *pods__container_text(const json_t *pod, const char *container, const char *key);

/* The private memory of the process that asks, and the CPU time that such processes used. */
uint64_t pods__bytes(const struct pods *pods);
double pods__cpu_seconds(const struct pods *pods);

/* Writes the metrics, as metrics.h does. */
void pods__measure(const struct pods *pods, FILE *file);

#endif
