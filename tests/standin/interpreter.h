/* SPDX-License-Identifier: BSD-2-Clause */
/* What a stand-in is put together of (interpreter.c), for what it then does (hostilities.c). */
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

#define FUNCTIONS 5
#define THREADS	  4
#define CALLERS	  (FUNCTIONS - 1)
#define SPINS	  20000

struct thread {
	_PyThreadStateImpl *state;
	_PyInterpreterFrame *frames[FUNCTIONS];
	int index; /* of its copies */
	volatile int stop;
	pthread_t handle;
};

extern struct thread threads[];
extern PyCodeObject *codes[FUNCTIONS];

/* Zeros, for good. */
void *allocate(size_t bytes);

/* Of LENGTH characters at DATA, each of KIND bytes. */
PyObject *new_str(const void *data, size_t length, unsigned int kind, int ascii);

/* Puts a new code object of FUNCTION into `codes`. */
void make_code(int function);

/* Has FRAME run OBJECT. */
void set_executable(_PyInterpreterFrame *frame, void *object);

/* Does HOW, one of those that hostilities.c has. */
void be_hostile(const char *how);

#endif
