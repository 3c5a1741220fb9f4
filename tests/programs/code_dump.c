// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints what code__read and unicode__read find in a process.
 *
 *	code_dump PID VERSION TYPE WHAT:ADDRESS...
 *
 * VERSION is PY_VERSION_HEX, TYPE the address of PyCode_Type or 0, WHAT `code` or
 * `str`. Prints a status for each (0 or a negative errno). If it is 0, the text of a
 * str follows, or a code object's name, file name, first line, and line table in
 * hexadecimal. Each text ends in a NUL. Names contain none.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/code.h"
#include "python/unicode.h"

static void print(const char *text)
{
	fwrite(text, 1, strlen(text) + 1, stdout);
}

static void print_number(int64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, number);
	print(text);
}

static void dump_code(pid_t pid, const struct offsets *offsets, uint64_t type, uint64_t address)
{
	struct code code;
	int error = code__read(pid, offsets, type, address, &code);

	print_number(error);
	if (error)
		return;
	print(code.name);
	print(code.filename);
	print_number(code.first_line);
	for (size_t i = 0; i < code.line_table_length; i++)
		printf("%02x", code.line_table[i]);
	print("");
	code__free(&code);
}

static void dump_str(pid_t pid, const struct offsets *offsets, uint64_t address)
{
	char *text;
	int error = unicode__read(pid, offsets, address, &text);

	print_number(error);
	if (error)
		return;
	print(text);
	free(text);
}

static enum build build_of(char letter)
{
	return letter == 't' ? BUILD_FREE_THREADED : letter == 'd' ? BUILD_TRACING : BUILD_WITH_GIL;
}

int main(int argc, char **argv)
{
	struct offsets offsets;
	uint32_t version;
	uint64_t type;
	char *build;
	pid_t pid;

	if (argc < 4)
		return 2;
	pid = strtol(argv[1], NULL, 0);
	type = strtoull(argv[3], NULL, 0);
	version = strtoul(argv[2], &build, 0);
	if (offsets__lookup(version, build_of(*build), &offsets))
		return 3;
	for (int i = 4; i < argc; i++) {
		char *colon = strchr(argv[i], ':');
		uint64_t address = colon ? strtoull(colon + 1, NULL, 0) : 0;

		if (strncmp(argv[i], "code:", 5) == 0)
			dump_code(pid, &offsets, type, address);
		else if (strncmp(argv[i], "str:", 4) == 0)
			dump_str(pid, &offsets, address);
		else
			return 2;
	}
	return 0;
}
