/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the names of a process's cgroups tell: its container, its pod, its systemd
 * unit.
 *
 *	docker/ID, docker-ID.scope                          docker
 *	cri-containerd-ID.scope, X.slice:cri-containerd:ID  containerd
 *	crio-ID.scope, crio-ID                              cri-o
 *	libpod-ID.scope, libpod_parent/libpod-ID,
 *	  X.service/libpod-payload-ID                       podman
 *	nerdctl-ID.scope, k8s.io/ID                         containerd
 *	ID, anywhere else                                   not told
 *	lxc/NAME, lxc.payload/NAME, lxc.payload.NAME        lxc
 *	machine.slice/machine-NAME.scope,
 *	  systemd-nspawn@NAME.service/payload               systemd-nspawn
 *	machine.slice/machine-lxc...scope                   libvirt-lxc
 *	podUID, X-podUID.slice                              a pod
 *	X.service, X.scope, X.socket, X.mount, X.swap       a unit
 *
 * ID is 64 hexadecimal digits.  The innermost counts: of a container in a node that
 * is a container itself, as kind and k3d have them, the pod's own.
 *
 * These are names, and he to whom a cgroup was delegated may give one below it any.
 */
#ifndef PYBPFPROF_CGROUP_H
#define PYBPFPROF_CGROUP_H

#include <stdbool.h>

/* Of most runtimes: so many hexadecimal digits. */
#define CONTAINER_ID_LENGTH 64

/* NULL: not told.  The unit is one within the container, where there is one: not its own scope, nor
 * the service of what has started it. */
struct cgroup {
	char *path; /* as in /proc/PID/cgroup */
	char *container_id;
	const char *container_runtime;
	char *pod_uid;
	char *unit;
};

/* Takes that of the LINES of a /proc/PID/cgroup whose path tells most; among equals that of version
 * 2, or of version 1 the one of systemd, memory, cpu.  For cgroup__free. */
void cgroup__parse(const char *lines, struct cgroup *cgroup);
void cgroup__free(struct cgroup *cgroup);

/* Whether one of LINES is of the cgroup PATH, or one below it: of HIERARCHY's, as cgroup__of_folder
 * has it; NULL: of any. */
bool cgroup__is_within(const char *lines, const char *hierarchy, const char *path);

/* The cgroup whose folder, in any hierarchy that is mounted here, FOLDER is: the path as in
 * /proc/PID/cgroup, which the caller frees, as *HIERARCHY, what that is mounted with: its
 * controllers, or its name, among other options; of version 2 it is empty.  NULL, both, where it is
 * none's. */
char *cgroup__of_folder(const char *folder, char **hierarchy);

#endif
