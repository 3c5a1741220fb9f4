// SPDX-License-Identifier: BSD-2-Clause
/* handed_on SCRIPT: the first thread initializes Python, and then computes without it, while
 * another thread runs SCRIPT in the first one's thread state. */
#include <Python.h>
#include <pthread.h>

static PyThreadState *state;

static void *run(void *path)
{
	FILE *script = fopen(path, "r");

	PyEval_RestoreThread(state);
	if (!script || PyRun_SimpleFile(script, path))
		_exit(1);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t attributes;
	pthread_t thread;

	Py_InitializeEx(0);
	state = PyEval_SaveThread();
	if (pthread_attr_init(&attributes) || pthread_attr_setstacksize(&attributes, 8 << 20) ||
	    pthread_create(&thread, &attributes, run, argv[argc - 1]))
		return 1;
	for (volatile unsigned long i = 0;; i++)
		;
}
