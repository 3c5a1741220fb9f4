/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The labels of stored samples: few, and constant while a service runs.
 *
 *	service_name	the first of these that exists: the name in the process's environment; its
 *			pod's annotation or label; its systemd service; the name of its container;
 *			the script or module that it runs; "unknown_service"
 *	comm		the kernel's name of the process
 *	container_id, pod_uid, python_version	if they are known
 *	pod, namespace	the pod's name and its namespace, from the API server
 *	node		this machine
 *	pid, thread	on request; thread is the thread's name
 *
 * Rules may change them.  Rules also see hidden labels, which are removed after them:
 * __meta_process_comm, _cmdline, _script, _user, _cgroup, __meta_container_id, __meta_systemd_unit,
 * __meta_kubernetes_pod_uid, _pod_container_name, _pod_container_image, and those of pod_set.h.
 */
#ifndef PYBPFPROF_LABELS_H
#define PYBPFPROF_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "kubernetes/pods.h"
#include "profile/profile.h"
#include "recording/recording.h"
#include "services/labelled_window.h"
#include "services/relabel.h"

/* The sources of labels. */
struct labelling {
	const char *node;
	bool with_pid, with_thread;
	const struct relabel_rules *rules;
	const struct pods *pods; /* NULL: no pod is known */
};

/* The labels of PROCESS of PROFILE, and of its thread with the name THREAD, unless that is NULL.
 * An object of strings, which the caller must json_decref.  NULL: a rule drops its samples. */
json_t *labels__of(const struct profile *profile, uint32_t process, const char *thread,
		   const struct labelling *labelling);

/* A window with its labels, without the samples that rules drop. */
struct labelled {
	struct labelled_window window;
	uint64_t dropped; /* samples, by rules */
	/* If rules drop some samples: the others, and their ledgers. */
	struct profile profile;
	struct ledger ledgers[EVENTS_MAX];
	uint32_t *numbers;
	json_t **labels, **thread_labels;
	size_t process_count, thread_count;
};

/* WINDOW as sinks take it.  WINDOW must outlive it.  Free with labelled__free. */
struct labelled *labelled__new(const struct window *window, const struct labelling *labelling);
void labelled__free(struct labelled *labelled);

#endif
