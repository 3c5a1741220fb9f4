// SPDX-License-Identifier: BSD-2-Clause
/* Like python3 linked to a shared libpython. */
#include <Python.h>

int main(int argc, char **argv)
{
	return Py_BytesMain(argc, argv);
}
