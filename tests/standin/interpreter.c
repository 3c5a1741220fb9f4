// SPDX-License-Identifier: BSD-2-Clause
/*
 * interpreter [reuse] [pass] [break WORD VALUE] [hostile HOW]
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
 * its number and other copies.  pass: one thread runs one code object after another, each for a
 * moment, in memory that ends where it does and is gone afterwards.  break: word WORD of the debug
 * offsets is VALUE. hostile: what no interpreter does; see hostilities.c.
 */
#include "interpreter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if PY_VERSION_HEX >= 0x030e0000 && defined(Py_GIL_DISABLED)
#define HAS_COPIES 1
#else
#define HAS_COPIES 0
#endif

#define INSTRUCTIONS  40
#define LEAF_LINES    3
#define STACK_BYTES   16384
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

#define PAGE_BYTES     4096
#define PASSING_SPINS  (20 * SPINS)
#define PASSING_PIECES 16 /* at most, of one code object */

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

struct thread threads[THREADS + 1];
PyCodeObject *codes[FUNCTIONS];
static char *copies[FUNCTIONS][THREADS];

/* What passes: pages, and behind each two one that is not there. */
static struct {
	int begun;
	char *pages[PASSING_PIECES];
	int count;
} passing;

/* The end of a page, and nothing behind it. */
static void *allocate_passing(size_t bytes)
{
	size_t size = (bytes + 7) & ~(size_t)7;
	char *pages = mmap(NULL, 2 * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || size > PAGE_BYTES || passing.count == PASSING_PIECES ||
	    mprotect(pages, PAGE_BYTES, PROT_READ | PROT_WRITE))
		abort();
	passing.pages[passing.count++] = pages;
	return pages + PAGE_BYTES - size;
}

/* Takes away the first COUNT pieces that pass. */
static void let_pass(int count)
{
	for (int i = 0; i < count; i++)
		if (mprotect(passing.pages[i], PAGE_BYTES, PROT_NONE))
			abort();
	passing.count -= count;
	memmove(passing.pages, passing.pages + count, passing.count * sizeof(*passing.pages));
}

void *allocate(size_t bytes)
{
	void *memory = passing.begun ? allocate_passing(bytes) : calloc(1, bytes);

	if (!memory)
		abort();
	return memory;
}

PyObject *new_str(const void *data, size_t length, unsigned int kind, int ascii)
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
void make_code(int function)
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

void set_executable(_PyInterpreterFrame *frame, void *object)
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

/* The same, each time in another code object.  Their addresses are never used again. */
static void run_passing(struct thread *thread)
{
	_PyInterpreterFrame *leaf = thread->frames[CALLERS];

	passing.begun = 1;
	for (int version = 1;; version++) {
		int before = passing.count;

		make_code(CALLERS);
		codes[CALLERS]->co_version = version;
		set_executable(leaf, codes[CALLERS]);
		leaf->instr_ptr = instruction(thread, CALLERS, position_of(0, CALLERS));
		let_pass(before);
		for (volatile int i = 0; i < PASSING_SPINS; i++)
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

#ifdef HAS_JIT
/* By which such a build is known; some versions' headers have its type. */
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
	int passes = argc == 2 && strcmp(argv[1], "pass") == 0;
	pthread_t control;

	if (argc == 4 && strcmp(argv[1], "break") == 0)
		((uint64_t *)&_PyRuntime)[atoi(argv[2])] = strtoull(argv[3], NULL, 0);
	for (int i = 0; i < FUNCTIONS; i++)
		make_code(i);
	for (int i = 0; i < THREADS; i++)
		make_thread(i, i);
	_PyRuntime.interpreters.head = &_PyRuntime._main_interpreter;
	if (!passes)
		start_others();
	if (argc == 2 && strcmp(argv[1], "reuse") == 0 &&
	    pthread_create(&control, NULL, wait_for_reuse, NULL))
		abort();
	threads[0].state->base.thread_id = (unsigned long)pthread_self();
	if (argc == 3 && strcmp(argv[1], "hostile") == 0)
		be_hostile(argv[2]);
	print_stacks();
	if (passes)
		run_passing(&threads[0]);
	run(&threads[0]);
	return 0;
}
