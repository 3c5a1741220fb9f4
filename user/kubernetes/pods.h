/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of this node's pods, for the agent: another process, without privileges, asks the API
 * server for them (pod_watch.h), which one more keeps running (keeper.h), and the agent never waits
 * for either.
 */
#ifndef PYBPFPROF_PODS_H
#define PYBPFPROF_PODS_H

#include <stdio.h>

#include <jansson.h>

#include "kubernetes/api_server.h"

struct pods;

/* Has the pods of NODE be known by what SERVER tells.  NULL with *PODS, NULL: there is no server,
 * for pods__close; or what is wrong, for the caller to free.  The others take NULL, too. */
char *pods__open(const struct api_server *server, const char *node, struct pods **pods);
void pods__close(struct pods *pods);

/* Takes over what is known by now. */
void pods__refresh(struct pods *pods);

/* The record, of pod_record.h, of the pod with UID, or with the container CONTAINER where there is
 * none of that uid; valid until the next refresh.  NULL: it is not known. */
const json_t *pods__find(const struct pods *pods, const char *uid, const char *container);

/* The text that the record POD, or its CONTAINER, has for KEY; "" where there is none. */
const char *pods__text(const json_t *pod, const char *key);
const char *pods__container_text(const json_t *pod, const char *container, const char *key);

/* Memory that the process which asks has of its own; CPU time that it has used. */
uint64_t pods__bytes(const struct pods *pods);
double pods__cpu_seconds(const struct pods *pods);

/* Writes its metrics, as metrics.h does. */
void pods__measure(const struct pods *pods, FILE *file);

#endif
