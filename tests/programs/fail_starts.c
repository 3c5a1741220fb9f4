// SPDX-License-Identifier: BSD-2-Clause
/*
 * To be preloaded: threads number 2 to $FAIL_THREADS of the program, or processes number 2 to
 * $FAIL_PROCESSES, cannot be started, as if others had used up the limit.  A forked process
 * continues its parent's count.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static bool fails(int number, const char *variable)
{
	const char *last = getenv(variable);

	return last && number >= 2 && number <= atoi(last);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
		   void *context)
{
	static int number;
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		dlsym(RTLD_NEXT, "pthread_create");

	if (fails(++number, "FAIL_THREADS"))
		return EAGAIN;
	return real(thread, attributes, run, context);
}

pid_t fork(void)
{
	static int number;
	pid_t (*real)(void) = dlsym(RTLD_NEXT, "fork");

	if (!fails(++number, "FAIL_PROCESSES"))
		return real();
	errno = EAGAIN;
	return -1;
}
