// SPDX-License-Identifier: BSD-2-Clause
/* What no interpreter does, but a program that imitates one may do. */
#include "interpreter.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATES	   10000
#define SLEEP_US   5000000
#define CHAIN	   1000
#define NOWHERE	   0x10000000000 /* from here on nothing is mapped */
#define NAMES	   600
#define NAME_BYTES (900 << 10)

/* Runs JOB in a new thread forever. */
static void begin(void *(*job)(void *))
{
	pthread_t handle;

	if (pthread_create(&handle, NULL, job, NULL))
		abort();
}

static void loop_frames(void)
{
	for (int i = 0; i < THREADS; i++)
		threads[i].frames[0]->previous = threads[i].frames[CALLERS];
}

/* Invalid addresses of callers: not mapped, the kernel's, no address at all. */
static void miss_frames(void)
{
	static const uintptr_t nowhere[THREADS] = { 0x10, 0xffff888000000000, 0x7ffffffffff0,
						    UINTPTR_MAX };

	for (int i = 0; i < THREADS; i++)
		threads[i].frames[0]->previous = (void *)nowhere[i];
}

/* No thread finds its own state. */
static void hide_states(void)
{
	for (int i = 0; i < THREADS; i++)
		threads[i].state->base.thread_id = 1;
}

static void loop_states(void)
{
	hide_states();
	threads[0].state->base.next = _PyRuntime._main_interpreter.threads.head;
}

static void loop_interpreters(void)
{
	hide_states();
	_PyRuntime._main_interpreter.next = &_PyRuntime._main_interpreter;
}

static void multiply_states(void)
{
	hide_states();
	for (int i = 0; i < STATES; i++) {
		_PyThreadStateImpl *state = allocate(sizeof(*state));

		state->base.thread_id = 1;
		state->base.next = _PyRuntime._main_interpreter.threads.head;
		_PyRuntime._main_interpreter.threads.head = &state->base;
	}
}

/* Sleeps most of the time, then is busy for a moment. */
static void *sleep_in_state(void *argument)
{
	_PyThreadStateImpl *state = argument;

	state->base.thread_id = (unsigned long)pthread_self();
	for (;;) {
		usleep(SLEEP_US);
		for (volatile int i = 0; i < SPINS; i++)
			;
	}
	return NULL;
}

/* Starts up to STATES threads, as the machine permits, each with its own state in the list. */
static void multiply_threads(void)
{
	_PyThreadStateImpl *state;
	pthread_attr_t attributes;
	pthread_t handle;
	int started = 0;

	/* User space announces states that are marked as their thread's.  These are not. */
	for (int i = 0; i < THREADS; i++)
		threads[i].state->base._status.bound_gilstate = 0;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
	pthread_attr_setguardsize(&attributes, 0);
	while (started < STATES) {
		state = allocate(sizeof(*state));
		state->base = threads[0].state->base;
		state->base.next = _PyRuntime._main_interpreter.threads.head;
		if (pthread_create(&handle, &attributes, sleep_in_state, state))
			break;
		__atomic_store_n(&_PyRuntime._main_interpreter.threads.head, &state->base,
				 __ATOMIC_RELEASE);
		started++;
	}
	fprintf(stderr, "%d threads\n", started);
}

static void lie_about_interpreters(void)
{
	_PyRuntime.interpreters.head = (void *)0xdead00000000;
}

static void claim_long_names(void)
{
	for (int i = 0; i < FUNCTIONS; i++)
		((PyASCIIObject *)codes[i]->co_qualname)->length = 2LL << 30;
}

/* Products or sums with these sizes overflow. */
static void claim_overflowing_sizes(void)
{
	for (int i = 0; i < FUNCTIONS; i++) {
		((PyASCIIObject *)codes[i]->co_qualname)->length = PY_SSIZE_T_MAX;
		((PyVarObject *)codes[i]->co_linetable)->ob_size = -1;
	}
}

static uint64_t next_random(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

struct pristine {
	_PyInterpreterFrame frames[THREADS][FUNCTIONS];
	PyCodeObject codes[FUNCTIONS];
};

/* Overwrites a word of a frame and of a code object, then restores both. */
static void disturb(const struct pristine *pristine, int number, int function)
{
	_PyInterpreterFrame *frame = threads[number].frames[function];
	uint64_t *words[] = { (uint64_t *)frame, (uint64_t *)codes[function] };
	size_t counts[] = { sizeof(*frame) / 8, sizeof(PyCodeObject) / 8 };

	for (int i = 0; i < 2; i++)
		words[i][next_random() % counts[i]] =
			next_random() % 3
				? (uint64_t)threads[number].frames[next_random() % FUNCTIONS]
				: next_random();
	memcpy(frame, &pristine->frames[number][function], sizeof(*frame));
	memcpy(codes[function], &pristine->codes[function], sizeof(PyCodeObject));
}

/* Rewrites everything that is read, at full speed. */
static void *rewrite_all(void *argument)
{
	struct pristine *pristine = allocate(sizeof(*pristine));

	(void)argument;
	for (int i = 0; i < FUNCTIONS; i++) {
		pristine->codes[i] = *codes[i];
		for (int j = 0; j < THREADS; j++)
			pristine->frames[j][i] = *threads[j].frames[i];
	}
	for (;;)
		disturb(pristine, next_random() % THREADS, next_random() % FUNCTIONS);
	return NULL;
}

static void rewrite(void)
{
	begin(rewrite_all);
}

/* Makes one code object after another, each with a unique long name: more than the profiler
 * reads of one process. */
static void *make_names(void *argument)
{
	size_t length = NAME_BYTES;
	char *text = allocate(length + 1);

	(void)argument;
	memset(text, 'x', length);
	for (unsigned int i = 0; i < NAMES; i++) {
		snprintf(text, 16, "%015u", i);
		text[15] = 'x';
		make_code(CALLERS);
		codes[CALLERS]->co_qualname = new_str(text, length - 1, 1, 1);
		for (int j = 0; j < THREADS; j++)
			set_executable(threads[j].frames[CALLERS], codes[CALLERS]);
		usleep(2000);
	}
	return NULL;
}

static void multiply_names(void)
{
	begin(make_names);
}

static _PyInterpreterFrame chain[CHAIN];

/* Each frame of the chain runs another code object in each sample. */
static void *replace_codes(void *argument)
{
	uintptr_t next = NOWHERE;

	(void)argument;
	for (;; usleep(200))
		for (int i = 0; i < CHAIN; i++, next += sizeof(PyCodeObject))
			set_executable(&chain[i], (void *)next);
	return NULL;
}

static void multiply_codes(void)
{
	chain[0].previous = threads[0].frames[0]->previous;
	for (int i = 1; i < CHAIN; i++)
		chain[i].previous = &chain[i - 1];
	for (int i = 0; i < THREADS; i++)
		threads[i].frames[0]->previous = &chain[CHAIN - 1];
	begin(replace_codes);
}

static const struct {
	const char *name;
	void (*commit)(void);
} hostilities[] = {
	{ "frame-loop", loop_frames },
	{ "frames-nowhere", miss_frames },
	{ "state-loop", loop_states },
	{ "interpreter-loop", loop_interpreters },
	{ "10000-states", multiply_states },
	{ "10000-threads", multiply_threads },
	{ "no-interpreter", lie_about_interpreters },
	{ "2-gib-names", claim_long_names },
	{ "overflows", claim_overflowing_sizes },
	{ "rewriting", rewrite },
	{ "names-for-ever", multiply_names },
	{ "codes-for-ever", multiply_codes },
};

void be_hostile(const char *how)
{
	for (size_t i = 0; i < sizeof(hostilities) / sizeof(hostilities[0]); i++)
		if (strcmp(hostilities[i].name, how) == 0)
			hostilities[i].commit();
}
