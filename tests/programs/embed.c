// SPDX-License-Identifier: BSD-2-Clause
/* A program that embeds Python: embed SCRIPT runs the script. */
#include <Python.h>

int main(int argc, char **argv)
{
	FILE *script = fopen(argv[argc - 1], "r");
	PyObject *code;

	if (!script)
		return 1;
	Py_InitializeEx(0);
	code = Py_CompileString("0", "nowhere", Py_eval_input);
	/* Uses the address of PyCode_Type: the linker may copy the type into this program. */
	if (!code || !PyCode_Check(code))
		return 1;
	return PyRun_SimpleFile(script, argv[argc - 1]);
}
