// SPDX-License-Identifier: BSD-2-Clause
#include "push/outcomes.h"

static const struct {
	const char *name, *text;
} outcomes[] = {
#define PUSH_OUTCOME_ENTRY(id, name, text) { name, text },
	PUSH_OUTCOMES(PUSH_OUTCOME_ENTRY)
#undef PUSH_OUTCOME_ENTRY
};

const char *push_outcome__name(enum push_outcome outcome)
{
	return outcomes[outcome].name;
}

const char *push_outcome__text(enum push_outcome outcome)
{
	return outcomes[outcome].text;
}

void push_count__add(struct push_count *count, uint64_t samples)
{
	count->requests++;
	count->samples += samples;
}
