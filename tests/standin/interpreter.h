/* SPDX-License-Identifier: BSD-2-Clause */
/* What a stand-in is put together of: its objects (objects.c), its threads and their frames
 * (interpreter.c), for what they then do (changes.c, hostilities.c). */
#ifndef INTERPRETER_H
#define INTERPRETER_H

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

#include <pthread.h>

#if PY_VERSION_HEX >= 0x030e0000 && defined(Py_GIL_DISABLED)
#define HAS_COPIES 1
#else
#define HAS_COPIES 0
#endif

#define FUNCTIONS      8
#define THREADS	       4
#define CALLERS	       (FUNCTIONS - 1)
#define SPINS	       20000
#define INSTRUCTIONS   40
#define LEAF_LINES     3
#define FILENAME       "/srv/stand-in/%s.py"
#define FILENAME_BYTES 64
#define FIRST_LINE(i)  (100 * ((i) + 1))

/* So many code units earlier begin the copies of the thread that comes later, and so many further
 * is it in them: the addresses of its instructions are those of the thread before it. */
#define COPY_MOVED 4

/* This one has no copy of that function: as if the copy had been freed. */
#define THREAD_WITHOUT	 2
#define FUNCTION_WITHOUT 3

struct thread {
	_PyThreadStateImpl *state;
	_PyInterpreterFrame entry; /* the interpreter's own, below the others; 3.15 has another */
	_PyInterpreterFrame *frames[FUNCTIONS];
	int number; /* which tells where it is in each function */
	int index;  /* of its copies */
	volatile int stop;
	pthread_t handle;
};

/* What tells a code object from another. */
struct description {
	const char *name;
	int first_line;
	int moved; /* its copies, by so many code units */
};

extern const char *const names[FUNCTIONS];
extern struct thread threads[];
extern PyCodeObject *codes[FUNCTIONS];

/* Zeros, for good unless it is replaced. */
extern void *(*allocate)(size_t bytes);

/* Of LENGTH characters at DATA, each of KIND bytes. */
PyObject *new_str(const void *data, size_t length, unsigned int kind, int ascii);

/* The same of UTF8, of the kind that it has to be. */
PyObject *new_text(const char *utf8);

/* Puts a new code object of FUNCTION into `codes`. */
void make_code(int function);
void make_code_as(int function, const struct description *as);

/* Frees the code object of FUNCTION, but for its memory. */
void drop_code(int function);

/* Where instruction POSITION of FUNCTION is for a thread. */
_Py_CODEUNIT *instruction(const struct thread *thread, int function, int position);

/* Moves the copies that are INDEX's, for another thread. */
void move_copies(int index);

/* Whether the threads with copies INDEX have one of FUNCTION. */
int has_copy(int index, int function);

/* Gives each thread all copies. */
void complete_copies(void);

/* Has FRAME run OBJECT. */
void set_executable(_PyInterpreterFrame *frame, void *object);

/* Which instruction of a function a thread is at: another one for each NUMBER and function. */
int position_of(int number, int function);

/* Takes note that a thread begins or ends that has an index of copies. */
void count_copies_change(void);

/* A thread state, in front of the others, with no frame but the interpreter's own. */
void make_state(struct thread *thread);

/* Makes this OS thread the one whose state THREAD's is. */
void take_state(struct thread *thread);

/* Has a thread call FUNCTION, and return from what it called last. */
_PyInterpreterFrame *call(struct thread *thread, int function, int position);
void return_from(struct thread *thread);

/* Says the first LENGTH frames of a thread's stack, the innermost one LINE lines further. */
void say_frames(int number, int length, int line);
void say_frame(const char *name, int line);

/* Does HOW for ever, where it is one of those that changes.c has. */
void change(const char *how);

/* Does HOW, one of those that hostilities.c has. */
void be_hostile(const char *how);

#endif
