/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of a process's cgroups tell its container, its pod and its systemd unit.
 *
 *	docker/ID, docker-ID.scope                          docker
 *	cri-containerd-ID.scope, X.slice:cri-containerd:ID  containerd
 *	crio-ID.scope, crio-ID                              cri-o
 *	libpod-ID.scope, libpod_parent/libpod-ID,
 *	  X.service/libpod-payload-ID                       podman
 *	nerdctl-ID.scope, k8s.io/ID                         containerd
 *	ID, anywhere else                                   unknown
 *	lxc/NAME, lxc.payload/NAME, lxc.payload.NAME        lxc
 *	machine.slice/machine-NAME.scope,
 *	  systemd-nspawn@NAME.service/payload               systemd-nspawn
 *	machine.slice/machine-lxc...scope                   libvirt-lxc
 *	podUID, X-podUID.slice                              a pod
 *	X.service, X.scope, X.socket, X.mount, X.swap       a unit
 *
 * ID is 64 hexadecimal digits.  The innermost container counts: with kind and k3d, where a node is
 * itself a container, that is the pod's own.
 *
 * These names are no proof: a user to whom a cgroup is delegated can give any name to a cgroup
 * below it.
 */
#ifndef PYBPFPROF_CGROUP_H
#define PYBPFPROF_CGROUP_H

#include <stdbool.h>

/* Most runtimes' IDs have this number of hexadecimal digits. */
#define CONTAINER_ID_LENGTH 64

/* NULL: unknown.  If there is a container, the unit is one inside it, neither the container's own
 * scope nor the service that started it. */
struct cgroup {
	char *path; /* as in /proc/PID/cgroup */
	char *container_id;
	const char *container_runtime;
	char *pod_uid;
	char *unit;
};

/* Parses LINES of a /proc/PID/cgroup and takes the line whose path tells most.  Among equal ones,
 * version 2 comes first, then version 1's systemd, memory and cpu.  Free with cgroup__free. */
void cgroup__parse(const char *lines, struct cgroup *cgroup);
void cgroup__free(struct cgroup *cgroup);

/* Whether one of LINES is of the cgroup PATH or one below it.  HIERARCHY is as from
 * cgroup__of_folder; NULL: any hierarchy. */
bool cgroup__is_within(const char *lines, const char *hierarchy, const char *path);

/* Returns the cgroup of FOLDER, a directory of a mounted hierarchy: its path as in
 * /proc/PID/cgroup.  *HIERARCHY is the hierarchy's mount options, which include its controllers or
 * its name; "" for version 2.  The caller frees both; both are NULL if FOLDER is in no hierarchy.
 */
char *cgroup__of_folder(const char *folder, char **hierarchy);

#endif
