// SPDX-License-Identifier: BSD-2-Clause
/*
 * interpreter [reuse] [break WORD VALUE] [hostile HOW]
 *
 * What a process of CPython looks like from outside, without a Python in it: this
 * is compiled against the headers of the version that it stands in for (3.13 and
 * later), with Py_GIL_DISABLED or not, and puts together that version's own
 * structs: _PyRuntime with its debug offsets, an interpreter, thread states, code
 * objects with names of every kind of string and line tables, frames.  Then its
 * threads spin, each in its innermost frame, going from instruction to
 * instruction.  From 3.14 on, a free-threaded build's threads run copies of the
 * instructions, like the interpreter's.
 *
 * It says "ready" and, as JSON, each thread's stacks, root first, each frame with
 * its function's name and line (0: it is not to be told).
 *
 * reuse: on a line of input, the last thread ends, and another one begins that has
 * its number and other copies.  break: word WORD of the debug offsets is VALUE.
 * hostile: what no interpreter does; see `hostilities`.
 */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_runtime.h>
#include <internal/pycore_ceval.h>
#include <internal/pycore_runtime_init.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_tstate.h>
#include <internal/pycore_frame.h>
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe.h>
#endif
#include <internal/pycore_code.h>

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if PY_VERSION_HEX >= 0x030e0000 && defined(Py_GIL_DISABLED)
#define HAS_COPIES 1
#else
#define HAS_COPIES 0
#endif

#define INSTRUCTIONS  40
#define FUNCTIONS     5
#define THREADS	      4
#define CALLERS	      (FUNCTIONS - 1)
#define LEAF_LINES    3
#define SPINS	      20000
#define STACK_BYTES   16384
#define STATES	      10000
#define SLEEP_US      5000000
#define CHAIN	      1000
#define NOWHERE	      0x10000000000 /* and on: not mapped */
#define NAMES	      600
#define NAME_BYTES    (900 << 10)
#define FILENAME      "/srv/stand-in/program.py"
#define FIRST_LINE(i) (100 * ((i) + 1))

/* Line I of a code object is that of instruction I: one entry each, of one unit, without columns.
 */
#define ENTRY_ONE_UNIT	 0xe8
#define SAME_LINE	 0
#define NEXT_LINE	 2
#define LINE_TABLE_BYTES (2 * INSTRUCTIONS)

/* So many code units earlier begin the copies of the thread that comes later, and so many further
 * is it in them: the addresses of its instructions are those of the thread before it. */
#define COPY_MOVED 4

/* This one has no copy of that function: as if the copy had been freed. */
#define THREAD_WITHOUT	 2
#define FUNCTION_WITHOUT 3

#define TAG_OF_DEFERRED 1

PyTypeObject PyType_Type = { PyVarObject_HEAD_INIT(&PyType_Type, 0) };
PyTypeObject PyCode_Type = { PyVarObject_HEAD_INIT(&PyType_Type, 0) };
PyTypeObject PyUnicode_Type = { PyVarObject_HEAD_INIT(&PyType_Type, 0) };
PyTypeObject PyBytes_Type = { PyVarObject_HEAD_INIT(&PyType_Type, 0) };
PyObject _Py_NoneStruct;
const unsigned long Py_Version = PY_VERSION_HEX;

_PyRuntimeState _PyRuntime __attribute__((section(".PyRuntime"))) =
	_PyRuntimeState_INIT(_PyRuntime, _Py_Debug_Cookie);

/* ASCII, Latin-1, two bytes, four bytes. */
static const char *const names[FUNCTIONS] = { "module", "caf\u00e9", "\u0444\u0443\u043d\u043a",
					      "\U0001d4bb\U0001d4c3", "leaf" };
static const Py_UCS1 latin1[] = { 'c', 'a', 'f', 0xe9 };
static const Py_UCS2 two_bytes[] = { 0x444, 0x443, 0x43d, 0x43a };
static const Py_UCS4 four_bytes[] = { 0x1d4bb, 0x1d4c3 };

static PyCodeObject *codes[FUNCTIONS];
static char *copies[FUNCTIONS][THREADS];
struct thread {
	_PyThreadStateImpl *state;
	_PyInterpreterFrame *frames[FUNCTIONS];
	int index; /* of its copies */
	volatile int stop;
	pthread_t handle;
};

static struct thread threads[THREADS + 1];

static void *allocate(size_t bytes)
{
	void *memory = calloc(1, bytes);

	if (!memory)
		abort();
	return memory;
}

static PyObject *new_str(const void *data, size_t length, unsigned int kind, int ascii)
{
	size_t header = ascii ? sizeof(PyASCIIObject) : sizeof(PyCompactUnicodeObject);
	PyASCIIObject *str = allocate(header + (length + 1) * kind);

	((PyObject *)str)->ob_type = &PyUnicode_Type;
	str->length = length;
	str->hash = -1;
	str->state.interned = 1;
	str->state.kind = kind;
	str->state.compact = 1;
	str->state.ascii = ascii;
	memcpy((char *)str + header, data, length * kind);
	return (PyObject *)str;
}

static PyObject *new_ascii(const char *text)
{
	return new_str(text, strlen(text), 1, 1);
}

static PyObject *new_name(int function)
{
	switch (function) {
	case 1:
		return new_str(latin1, 4, 1, 0);
	case 2:
		return new_str(two_bytes, 4, 2, 0);
	case 3:
		return new_str(four_bytes, 2, 4, 0);
	default:
		return new_ascii(names[function]);
	}
}

static PyObject *new_line_table(void)
{
	PyBytesObject *bytes = allocate(sizeof(*bytes) + LINE_TABLE_BYTES);

	((PyObject *)bytes)->ob_type = &PyBytes_Type;
	((PyVarObject *)bytes)->ob_size = LINE_TABLE_BYTES;
	for (int i = 0; i < INSTRUCTIONS; i++) {
		bytes->ob_sval[2 * i] = (char)ENTRY_ONE_UNIT;
		bytes->ob_sval[2 * i + 1] = i ? NEXT_LINE : SAME_LINE;
	}
	return (PyObject *)bytes;
}

/* A code object; its threads' copies, other than the first's, lie one after another elsewhere. */
static void make_code(int function)
{
	PyCodeObject *code = allocate(sizeof(*code) + (INSTRUCTIONS + 1) * sizeof(_Py_CODEUNIT));

	((PyObject *)code)->ob_type = &PyCode_Type;
#ifdef Py_GIL_DISABLED
	((PyObject *)code)->ob_ref_local = 1;
#else
	((PyObject *)code)->ob_refcnt = 1;
#endif
	((PyVarObject *)code)->ob_size = INSTRUCTIONS;
	code->co_firstlineno = FIRST_LINE(function);
	code->co_filename = new_ascii(FILENAME);
	code->co_name = new_ascii("not the qualified one");
	code->co_qualname = new_name(function);
	code->co_linetable = new_line_table();
	codes[function] = code;
	copies[function][0] = code->co_code_adaptive;
#if HAS_COPIES
	code->co_tlbc = allocate(sizeof(_PyCodeArray) + THREADS * sizeof(char *));
	code->co_tlbc->size = THREADS;
	code->co_tlbc->entries[0] = copies[function][0];
	for (int i = 1; i < THREADS; i++) {
		copies[function][i] =
			(char *)((_Py_CODEUNIT *)allocate(2 * INSTRUCTIONS * sizeof(_Py_CODEUNIT)) +
				 COPY_MOVED);
		if (i != THREAD_WITHOUT || function != FUNCTION_WITHOUT)
			code->co_tlbc->entries[i] = copies[function][i];
	}
#endif
}

/* Where instruction POSITION of FUNCTION is for a thread. */
static _Py_CODEUNIT *instruction(const struct thread *thread, int function, int position)
{
	return (_Py_CODEUNIT *)copies[function][HAS_COPIES ? thread->index : 0] + position;
}

static void set_executable(_PyInterpreterFrame *frame, void *object)
{
#if PY_VERSION_HEX >= 0x030e0000
	frame->f_executable.bits = (uintptr_t)object | TAG_OF_DEFERRED;
#else
	frame->f_executable = object;
#endif
}

/* Which instruction a frame is at: another one in each thread and function. */
static int position_of(int number, int function)
{
	if (number == THREADS)
		return position_of(THREADS - 1, function) + COPY_MOVED;
	return (10 * number + 7 * function + 1) % (INSTRUCTIONS - LEAF_LINES - COPY_MOVED);
}

/* The frames lie in a data stack, callers below callees, above one of the interpreter's own. */
static void make_frames(struct thread *thread, int number)
{
	size_t step = sizeof(_PyInterpreterFrame) + 3 * sizeof(void *);
	_PyStackChunk *chunk = allocate(STACK_BYTES);
	_PyInterpreterFrame *caller = allocate(sizeof(*caller));

#if PY_VERSION_HEX >= 0x030f0000
	caller = &thread->state->base_frame;
	thread->state->base.base_frame = caller;
#endif
	caller->owner = 3;
	set_executable(caller, &_Py_NoneStruct);
	thread->state->base.datastack_chunk = chunk;
	for (int i = 0; i < FUNCTIONS; i++) {
		_PyInterpreterFrame *frame = (void *)((char *)chunk->data + i * step);

		set_executable(frame, codes[i]);
		frame->previous = caller;
		frame->instr_ptr = instruction(thread, i, position_of(number, i));
#if HAS_COPIES
		frame->tlbc_index = thread->index;
#endif
		thread->frames[i] = caller = frame;
	}
	thread->state->base.current_frame = caller;
}

/* Goes from instruction to instruction. */
static void run(struct thread *thread)
{
	int number = thread - threads, first = position_of(number, CALLERS);
	_PyInterpreterFrame *leaf = thread->frames[CALLERS];

	for (unsigned int turn = 0; !thread->stop; turn++) {
		*(_Py_CODEUNIT *volatile *)&leaf->instr_ptr =
			instruction(thread, CALLERS, first + turn % LEAF_LINES);
		for (volatile int i = 0; i < SPINS; i++)
			;
	}
}

static void *spin(void *argument)
{
	struct thread *thread = argument;

	__atomic_store_n(&thread->state->base.thread_id, (unsigned long)pthread_self(),
			 __ATOMIC_RELEASE);
	run(thread);
	return NULL;
}

/* Thread NUMBER, with copies INDEX: a thread state, in front of the others, and frames. */
static void make_thread(int number, int index)
{
	struct thread *thread = &threads[number];
	PyInterpreterState *interp = &_PyRuntime._main_interpreter;

	thread->index = index;
	thread->state = allocate(sizeof(*thread->state));
	thread->state->base.interp = interp;
	thread->state->base.next = interp->threads.head;
	make_frames(thread, number);
	__atomic_store_n(&interp->threads.head, &thread->state->base, __ATOMIC_RELEASE);
}

static void start_thread(struct thread *thread)
{
	if (pthread_create(&thread->handle, NULL, spin, thread))
		abort();
}

/* On a line of input, has the last thread end and another one begin in its place. */
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
#if HAS_COPIES
	for (int i = 0; i < FUNCTIONS; i++) {
		copies[i][last->index] -= COPY_MOVED * sizeof(_Py_CODEUNIT);
		codes[i]->co_tlbc->entries[last->index] = copies[i][last->index];
	}
	interp->tlbc_indices.tlbc_generation += 2;
#endif
	make_thread(THREADS, last->index);
	start_thread(&threads[THREADS]);
	return NULL;
}

static void print_stack(int number, int leaf_line)
{
	for (int i = 0; i < FUNCTIONS; i++) {
		int position = position_of(number, i) + (i == CALLERS ? leaf_line : 0);
		int known = !HAS_COPIES || number != THREAD_WITHOUT || i != FUNCTION_WITHOUT;

		printf("%s[\"%s\", %d]", i ? ", " : "", names[i],
		       known ? FIRST_LINE(i) + position : 0);
	}
}

static void print_stacks(void)
{
	printf("ready {\"file\": \"%s\", \"threads\": [", FILENAME);
	for (int number = 0; number <= THREADS; number++) {
		printf("%s[", number ? ", " : "");
		for (int line = 0; line < LEAF_LINES; line++) {
			printf("%s[", line ? ", " : "");
			print_stack(number, line);
			putchar(']');
		}
		putchar(']');
	}
	printf("]}\n");
	fflush(stdout);
}

static void loop_frames(void)
{
	for (int i = 0; i < THREADS; i++)
		threads[i].frames[0]->previous = threads[i].frames[CALLERS];
}

/* Where the frames' callers are not: not mapped, the kernel's, no address at all. */
static void miss_frames(void)
{
	static const uintptr_t nowhere[THREADS] = { 0x10, 0xffff888000000000, 0x7ffffffffff0,
						    UINTPTR_MAX };

	for (int i = 0; i < THREADS; i++)
		threads[i].frames[0]->previous = (void *)nowhere[i];
}

/* No state is the thread's that looks for its own. */
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

/* Asleep for most of the time, and then busy for a moment. */
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

/* As many as the machine lets there be, up to STATES: each with a state of its own in the list. */
static void multiply_threads(void)
{
	_PyThreadStateImpl *state;
	pthread_attr_t attributes;
	pthread_t handle;
	int started = 0;

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

/* Whose product or sum with anything is small again. */
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

/* Puts something else into a frame and a code object, and then what was there. */
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

/* All that is read, at full speed. */
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
	pthread_t handle;

	if (pthread_create(&handle, NULL, rewrite_all, NULL))
		abort();
}

/* One code object after another, each with a long name that no other has: more than is read of one
 * process. */
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
	pthread_t handle;

	if (pthread_create(&handle, NULL, make_names, NULL))
		abort();
}

static _PyInterpreterFrame chain[CHAIN];

/* Each frame of the chain runs another code object at each sample. */
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
	pthread_t handle;

	chain[0].previous = threads[0].frames[0]->previous;
	for (int i = 1; i < CHAIN; i++)
		chain[i].previous = &chain[i - 1];
	for (int i = 0; i < THREADS; i++)
		threads[i].frames[0]->previous = &chain[CHAIN - 1];
	if (pthread_create(&handle, NULL, replace_codes, NULL))
		abort();
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

static void be_hostile(const char *how)
{
	for (size_t i = 0; i < sizeof(hostilities) / sizeof(hostilities[0]); i++)
		if (strcmp(hostilities[i].name, how) == 0)
			hostilities[i].commit();
}

#ifdef HAS_JIT
/* By which such a build is known; some versions' headers have its type. */
void invalidate_executors(void) __asm__("_Py_Executors_InvalidateDependency");
void invalidate_executors(void)
{
}
#endif

int main(int argc, char **argv)
{
	pthread_t control;

	if (argc == 4 && strcmp(argv[1], "break") == 0)
		((uint64_t *)&_PyRuntime)[atoi(argv[2])] = strtoull(argv[3], NULL, 0);
	for (int i = 0; i < FUNCTIONS; i++)
		make_code(i);
	for (int i = 0; i < THREADS; i++)
		make_thread(i, i);
	_PyRuntime.interpreters.head = &_PyRuntime._main_interpreter;
	for (int i = 1; i < THREADS; i++)
		start_thread(&threads[i]);
	if (argc == 2 && strcmp(argv[1], "reuse") == 0 &&
	    pthread_create(&control, NULL, wait_for_reuse, NULL))
		abort();
	for (int i = 1; i < THREADS; i++)
		while (!__atomic_load_n(&threads[i].state->base.thread_id, __ATOMIC_ACQUIRE))
			;
	threads[0].state->base.thread_id = (unsigned long)pthread_self();
	if (argc == 3 && strcmp(argv[1], "hostile") == 0)
		be_hostile(argv[2]);
	print_stacks();
	run(&threads[0]);
	return 0;
}
