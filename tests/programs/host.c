// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that is not Python, but may load several Pythons: host STEP...
 *
 *	load=LIBRARY   dlopen with RTLD_LOCAL; the next steps use this library
 *	again=LIBRARY  the same in a new link-map namespace: a second copy, with its own libc
 *	home=FOLDER    PYTHONHOME of the Python started next; one in a new namespace sees the
 *		       PYTHONHOME that the program was started with instead
 *	start          Py_InitializeEx, then release the GIL
 *	run=CODE       run CODE in a new native thread, through PyGILState_Ensure
 *	main=CODE      run CODE in the main thread, the only one that a second libc knows
 *	sleep=SECONDS  sleep
 *	line	       read a line
 *	fork	       go on in a child, and wait for its end
 *	ready          print "ready" with the TIDs of the threads that run code
 *	spin           use the CPU without Python
 *	wait           wait for ever
 *
 * As a library, called by Java, it takes the steps from HOST_STEPS, separated by newlines.
 * With OWN_COPY it is linked with a Python of its own that it never starts.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS_MAX 8

struct task {
	void *library;
	const char *code;
	pid_t tid;
};

static void *library;
static struct task tasks[THREADS_MAX];
static int task_count;

#ifdef OWN_COPY
void Py_InitializeEx(int);
void (*volatile own_copy)(int) = Py_InitializeEx;
#endif

void Java_Host_run(void *environment, void *class);

static void fail(const char *what)
{
	fprintf(stderr, "host: %s\n", what);
	exit(1);
}

static void *find(void *from, const char *name)
{
	void *symbol = dlsym(from, name);

	if (!symbol)
		fail(dlerror());
	return symbol;
}

static void load(const char *path, Lmid_t namespace)
{
	library = dlmopen(namespace, path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fail(dlerror());
}

static void start_python(void)
{
	void (*initialize)(int) = find(library, "Py_InitializeEx");
	void *(*save_thread)(void) = find(library, "PyEval_SaveThread");

	initialize(0);
	save_thread();
}

static void *run_task(void *argument)
{
	struct task *task = argument;
	int (*ensure)(void) = find(task->library, "PyGILState_Ensure");
	int (*run)(const char *, void *) = find(task->library, "PyRun_SimpleStringFlags");

	__atomic_store_n(&task->tid, gettid(), __ATOMIC_RELEASE);
	ensure();
	run(task->code, NULL);
	return NULL;
}

static void run(const char *code)
{
	struct task *task = &tasks[task_count++];
	pthread_t thread;

	if (task_count > THREADS_MAX)
		fail("too many threads");
	task->library = library;
	task->code = code;
	if (pthread_create(&thread, NULL, run_task, task))
		fail("no thread");
	while (!__atomic_load_n(&task->tid, __ATOMIC_ACQUIRE))
		usleep(1000);
}

static void run_in_main(const char *code)
{
	struct task task = { library, code, 0 };

	run_task(&task);
}

static void say_ready(void)
{
	printf("ready [");
	for (int i = 0; i < task_count; i++)
		printf(i ? ", %d" : "%d", tasks[i].tid);
	printf("]\n");
	fflush(stdout);
}

static void spin(void)
{
	for (volatile unsigned long turns = 0;;)
		turns++;
}

static void read_line(void)
{
	while (getchar() != '\n')
		if (feof(stdin))
			fail("no line");
}

static void fork_once(void)
{
	if (!fork())
		return;
	wait(NULL);
	exit(0);
}

static void take_step(const char *step)
{
	const char *value = strchr(step, '=') ? strchr(step, '=') + 1 : "";

	if (strncmp(step, "load=", 5) == 0)
		load(value, LM_ID_BASE);
	else if (strncmp(step, "again=", 6) == 0)
		load(value, LM_ID_NEWLM);
	else if (strncmp(step, "home=", 5) == 0)
		setenv("PYTHONHOME", value, 1);
	else if (strcmp(step, "start") == 0)
		start_python();
	else if (strncmp(step, "run=", 4) == 0)
		run(value);
	else if (strncmp(step, "main=", 5) == 0)
		run_in_main(value);
	else if (strncmp(step, "sleep=", 6) == 0)
		usleep(atof(value) * 1e6);
	else if (strcmp(step, "line") == 0)
		read_line();
	else if (strcmp(step, "fork") == 0)
		fork_once();
	else if (strcmp(step, "ready") == 0)
		say_ready();
	else if (strcmp(step, "spin") == 0)
		spin();
	else if (strcmp(step, "wait") == 0)
		pause();
	else
		fail(step);
}

void Java_Host_run(void *environment, void *class)
{
	char *steps = strdup(getenv("HOST_STEPS"));

	(void)environment;
	(void)class;
	for (char *step = strtok(steps, "\n"); step; step = strtok(NULL, "\n"))
		take_step(step);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		take_step(argv[i]);
	return 0;
}
