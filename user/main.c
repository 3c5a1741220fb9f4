// SPDX-License-Identifier: BSD-2-Clause
#include <stddef.h>
#include <string.h>

#include "cmd_record.h"

/* The verbs; the first one may be left out. */
static const struct {
	const char *name;
	enum exit_status (*run)(int count, char **arguments);
} verbs[] = {
	{ "record", cmd_record },
};

int main(int count, char **arguments)
{
	for (size_t i = 0; count > 1 && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(arguments[1], verbs[i].name) == 0)
			return verbs[i].run(count - 1, arguments + 1);
	return verbs[0].run(count, arguments);
}
