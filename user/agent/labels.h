/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stored samples are told apart by: few labels, which do not change while a service runs.
 *
 *	service_name	what the process's environment says; else its systemd service, or the name
 *			of its container where that has one; else the script or module that it runs
 *	comm		the kernel's name of the process
 *	container_id, pod, python_version	where they are known; pod is the pod's uid
 *	node		this machine
 *	pid		where that is asked for
 */
#ifndef PYBPFPROF_LABELS_H
#define PYBPFPROF_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "profile.h"

/* The labels of PROCESS of PROFILE, on the machine NODE: an object of strings, for the caller to
 * json_decref. */
json_t *labels__of(const struct profile *profile, uint32_t process, const char *node,
		   bool with_pid);

#endif
