// SPDX-License-Identifier: BSD-2-Clause
/* What python3 is where it is linked to a shared libpython. */
#include <Python.h>

int main(int argc, char **argv)
{
	return Py_BytesMain(argc, argv);
}
