// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <string.h>

#include "unwind/mangled.h"
#include "unwind/symbols.h"

/* A template within a template takes three. */
#define DEPTH_MAX 512

int mangled__fail(struct mangled *in)
{
	in->failed = true;
	in->next = in->end;
	return MANGLED_NONE;
}

char mangled__peek(const struct mangled *in)
{
	return in->next < in->end ? in->next[0] : 0;
}

char mangled__peek_second(const struct mangled *in)
{
	return in->end - in->next > 1 ? in->next[1] : 0;
}

bool mangled__take(struct mangled *in, char wanted)
{
	if (mangled__peek(in) != wanted)
		return false;
	in->next++;
	return true;
}

bool mangled__take_two(struct mangled *in, const char *wanted)
{
	if (mangled__peek(in) != wanted[0] || mangled__peek_second(in) != wanted[1])
		return false;
	in->next += 2;
	return true;
}

void mangled__expect(struct mangled *in, char wanted)
{
	if (!mangled__take(in, wanted))
		mangled__fail(in);
}

bool mangled__take_end(struct mangled *in)
{
	if (mangled__take(in, 'E'))
		return true;
	if (in->next < in->end)
		return false;
	mangled__fail(in);
	return true;
}

void mangled__enter(struct mangled *in)
{
	if (++in->depth > DEPTH_MAX)
		mangled__fail(in);
}

void mangled__leave(struct mangled *in)
{
	in->depth--;
}

int mangled__add(struct mangled *in, struct mangled_node node)
{
	if (in->failed || in->node_count == in->most)
		return mangled__fail(in);
	in->nodes[in->node_count] = node;
	return in->node_count++;
}

int mangled__add_text(struct mangled *in, int scope, const char *text)
{
	return mangled__add(in, (struct mangled_node){ scope, false, text, strlen(text), 0 });
}

int mangled__add_suffix(struct mangled *in, int scope, const char *text)
{
	return mangled__add(in, (struct mangled_node){ scope, true, text, strlen(text), 0 });
}

int mangled__remember(struct mangled *in, int node)
{
	if (in->failed || in->earlier_count == in->most)
		return mangled__fail(in);
	in->earlier[in->earlier_count++] = node;
	return node;
}

int mangled__read_number(struct mangled *in)
{
	int number = 0;

	if (!isdigit((unsigned char)mangled__peek(in)))
		mangled__fail(in);
	while (isdigit((unsigned char)mangled__peek(in))) {
		number = number * 10 + (*in->next++ - '0');
		if (number > SYMBOLS_NAME_BYTES_MAX)
			mangled__fail(in);
	}
	return number;
}

void mangled__skip_digits(struct mangled *in)
{
	while (isdigit((unsigned char)mangled__peek(in)))
		in->next++;
}
