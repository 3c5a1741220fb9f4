// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stdio.h>

#include "base/xalloc.h"
#include "check/check.h"

bool check__needs_native(const struct check *check)
{
	return check->agent && check->agent->plan.native;
}

enum verdict check__say(struct check *check, enum verdict verdict, const char *found, ...)
{
	va_list arguments;

	va_start(arguments, found);
	if (vasprintf(&check->found, found, arguments) < 0)
		out_of_memory();
	va_end(arguments);
	return verdict;
}
