// SPDX-License-Identifier: BSD-2-Clause
/*
 * run_in_another(): what interpreters.py needs of C in versions that have no module
 * for interpreters; and run_in_caller(), which no module does.  Of Python's API, the part
 * that has always been the same.
 */
struct state;

struct state *Py_NewInterpreter(void);
void Py_EndInterpreter(struct state *state);
struct state *PyThreadState_Swap(struct state *state);
int PyRun_SimpleString(const char *source);

/* Runs SOURCE in a new interpreter, for as long as it goes on; with the GIL. */
int run_in_another(const char *source);

/* Runs SOURCE, in what run_in_another() has run, in the state that called that. */
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
