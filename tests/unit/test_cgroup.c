// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "processes/cgroup.h"

#define ID     "4f0dfa1f6c6d9d7a0a9a7b8e0f5d2c61b3e4d5c6f7a8b9c0d1e2f3a4b5c6d7e8"
#define NODE   "b4e3a0c2d1f05968778695a4b3c2d1e0f0e1d2c3b4a5968778695a4b3c2d1e0f"
#define POD    "0b2c5f5a-3c1e-4d6f-9a7b-8c9d0e1f2a3b"
#define POD_   "0b2c5f5a_3c1e_4d6f_9a7b_8c9d0e1f2a3b"
#define MIRROR "8dda65d2fbe23a0f2bb5d1a6c6a9d1c2"
#define BURST  "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_ ".slice/"
#define KUBELET                                                                    \
	"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/" \
	"kubelet-kubepods-besteffort-pod" POD_ ".slice/"
#define USER "/user.slice/user-1000.slice/user@1000.service/"

struct known {
	const char *path, *id, *runtime, *pod, *unit;
};

static void assert_same(const char *found, const char *expected)
{
	assert_string_equal(found ? found : "(none)", expected ? expected : "(none)");
}

static void check(const struct known *table, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct cgroup cgroup;
		char lines[1024];

		snprintf(lines, sizeof(lines), "0::%s\n", table[i].path);
		cgroup__parse(lines, &cgroup);
		assert_same(cgroup.path, table[i].path);
		assert_same(cgroup.container_id, table[i].id);
		assert_same(cgroup.container_runtime, table[i].runtime);
		assert_same(cgroup.pod_uid, table[i].pod);
		assert_same(cgroup.unit, table[i].unit);
		cgroup__free(&cgroup);
	}
}

#define CHECK(table) check(table, sizeof(table) / sizeof((table)[0]))

static void test_runtimes(void **state)
{
	static const struct known table[] = {
		{ "/docker/" ID, ID, "docker", NULL, NULL },
		{ "/system.slice/docker-" ID ".scope", ID, "docker", NULL, NULL },
		{ "/system.slice/docker.service/docker/" ID, ID, "docker", NULL, NULL },
		{ "/parent/" ID, ID, NULL, NULL, NULL },
		{ "/default/" ID, ID, NULL, NULL, NULL },
		{ "/k8s.io/" ID, ID, "containerd", NULL, NULL },
		{ "/system.slice/nerdctl-" ID ".scope", ID, "containerd", NULL, NULL },
		{ "/machine.slice/libpod-" ID ".scope", ID, "podman", NULL, NULL },
		{ "/machine.slice/libpod-" ID ".scope/container", ID, "podman", NULL, NULL },
		{ "/libpod_parent/libpod-" ID, ID, "podman", NULL, NULL },
		{ "/machine.slice/machine-libpod_pod_" NODE ".slice/libpod-" ID ".scope", ID,
		  "podman", NULL, NULL },
		{ USER "user.slice/libpod-" ID ".scope/container", ID, "podman", NULL, NULL },
		{ "/system.slice/web.service/libpod-payload-" ID, ID, "podman", NULL,
		  "web.service" },
		{ "/machine.slice/libpod-conmon-" ID ".scope", NULL, NULL, NULL,
		  "libpod-conmon-" ID ".scope" },
		{ "/system.slice/other-" ID ".scope", ID, NULL, NULL, NULL },
		{ "/ecs/" MIRROR "/" ID, ID, NULL, NULL, NULL },
		{ "/ecs/" MIRROR "/" MIRROR "-2531612879", NULL, NULL, NULL, NULL },
	};

	(void)state;
	CHECK(table);
}

static void test_pods(void **state)
{
	static const struct known table[] = {
		{ "/kubepods/burstable/pod" POD "/" ID, ID, NULL, POD, NULL },
		{ "/kubepods/pod" POD "/" ID, ID, NULL, POD, NULL },
		{ "/kubepods/besteffort/pod" MIRROR "/" ID, ID, NULL, MIRROR, NULL },
		{ "/kubepods/burstable/pod" POD "/crio-" ID, ID, "cri-o", POD, NULL },
		{ "/kubepods/burstable/pod" POD "/crio-conmon-" ID, NULL, NULL, POD, NULL },
		{ BURST "cri-containerd-" ID ".scope", ID, "containerd", POD, NULL },
		{ BURST "crio-" ID ".scope", ID, "cri-o", POD, NULL },
		{ BURST "crio-" ID ".scope/container", ID, "cri-o", POD, NULL },
		{ BURST "crio-conmon-" ID ".scope", NULL, NULL, POD, "crio-conmon-" ID ".scope" },
		{ BURST "docker-" ID ".scope", ID, "docker", POD, NULL },
		{ "/kubepods.slice/kubepods-pod" MIRROR ".slice/cri-containerd-" ID ".scope", ID,
		  "containerd", MIRROR, NULL },
		{ "/system.slice/containerd.service/kubepods-burstable-pod" POD_
		  ".slice:cri-containerd:" ID,
		  ID, "containerd", POD, NULL },
		/* Containers and services inside a container. */
		{ "/kubepods/burstable/pod" POD "/" NODE "/docker/" ID, ID, "docker", POD, NULL },
		{ BURST "cri-containerd-" ID ".scope/system.slice/nginx.service", ID, "containerd",
		  POD, "nginx.service" },
	};

	(void)state;
	CHECK(table);
}

static void test_nodes_in_containers(void **state)
{
	static const struct known table[] = {
		{ "/docker/" NODE "/kubelet/kubepods/burstable/pod" POD "/" ID, ID, NULL, POD,
		  NULL },
		{ "/docker/" NODE "/kubepods/besteffort/pod" POD "/" ID, ID, NULL, POD, NULL },
		{ "/system.slice/docker-" NODE ".scope" KUBELET "cri-containerd-" ID ".scope", ID,
		  "containerd", POD, NULL },
		{ "/docker/" NODE KUBELET "crio-conmon-" ID ".scope", NULL, NULL, POD,
		  "crio-conmon-" ID ".scope" },
		{ "/docker/" NODE "/system.slice/containerd.service", NODE, "docker", NULL,
		  "containerd.service" },
		{ "/docker/" NODE "/docker/" ID, ID, "docker", NULL, NULL },
	};

	(void)state;
	CHECK(table);
}

static void test_other_containers(void **state)
{
	static const struct known table[] = {
		{ "/lxc/web", "web", "lxc", NULL, NULL },
		{ "/lxc/101/ns/system.slice/nginx.service", "101", "lxc", NULL, "nginx.service" },
		{ "/lxc.payload.web", "web", "lxc", NULL, NULL },
		{ "/lxc.payload/web/init.scope", "web", "lxc", NULL, "init.scope" },
		{ "/lxc.monitor.web", NULL, NULL, NULL, NULL },
		{ "/lxc.monitor/web", NULL, NULL, NULL, NULL },
		{ USER "lxc.payload.web", "web", "lxc", NULL, NULL },
		{ "/machine.slice/machine-web.scope", "web", "systemd-nspawn", NULL, NULL },
		{ "/machine.slice/machine-web\\x2d1.scope/payload/system.slice/nginx.service",
		  "web-1", "systemd-nspawn", NULL, "nginx.service" },
		{ "/machine.slice/machine-web.scope/payload", "web", "systemd-nspawn", NULL, NULL },
		{ "/machine.slice/machine-web.scope/supervisor", NULL, NULL, NULL,
		  "machine-web.scope" },
		{ "/machine.slice/systemd-nspawn@web.service/payload", "web", "systemd-nspawn",
		  NULL, "systemd-nspawn@web.service" },
		{ "/machine.slice/systemd-nspawn@web.service/supervisor", NULL, NULL, NULL,
		  "systemd-nspawn@web.service" },
		{ "/machine.slice/machine-lxc\\x2d12\\x2dweb.scope", "lxc\\x2d12\\x2dweb",
		  "libvirt-lxc", NULL, NULL },
		{ "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt/emulator", NULL, NULL,
		  NULL, "machine-qemu\\x2d1\\x2dvm.scope" },
		{ "/system.slice/garden.service/garden/good/6f265890-5165-7fab-6b52-18d1", NULL,
		  NULL, NULL, "garden.service" },
	};

	(void)state;
	CHECK(table);
}

static void test_units(void **state)
{
	static const struct known table[] = {
		{ "/system.slice/nginx.service", NULL, NULL, NULL, "nginx.service" },
		{ "/system.slice/system-getty.slice/getty@tty1.service", NULL, NULL, NULL,
		  "getty@tty1.service" },
		{ USER "app.slice/foo.service", NULL, NULL, NULL, "foo.service" },
		{ USER "app.slice/app-gnome-term\\x2d1-4242.scope", NULL, NULL, NULL,
		  "app-gnome-term\\x2d1-4242.scope" },
		{ USER "init.scope", NULL, NULL, NULL, "init.scope" },
		{ USER "app.slice", NULL, NULL, NULL, "user@1000.service" },
		{ "/user.slice/user-1000.slice/session-3.scope", NULL, NULL, NULL,
		  "session-3.scope" },
		{ "/system.slice/_cpu.service", NULL, NULL, NULL, "cpu.service" },
		{ "/system.slice/web.service/workers/batch", NULL, NULL, NULL, "web.service" },
		{ "/system.slice/mnt-remote.mount", NULL, NULL, NULL, "mnt-remote.mount" },
		{ "/init.scope", NULL, NULL, NULL, "init.scope" },
	};

	(void)state;
	CHECK(table);
}

static void test_other_paths(void **state)
{
	static const struct known table[] = {
		{ "/", NULL, NULL, NULL, NULL },
		{ "/../..", NULL, NULL, NULL, NULL },
		{ "/batch/nightly", NULL, NULL, NULL, NULL },
		{ "/.service/.scope", NULL, NULL, NULL, NULL },
		{ "/-" ID, NULL, NULL, NULL, NULL },
		{ "/x" ID, NULL, NULL, NULL, NULL },
		{ "/docker/web", NULL, NULL, NULL, NULL },
		{ "/kubepods/podium/pod", NULL, NULL, NULL, NULL },
		{ "/kubepods/pod" POD "0", NULL, NULL, NULL, NULL },
		{ "/good/6f265890-5165-7fab-6b52-18d1", NULL, NULL, NULL, NULL },
		{ "/task/" MIRROR "-2531612879", NULL, NULL, NULL, NULL },
		{ "/lxc", NULL, NULL, NULL, NULL },
		{ "/lxc.payload.", NULL, NULL, NULL, NULL },
		/* Paths outside the reader's cgroup namespace. */
		{ "/../../pod" POD "/" ID, ID, NULL, POD, NULL },
		{ "/../docker-" ID ".scope", ID, "docker", NULL, NULL },
		{ ":a:b:" ID, ID, NULL, NULL, NULL },
	};

	(void)state;
	CHECK(table);
}

static void check_choice(const char *lines, const char *path, const char *unit)
{
	struct cgroup cgroup;

	cgroup__parse(lines, &cgroup);
	assert_same(cgroup.path, path);
	assert_same(cgroup.unit, unit);
	cgroup__free(&cgroup);
}

static void test_choice_of_a_line(void **state)
{
	(void)state;
	/* Version 1 alone, and together with version 2. */
	check_choice("12:pids:/system.slice/a.service\n4:memory:/system.slice\n"
		     "1:name=systemd:/system.slice/a.service\n",
		     "/system.slice/a.service", "a.service");
	check_choice("9:cpu,cpuacct:/c\n4:memory:/m\n3:pids:/p\n", "/m", NULL);
	check_choice("9:cpu,cpuacct:/c\n3:pids:/p\n", "/c", NULL);
	check_choice("1:name=systemd:/s\n0::/v2\n", "/v2", NULL);
	check_choice("4:memory:/batch\n1:name=systemd:/\n0::/\n", "/batch", NULL);
	/* A Docker container, for which version 2 shows the service that started it. */
	check_choice("4:memory:/docker/" ID "\n1:name=systemd:/docker/" ID
		     "\n0::/system.slice/containerd.service\n",
		     "/docker/" ID, NULL);
	check_choice("0::/system.slice/a.service (deleted)\n", "/system.slice/a.service",
		     "a.service");
	/* A colon in the path, no line, malformed lines, a cut line. */
	check_choice("0::/a:b.service\n", "/a:b.service", "a:b.service");
	check_choice("", NULL, NULL);
	check_choice("0\n:\n0:\n0::\n", NULL, NULL);
	check_choice("4:memory:/m\n0::/system.slice/a.serv", "/m", NULL);
}

static void test_within(void **state)
{
	const char *lines = "4:memory:/batch/nightly\n0::/system.slice/a.service (deleted)\n";

	(void)state;
	assert_true(cgroup__is_within(lines, NULL, "/batch"));
	assert_true(cgroup__is_within(lines, NULL, "/batch/"));
	assert_true(cgroup__is_within(lines, NULL, "/batch/nightly"));
	assert_true(cgroup__is_within(lines, NULL, "/system.slice/a.service"));
	assert_true(cgroup__is_within(lines, NULL, "/"));
	assert_false(cgroup__is_within(lines, NULL, "/bat"));
	assert_false(cgroup__is_within(lines, NULL, "/batch/night"));
	assert_false(cgroup__is_within(lines, NULL, "/batch/nightly/deeper"));
	assert_false(cgroup__is_within(lines, NULL, "/nightly"));
	assert_false(cgroup__is_within("", NULL, "/"));
}

/* A path of one hierarchy does not match the same path in another. */
static void test_within_a_hierarchy(void **state)
{
	const char *lines = "7:cpu,cpuacct:/batch\n4:memory:/web\n1:name=systemd:/web/a.service\n"
			    "0::/system.slice\n";

	(void)state;
	assert_true(cgroup__is_within(lines, "rw,memory", "/web"));
	assert_true(cgroup__is_within(lines, "rw,xattr,name=systemd", "/web"));
	assert_true(cgroup__is_within(lines, "rw,cpu,cpuacct", "/batch"));
	assert_true(cgroup__is_within(lines, "rw,cpu,cpuacct,clone_children", "/batch"));
	assert_true(cgroup__is_within(lines, "", "/system.slice"));
	assert_false(cgroup__is_within(lines, "rw,cpu,cpuacct", "/web"));
	assert_false(cgroup__is_within(lines, "rw,memory", "/batch"));
	assert_false(cgroup__is_within(lines, "rw,memory", "/system.slice"));
	assert_false(cgroup__is_within(lines, "", "/web"));
	assert_false(cgroup__is_within(lines, "rw,pids", "/web"));
	assert_false(cgroup__is_within(lines, "rw,name=system", "/web"));
}

/* Uses the cgroup mounts of this machine. */
static void test_folders(void **state)
{
	char line[1024], root[512], point[512], type[16], folder[600];
	FILE *mounts = fopen("/proc/self/mountinfo", "r");
	char *hierarchy;
	size_t count = 0;

	(void)state;
	while (fgets(line, sizeof(line), mounts)) {
		char *found, *wanted;
		bool is_second;

		if (sscanf(line, "%*s %*s %*s %511s %511s", root, point) != 2 ||
		    sscanf(strstr(line, " - "), " - %15s", type) != 1 ||
		    strncmp(type, "cgroup", strlen("cgroup")) != 0)
			continue;
		snprintf(folder, sizeof(folder), "%s/a/b", point);
		found = cgroup__of_folder(folder, &hierarchy);
		wanted = found + strlen(found) - strlen("/a/b");
		assert_string_equal(wanted, "/a/b");
		assert_int_equal(wanted - found, strcmp(root, "/") == 0 ? 0 : strlen(root));
		is_second = strcmp(type, "cgroup2") == 0;
		assert_int_equal(!*hierarchy, is_second);
		assert_int_equal(!!strstr(line, hierarchy), true);
		free(hierarchy);
		free(found);
		count++;
	}
	fclose(mounts);
	if (!count)
		skip();
	assert_null(cgroup__of_folder("/a/b", &hierarchy));
	assert_null(hierarchy);
	assert_null(cgroup__of_folder("/sys/kernel", &hierarchy));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runtimes),
		cmocka_unit_test(test_pods),
		cmocka_unit_test(test_nodes_in_containers),
		cmocka_unit_test(test_other_containers),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_other_paths),
		cmocka_unit_test(test_choice_of_a_line),
		cmocka_unit_test(test_within),
		cmocka_unit_test(test_within_a_hierarchy),
		cmocka_unit_test(test_folders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
