// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel's entries for interrupts of devices and of other CPUs lie side by side.  On x86 those
 * for exceptions come before them, and are left out: a page fault is the thread's own.
 * What an interrupt leaves for later runs in handle_softirqs, up to Linux 6.9 in __do_softirq.
 */
#include <stdio.h>
#include <string.h>

#include "architecture/architecture.h"
#include "events/interrupts.h"
#include "unwind/kernel_symbols.h"

/* With FRED, all interrupts and exceptions of x86 share one entry, whose code has no names. */
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

/* Sets CODE to the code from the function NAME up to the symbol END.  END NULL: up to the next
 * function.  Returns whether they were found. */
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
		return "this kernel's interrupt entries are not known";
	/* The compiler may have made either a part of its caller. */
	later = find(symbols, "handle_softirqs", NULL, &codes[1]);
	if (find(symbols, "__do_softirq", NULL, &codes[2]) || later)
		return NULL;
	return "this kernel's softirqs are not known";
}
