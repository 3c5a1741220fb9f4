// SPDX-License-Identifier: BSD-2-Clause
/*
 * interpreter [reuse | deep DEPTH | suspend | pass | churn | storm | break WORD VALUE |
 *              hostile HOW]
 *
 * Looks like a CPython process from outside, but contains no Python.  It is compiled against the
 * headers of the version that it stands in for (3.13 and later), with or without Py_GIL_DISABLED.
 * It builds that version's own structs: _PyRuntime with its debug offsets, an interpreter, thread
 * states, frames, and code objects with line tables and names of every kind of string.  Then its
 * threads spin in their innermost frames and step through the instructions.  From 3.14 on, the
 * threads of a free-threaded build run copies of the instructions, as in the interpreter.
 *
 * It prints "ready" and each thread's stacks as JSON, root first.  Each frame has its function's
 * name, file and line (0: the profiler cannot know it).
 *
 * reuse: on a line of input, the last thread ends, and another one begins with its index and other
 * copies.  deep: each stack has DEPTH frames, in several chunks of the data stack.  suspend: all
 * threads repeatedly wait for a futex; every second one looks suspended by another thread.  pass,
 * churn, storm: code or threads are short-lived; see changes.c.  break: sets word WORD of the debug
 * offsets to VALUE.  hostile: does what no interpreter does; see hostilities.c.
 */
#include "interpreter.h"

#include <linux/futex.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CHUNK_BYTES	16384
#define WAIT_NS		2000000
#define TAG_OF_DEFERRED 1

const unsigned long Py_Version = PY_VERSION_HEX;

_PyRuntimeState _PyRuntime __attribute__((section(".PyRuntime"))) =
	_PyRuntimeState_INIT(_PyRuntime, _Py_Debug_Cookie);

struct thread threads[THREADS + 1];

/* How many frames each stack has. */
static int depth = FUNCTIONS;

/* Whether threads wait instead of running. */
static int suspending;

void set_executable(_PyInterpreterFrame *frame, void *object)
{
#if PY_VERSION_HEX >= 0x030e0000
	frame->f_executable.bits = (uintptr_t)object | TAG_OF_DEFERRED;
#else
	frame->f_executable = object;
#endif
}

int position_of(int number, int function)
{
	if (number == THREADS)
		return position_of(THREADS - 1, function) + COPY_MOVED;
	return (10 * number + 7 * function + 1) % (INSTRUCTIONS - LEAF_LINES - COPY_MOVED);
}

/* The function of frame LEVEL.  The functions between the first and the last repeat. */
static int function_at(int level)
{
	if (level == 0)
		return 0;
	return level == depth - 1 ? CALLERS : 1 + (level - 1) % (FUNCTIONS - 2);
}

static void add_chunk(_PyThreadStateImpl *state)
{
	_PyStackChunk *chunk = allocate(CHUNK_BYTES);

	chunk->previous = state->base.datastack_chunk;
	chunk->size = CHUNK_BYTES;
	state->base.datastack_chunk = chunk;
	state->base.datastack_top = chunk->data;
	state->base.datastack_limit = (PyObject **)((char *)chunk + CHUNK_BYTES);
}

/* Frames are in the data stack, callers below callees. */
_PyInterpreterFrame *call(struct thread *thread, int function, int position)
{
	PyThreadState *state = &thread->state->base;
	size_t step = sizeof(_PyInterpreterFrame) / sizeof(PyObject *) + 3;
	_PyInterpreterFrame *frame;

	if (state->datastack_limit - state->datastack_top < (ptrdiff_t)step)
		add_chunk(thread->state);
	frame = (_PyInterpreterFrame *)state->datastack_top;
	state->datastack_top += step;
	set_executable(frame, codes[function]);
	frame->previous = state->current_frame;
	frame->instr_ptr = instruction(thread, function, position);
	frame->owner = FRAME_OWNED_BY_THREAD;
#if HAS_COPIES
	frame->tlbc_index = thread->index;
#endif
	__atomic_store_n(&state->current_frame, frame, __ATOMIC_RELEASE);
	return frame;
}

void return_from(struct thread *thread)
{
	PyThreadState *state = &thread->state->base;
	_PyInterpreterFrame *frame = state->current_frame;

	__atomic_store_n(&state->current_frame, frame->previous, __ATOMIC_RELEASE);
	state->datastack_top = (PyObject **)frame;
}

void make_state(struct thread *thread)
{
	PyInterpreterState *interp = &_PyRuntime._main_interpreter;
	_PyInterpreterFrame *entry = &thread->entry;

	thread->state = allocate(sizeof(*thread->state));
	thread->state->base.interp = interp;
	thread->state->base._whence =
		thread == threads ? _PyThreadState_WHENCE_INIT : _PyThreadState_WHENCE_THREADING;
#if PY_VERSION_HEX >= 0x030f0000
	entry = &thread->state->base_frame;
	thread->state->base.base_frame = entry;
#endif
	entry->owner = 3;
	set_executable(entry, &_Py_NoneStruct);
	thread->state->base.current_frame = entry;
	add_chunk(thread->state);
	thread->state->base.next = interp->threads.head;
	if (interp->threads.head)
		interp->threads.head->prev = &thread->state->base;
	__atomic_store_n(&interp->threads.head, &thread->state->base, __ATOMIC_RELEASE);
}

void count_copies_change(void)
{
#if HAS_COPIES
	_PyRuntime._main_interpreter.tlbc_indices.tlbc_generation++;
#endif
}

/* Makes thread NUMBER, with copies INDEX, and all its frames. */
static void make_thread(int number, int index)
{
	struct thread *thread = &threads[number];

	thread->number = number;
	thread->index = index;
	make_state(thread);
	for (int level = 0; level < depth; level++) {
		int function = function_at(level);

		thread->frames[function] = call(thread, function, position_of(number, function));
	}
}

/* Waits like a thread that was suspended by another one, or that waits for a lock. */
static void wait_for_others(struct thread *thread)
{
	static const struct timespec timeout = { .tv_nsec = WAIT_NS };
	static unsigned int word;

	thread->state->base.state = thread->number % 2 ? _Py_THREAD_SUSPENDED : _Py_THREAD_DETACHED;
	for (;;)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &timeout, NULL, 0);
}

/* Goes from instruction to instruction. */
static void run(struct thread *thread)
{
	int first = position_of(thread->number, CALLERS);
	_PyInterpreterFrame *leaf = thread->frames[CALLERS];

	if (suspending)
		wait_for_others(thread);
	for (unsigned int turn = 0; !thread->stop; turn++) {
		*(_Py_CODEUNIT *volatile *)&leaf->instr_ptr =
			instruction(thread, CALLERS, first + turn % LEAF_LINES);
		for (volatile int i = 0; i < SPINS; i++)
			;
	}
}

void take_state(struct thread *thread)
{
	PyThreadState *state = &thread->state->base;

	state->_status.bound = 1;
	state->_status.bound_gilstate = 1;
	state->_status.active = 1;
	__atomic_store_n(&state->thread_id, (unsigned long)pthread_self(), __ATOMIC_RELEASE);
}

static void *spin(void *argument)
{
	struct thread *thread = argument;

	take_state(thread);
	run(thread);
	return NULL;
}

static void start_thread(struct thread *thread)
{
	if (pthread_create(&thread->handle, NULL, spin, thread))
		abort();
}

/* On a line of input, ends the last thread and starts another one in its place. */
static void *wait_for_reuse(void *argument)
{
	PyInterpreterState *interp = &_PyRuntime._main_interpreter;
	struct thread *last = &threads[THREADS - 1];

	(void)argument;
	if (getchar() == EOF)
		return NULL;
	last->stop = 1;
	pthread_join(last->handle, NULL);
	interp->threads.head = last->state->base.next;
	move_copies(last->index);
	count_copies_change();
	count_copies_change();
	make_thread(THREADS, last->index);
	start_thread(&threads[THREADS]);
	return NULL;
}

void say_frame(const char *name, int line)
{
	printf("[\"%s\", \"" FILENAME "\", %d]", name, name, line);
}

void say_frames(int number, int length, int line)
{
	for (int level = 0; level < length; level++) {
		int function = function_at(level);
		int position = position_of(number, function) + (level == length - 1 ? line : 0);
		int known = has_copy(number == THREADS ? THREADS - 1 : number, function);

		printf(level ? ", " : "");
		say_frame(names[function], known ? FIRST_LINE(function) + position : 0);
	}
}

static void say_stacks(void)
{
	printf("ready [");
	for (int number = 0; number <= THREADS; number++) {
		printf("%s[", number ? ", " : "");
		for (int line = 0; line < LEAF_LINES; line++) {
			printf("%s[", line ? ", " : "");
			say_frames(number, depth, line);
			putchar(']');
		}
		putchar(']');
	}
	printf("]\n");
	fflush(stdout);
}

#ifdef HAS_JIT
/* This symbol marks a build with the JIT.  Some versions' headers declare it. */
void invalidate_executors(void) __asm__("_Py_Executors_InvalidateDependency");
void invalidate_executors(void)
{
}
#endif

static void start_others(void)
{
	for (int i = 1; i < THREADS; i++)
		start_thread(&threads[i]);
	for (int i = 1; i < THREADS; i++)
		while (!__atomic_load_n(&threads[i].state->base.thread_id, __ATOMIC_ACQUIRE))
			;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t control;

	if (strcmp(what, "break") == 0)
		((uint64_t *)&_PyRuntime)[atoi(argv[2])] = strtoull(argv[3], NULL, 0);
	suspending = strcmp(what, "suspend") == 0;
	if (strcmp(what, "deep") == 0)
		depth = atoi(argv[2]);
	for (int i = 0; i < FUNCTIONS; i++)
		make_code(i);
	_PyRuntime.interpreters.head = &_PyRuntime._main_interpreter;
	change(what);
	for (int i = 0; i < THREADS; i++)
		make_thread(i, i);
	take_state(&threads[0]);
	start_others();
	if (strcmp(what, "reuse") == 0 && pthread_create(&control, NULL, wait_for_reuse, NULL))
		abort();
	if (strcmp(what, "hostile") == 0)
		be_hostile(argv[2]);
	say_stacks();
	run(&threads[0]);
	return 0;
}
