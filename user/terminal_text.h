/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PYBPFPROF_TERMINAL_TEXT_H
#define PYBPFPROF_TERMINAL_TEXT_H

/* A target's UTF-8 text, made safe to print: control characters, which a terminal may obey, become
 * \xNN.  The caller frees. */
char *terminal_text__escape(const char *text);

#endif
