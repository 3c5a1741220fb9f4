/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stored samples are told apart by: few labels, which do not change while a service runs.
 *
 *	service_name	what the process's environment says; else its pod's annotation or label;
 *			else its systemd service, or the name of its container where that has one;
 *			else the script or module that it runs
 *	comm		the kernel's name of the process
 *	container_id, pod_uid, python_version	where they are known
 *	pod, namespace	the pod's name and its own, where the API server tells
 *	node		this machine
 *	pid, thread	where that is asked for: the thread's name
 *
 * Rules may change them, and see more of a process, of which no other is told: __meta_process_comm,
 * _cmdline, _script, _user, _cgroup, __meta_container_id, __meta_systemd_unit, and of a pod what
 * pod_set.h has.
 */
#ifndef PYBPFPROF_LABELS_H
#define PYBPFPROF_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "kubernetes/pods.h"
#include "profile/profile.h"
#include "services/relabel.h"

/* What labels follow from. */
struct labelling {
	const char *node;
	bool with_pid, with_thread;
	const struct relabel_rules *rules;
	const struct pods *pods; /* NULL: none is known */
};

/* The labels of PROCESS of PROFILE, and of its THREAD by that name, NULL: of all: an object of
 * strings, for the caller to json_decref.  NULL: a rule drops its samples. */
json_t *labels__of(const struct profile *profile, uint32_t process, const char *thread,
		   const struct labelling *labelling);

#endif
