/* SPDX-License-Identifier: BSD-2-Clause */
/* For LD_PRELOAD: a thread of the process that uses the CPU and runs no Python. */
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>

static void *spin(void *argument)
{
	volatile unsigned long turns = 0;

	(void)argument;
	prctl(PR_SET_NAME, "native spinner");
	for (;;)
		turns++;
	return NULL;
}

__attribute__((constructor)) static void start(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, spin, NULL))
		pthread_detach(thread);
}
