// SPDX-License-Identifier: BSD-2-Clause
/* A program with a Python in it: embed SCRIPT runs that. */
#include <Python.h>

int main(int argc, char **argv)
{
	FILE *script = fopen(argv[argc - 1], "r");
	PyObject *code;

	if (!script)
		return 1;
	Py_InitializeEx(0);
	code = Py_CompileString("0", "nowhere", Py_eval_input);
	/* Takes the address of libpython's type, of which a linker may make a copy here. */
	if (!code || !PyCode_Check(code))
		return 1;
	return PyRun_SimpleFile(script, argv[argc - 1]);
}
