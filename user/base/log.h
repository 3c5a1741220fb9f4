/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to the user, one line each, on standard error. */
#ifndef PYBPFPROF_LOG_H
#define PYBPFPROF_LOG_H

enum log_level {
	LOG_ERROR,   /* -q: errors only */
	LOG_WARNING, /* the profile is less than what was asked for */
	LOG_INFO,    /* the default: also what was done */
	LOG_DEBUG,   /* -v: where the time goes */
};

void log__set_level(enum log_level level);
enum log_level log__level(void);

/* Prints "pybpfprof: MESSAGE" and a newline if LEVEL is wanted.  Clears a progress line first. */
void log__print(enum log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Shows LINE as the terminal's progress line, cut to its width; "" clears it. */
void log__progress(const char *line);

#define log__error(...)	  log__print(LOG_ERROR, __VA_ARGS__)
#define log__warning(...) log__print(LOG_WARNING, __VA_ARGS__)
#define log__info(...)	  log__print(LOG_INFO, __VA_ARGS__)
#define log__debug(...)	  log__print(LOG_DEBUG, __VA_ARGS__)

#endif
