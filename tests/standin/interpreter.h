/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a stand-in: objects (objects.c), threads and their frames (interpreter.c), and
 * what they do then (changes.c, hostilities.c). */
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

/* The copies for the later thread begin this many code units earlier, and the thread is this
 * many further into them: its instructions have the addresses of the previous thread's. */
#define COPY_MOVED 4

/* This thread has no copy of this function, as if the copy had been freed. */
#define THREAD_WITHOUT	 2
#define FUNCTION_WITHOUT 3

struct thread {
	_PyThreadStateImpl *state;
	_PyInterpreterFrame entry; /* the interpreter's own, below the others; not used in 3.15 */
	_PyInterpreterFrame *frames[FUNCTIONS];
	int number; /* determines its position in each function */
	int index;  /* of its copies */
	volatile int stop;
	pthread_t handle;
};

/* What distinguishes code objects. */
struct description {
	const char *name;
	int first_line;
	int moved; /* its copies, by this many code units */
};

extern const char *const names[FUNCTIONS];
extern struct thread threads[];
extern PyCodeObject *codes[FUNCTIONS];

/* Allocates zeros, permanently unless it is replaced. */
extern void *(*allocate)(size_t bytes);

/* Makes a str of LENGTH characters at DATA, of KIND bytes each. */
PyObject *new_str(const void *data, size_t length, unsigned int kind, int ascii);

/* Makes a str of UTF8, of the narrowest kind that fits. */
PyObject *new_text(const char *utf8);

/* Puts a new code object of FUNCTION into `codes`. */
void make_code(int function);
void make_code_as(int function, const struct description *as);

/* Frees the code object of FUNCTION, but not its memory. */
void drop_code(int function);

/* The address of instruction POSITION of FUNCTION for a thread. */
_Py_CODEUNIT *instruction(const struct thread *thread, int function, int position);

/* Moves the copies of INDEX, for another thread. */
void move_copies(int index);

/* Whether the copies of INDEX include FUNCTION. */
int has_copy(int index, int function);

/* Gives each thread all copies. */
void complete_copies(void);

/* Makes FRAME run OBJECT. */
void set_executable(_PyInterpreterFrame *frame, void *object);

/* The instruction of a function that a thread is at; each NUMBER and function has another one. */
int position_of(int number, int function);

/* Notes that a thread with an index of copies begins or ends. */
void count_copies_change(void);

/* Adds a thread state at the head of the list, with only the interpreter's own frame. */
void make_state(struct thread *thread);

/* Makes this OS thread the owner of THREAD's state. */
void take_state(struct thread *thread);

/* Makes a thread call FUNCTION, or return from its last call. */
_PyInterpreterFrame *call(struct thread *thread, int function, int position);
void return_from(struct thread *thread);

/* Prints the first LENGTH frames of a thread's stack, the innermost one LINE lines further. */
void say_frames(int number, int length, int line);
void say_frame(const char *name, int line);

/* Does HOW forever, if changes.c knows it. */
void change(const char *how);

/* Does HOW, one of those in hostilities.c. */
void be_hostile(const char *how);

#endif
