// SPDX-License-Identifier: BSD-2-Clause
/*
 * run_in_another(), for versions without a module for interpreters, and
 * run_in_caller(), which no module offers.  They use only the part of Python's API that
 * all versions share.
 */
struct state;

struct state *Py_NewInterpreter(void);
void Py_EndInterpreter(struct state *state);
struct state *PyThreadState_Swap(struct state *state);
int PyRun_SimpleString(const char *source);

/* Needs the GIL. Runs SOURCE in a new interpreter, and returns when it has ended. */
int run_in_another(const char *source);

/* Called below run_in_another(): runs SOURCE in the state that called that function. */
int run_in_caller(const char *source);

static struct state *caller;

int run_in_another(const char *source)
{
	struct state *before = PyThreadState_Swap((struct state *)0), *own;
	int result;

	PyThreadState_Swap(before);
	caller = before;
	own = Py_NewInterpreter();
	result = PyRun_SimpleString(source);
	Py_EndInterpreter(own);
	PyThreadState_Swap(before);
	return result;
}

int run_in_caller(const char *source)
{
	struct state *before = PyThreadState_Swap(caller);
	int result = PyRun_SimpleString(source);

	PyThreadState_Swap(before);
	return result;
}
