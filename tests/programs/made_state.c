// SPDX-License-Identifier: BSD-2-Clause
/*
 * run_elsewhere(), which made_state.py calls. It uses only the part of Python's API that
 * all versions share.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct interpreter;
struct state;

struct interpreter *PyInterpreterState_Head(void);
struct state *PyThreadState_New(struct interpreter *interpreter);
void PyEval_AcquireThread(struct state *state);
void PyEval_ReleaseThread(struct state *state);
int PyRun_SimpleString(const char *source);

typedef int start_thread(pthread_t *thread, const pthread_attr_t *attributes,
			 void *(*run)(void *context), void *context);

/* Needs the GIL. Runs SOURCE in a new thread, by START, in a state that this thread creates. */
int run_elsewhere(start_thread *start, const char *source);

struct work {
	struct state *state;
	char *source;
};

static void *run(void *context)
{
	struct work *work = context;

	PyEval_AcquireThread(work->state);
	PyRun_SimpleString(work->source);
	PyEval_ReleaseThread(work->state);
	free(work->source);
	free(work);
	return NULL;
}

int run_elsewhere(start_thread *start, const char *source)
{
	struct work *work = malloc(sizeof(*work));
	pthread_t thread;

	work->state = PyThreadState_New(PyInterpreterState_Head());
	work->source = strdup(source);
	return start(&thread, NULL, run, work);
}
