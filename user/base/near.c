// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "base/near.h"
#include "base/xalloc.h"

static bool is_near(const char *one, const char *other, unsigned int errors)
{
	for (; *one && *one == *other; one++)
		other++;
	if (!*one && !*other)
		return true;
	if (!errors--)
		return false;
	return (*one && is_near(one + 1, other, errors)) ||
	       (*other && is_near(one, other + 1, errors)) ||
	       (*one && *other && is_near(one + 1, other + 1, errors)) ||
	       (*one && *other && one[0] == other[1] && one[1] == other[0] &&
		is_near(one + 2, other + 2, errors));
}

bool near__is(const char *word, const char *other, unsigned int errors)
{
	return strlen(word) > errors && is_near(word, other, errors);
}

void near__try(struct near *near, const char *other)
{
	for (unsigned int errors = 1; errors < near->errors; errors++) {
		if (near__is(near->word, other, errors)) {
			near->best = other;
			near->errors = errors;
		}
	}
}

char *near__suggest(char *wrong, const char *best)
{
	return best && *best ? xappend(xappend(wrong, ": did you mean ", best), "", "?") : wrong;
}
