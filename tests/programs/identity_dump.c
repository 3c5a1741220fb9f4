// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints what identity__read finds about a process.
 *
 *	identity_dump PID
 *
 * Prints NAME=VALUE for each known field, followed by a NUL.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "processes/identity.h"

static void print(const char *name, const char *value)
{
	if (value)
		printf("%s=%s%c", name, value, '\0');
}

int main(int argc, char **argv)
{
	struct identity identity;

	if (argc != 2)
		return 2;
	if (identity__read(strtol(argv[1], NULL, 10), &identity))
		return 1;
	print("command", identity.command);
	print("short_name", identity.short_name);
	print("comm", identity.comm);
	printf("uid=%u%c", identity.uid, '\0');
	print("user", identity.user);
	print("cgroup", identity.cgroup);
	print("container_id", identity.container_id);
	print("container_runtime", identity.container_runtime);
	print("pod_uid", identity.pod_uid);
	print("unit", identity.unit);
	printf("start_unix_ns=%" PRIu64 "%c", identity.start_unix_ns, '\0');
	identity__free(&identity);
	return 0;
}
