// SPDX-License-Identifier: BSD-2-Clause
/*
 * walker PID RUNTIME CODE_TYPE VERSION THREAD_POINTER...
 *
 * Samples the threads of a Python of VERSION (PY_VERSION_HEX, with a trailing t for a free-threaded
 * build or d for one with tracing) as if each had just been interrupted.  Its _PyRuntime (up to
 * 3.6: a pointer to its newest interpreter) is at RUNTIME and PyCode_Type at CODE_TYPE.
 *
 * Prints a line of JSON for each sample: the outcome, the numbers of reads, and the frames, leaf
 * first, each with its function's name and first line, its position and line.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "offsets.h"
#include "python/code.h"
#include "python/lines.h"

static const char *const outcomes[] = {
#define X(id, name, text) name,
	OUTCOMES(X)
#undef X
};

static struct offsets offsets;
static uint64_t code_type;

static json_t *describe_frame(const struct frame *frame)
{
	struct code code;
	uint32_t line;
	json_t *result;

	if (frame->kind != FRAME_PYTHON)
		return json_pack("[s]", outcomes[frame->detail]);
	if (code__read(kernel.pid, &offsets, code_type, frame->address, &code))
		return json_pack("[s]", "no code object");
	line = lines__shown(offsets.version, code.line_table, code.line_table_length,
			    code.first_line, frame->position);
	result = json_pack("[s, i, i, i]", code.name, code.first_line, frame->position, line);
	code__free(&code);
	return result;
}

static void sample_thread(uint64_t thread_pointer)
{
	struct last_sample sample;
	json_t *frames = json_array(), *result;

	kernel.tid = thread_pointer >> 12;
	kernel.thread_pointer = thread_pointer;
	sample = kernel__sample();
	for (uint32_t i = 0; i < sample.depth; i++)
		json_array_append_new(frames, describe_frame(&sample.frames[i]));
	result = json_pack("{s:s, s:i, s:i, s:o}", "outcome", outcomes[sample.outcome], "reads",
			   (int)kernel.reads, "failed_reads", (int)kernel.failed_reads, "frames",
			   frames);
	json_dumpf(result, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(result);
}

static enum build build_of(char letter)
{
	return letter == 't' ? BUILD_FREE_THREADED : letter == 'd' ? BUILD_TRACING : BUILD_WITH_GIL;
}

int main(int argc, char **argv)
{
	struct layout layout;
	uint64_t runtime;
	uint32_t version;
	char *build;
	int error;

	if (argc < 6) {
		fputs("usage: walker PID RUNTIME CODE_TYPE VERSION THREAD_POINTER...\n", stderr);
		return 2;
	}
	kernel__load(1);
	kernel.pid = atoi(argv[1]);
	kernel.tgid = kernel.pid;
	runtime = strtoull(argv[2], NULL, 0);
	version = strtoul(argv[4], &build, 0);
	error = offsets__lookup(version, build_of(*build), &offsets);
	if (!error)
		error = offsets__layout(&offsets, &layout);
	if (error) {
		fprintf(stderr, "no layout for %s: %s\n", argv[4], strerror(-error));
		return 1;
	}
	kernel__set_layout(0, &layout);
	code_type = strtoull(argv[3], NULL, 0);
	if (offsets.runtime_interpreters_head != OFFSET_ABSENT)
		runtime += offsets.runtime_interpreters_head;
	kernel__add_target(kernel.tgid, runtime, 0, code_type);
	for (int i = 5; i < argc; i++)
		sample_thread(strtoull(argv[i], NULL, 0));
	error = !kernel__sums_hold();
	kernel__unload();
	return error;
}
