/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PYBPFPROF_HANDINGS_H
#define PYBPFPROF_HANDINGS_H

#include <semaphore.h>
#include <unistd.h>

#include "wrap.h"

/* Counts how often the main thread hands work to the thread that reads targets.  The test must be
 * linked with --wrap=sem_post. */

/* One read of a target needs at most two. */
#define HANDINGS_MAX 2

static int handings;

int __real_sem_post(sem_t *semaphore);

WRAP(int, sem_post, sem_t *semaphore)
{
	handings += gettid() == getpid();
	return __real_sem_post(semaphore);
}

#endif
