// SPDX-License-Identifier: BSD-2-Clause
/*
 * Interrupts of devices and of other CPUs come in by entries that lie side by side, and on x86
 * those of exceptions before them: a page fault is the thread's own.  What an interrupt leaves for
 * later runs in handle_softirqs, up to Linux 6.9 in __do_softirq.
 */
#include <stdio.h>
#include <string.h>

#include "architecture/architecture.h"
#include "events/interrupts.h"
#include "unwind/kernel_symbols.h"

/* With FRED all entries of x86 are one, and their code has no names. */
#define CPU_PATH "/proc/cpuinfo"
#define FRED	 "fred"

static bool has_fred(void)
{
	FILE *file = fopen(CPU_PATH, "re");
	char line[4096];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file) && *line != '\n')
		for (char *rest = line, *word; !found && (word = strsep(&rest, " \t\n"));)
			found = strcmp(word, FRED) == 0;
	if (file)
		fclose(file);
	return found;
}

/* Whether CODE could be filled with what lies from the function NAME up to END, or up to the next
 * function if that is NULL. */
static bool find(const struct kernel_symbols *symbols, const char *name, const char *end,
		 struct kernel_code *code)
{
	uint64_t from, to, unused;

	if (!kernel_symbols__find(symbols, name, &from, &to) ||
	    (end && !kernel_symbols__find(symbols, end, &to, &unused)) || to <= from)
		return false;
	*code = (struct kernel_code){ from, to - from };
	return true;
}

const char *interrupts__find(const struct kernel_symbols *symbols,
			     struct kernel_code codes[INTERRUPT_CODES])
{
	bool later;

	memset(codes, 0, INTERRUPT_CODES * sizeof(*codes));
	if (!symbols)
		return "the kernel hides its symbols";
	if (has_fred() ||
	    !find(symbols, ARCHITECTURE.first_interrupt, "__irqentry_text_end", &codes[0]))
		return "this kernel's entries of interrupts are not known";
	/* Either may be a part of its caller. */
	later = find(symbols, "handle_softirqs", NULL, &codes[1]);
	if (find(symbols, "__do_softirq", NULL, &codes[2]) || later)
		return NULL;
	return "this kernel's softirqs are not known";
}
