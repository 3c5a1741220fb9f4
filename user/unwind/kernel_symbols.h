/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's functions, by address. */
#ifndef PYBPFPROF_KERNEL_SYMBOLS_H
#define PYBPFPROF_KERNEL_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#define KERNEL_SYMBOLS_PATH "/proc/kallsyms"

struct kernel_symbols;

/* What to do if the kernel hides its symbols.  It hides them from users without CAP_SYSLOG, unless
 * kernel.kptr_restrict is 0 and kernel.perf_event_paranoid is 1 or less.  With kptr_restrict 2 it
 * hides them from all users. */
#define KERNEL_SYMBOLS_MENDS "run as root or add CAP_SYSLOG; kernel.kptr_restrict must not be 2"

/* Whether the kernel shows them in PATH, a file like KERNEL_SYMBOLS_PATH. */
bool kernel_symbols__are_shown(const char *path);

/* Reads PATH, a file like KERNEL_SYMBOLS_PATH: a line has an address in hex, a letter for the kind,
 * a name, and perhaps [MODULE].  NULL if the kernel hides the addresses: it shows 0 then.  Free
 * with kernel_symbols__free, NULL too. */
struct kernel_symbols *kernel_symbols__read(const char *path);
void kernel_symbols__free(struct kernel_symbols *symbols);

/* Finds the function NAME: its address, and that of the next symbol.  Whether there is one. */
bool kernel_symbols__find(const struct kernel_symbols *symbols, const char *name, uint64_t *start,
			  uint64_t *end);

/* "vfs_read_[k]" for the function at ADDRESS; "[kernel]" if it is unknown or SYMBOLS is NULL.  The
 * caller frees. */
char *kernel_symbols__name(const struct kernel_symbols *symbols, uint64_t address);

#endif
