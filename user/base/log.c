// SPDX-License-Identifier: BSD-2-Clause
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"

static enum log_level wanted = LOG_INFO;
static bool progress_stands;

void log__set_level(enum log_level level)
{
	wanted = level;
}

enum log_level log__level(void)
{
	return wanted;
}

void log__print(enum log_level level, const char *format, ...)
{
	va_list arguments;

	if (level > wanted)
		return;
	log__progress("");
	fputs("pybpfprof: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

/* The last column stays free, because some terminals wrap after it. */
static int columns_max(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return INT_MAX;
	return size.ws_col - 1;
}

void log__progress(const char *line)
{
	if (!*line && !progress_stands)
		return;
	fprintf(stderr, "\r\033[K%.*s", columns_max(), line);
	fflush(stderr);
	progress_stands = *line;
}
