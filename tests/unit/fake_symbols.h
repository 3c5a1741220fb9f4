/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernel symbols that a test makes up. */
#ifndef PYBPFPROF_TESTS_FAKE_SYMBOLS_H
#define PYBPFPROF_TESTS_FAKE_SYMBOLS_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unwind/kernel_symbols.h"

/* Reads TEXT, which has the format of /proc/kallsyms. */
static inline struct kernel_symbols *symbols_of(const char *text)
{
	char path[] = "/tmp/test_kernel_symbols.XXXXXX";
	int fd = mkstemp(path);
	struct kernel_symbols *symbols;

	assert_true(fd >= 0);
	assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	symbols = kernel_symbols__read(path);
	unlink(path);
	return symbols;
}

#endif
