/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The formats a profile is written in: one file each, each ending with its
 * entry in one table (formats.c).
 */
#ifndef PYBPFPROF_OUTPUT_H
#define PYBPFPROF_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "profile/profile.h"

struct output_options {
	bool threads;	     /* -t: a frame for each thread at the root */
	bool by_process;     /* as of several processes, however many were found */
	bool full_filenames; /* --full-filenames: as the code object has them */
	const char *title;   /* what was profiled: "PID 1234: python3 app.py"; valid UTF-8.
			      * pprof without one has no comments */
	/* What the profile is compared with, where the format tells_difference: all but its samples
	 * and times is the profile's own.  NULL: nothing. */
	const struct profile *before;
};

struct output_format {
	const char *name;	 /* what -f takes */
	const char *description; /* one line for --help */
	const char *use;	 /* what to do with the file; NULL: nothing to say */
	const char *suffix;	 /* of a default file name: "html", "speedscope.json" */
	const char *endings[4];	 /* of -o that mean this format, longest first; NULL ends */
	bool tells_threads;	 /* apart, without -t, too */
	bool tells_difference;	 /* from what was before */
	bool holds_events;	 /* several; the others show one, the profile's first */
	bool chooses_kinds;	 /* of frames, when it is looked at: it wants all that there are */
	/* Writes the whole profile; 0, or -errno where the error is not the file's own
	 * (the caller checks that with ferror and fclose). */
	int (*write)(const struct profile *profile, const struct output_options *options,
		     FILE *file);
};

extern const struct output_format output_html;
extern const struct output_format output_folded;
extern const struct output_format output_pprof;
extern const struct output_format output_speedscope;
extern const struct output_format output_text;

/* All formats, the default one first; NULL ends. */
extern const struct output_format *const output_formats[];

/* NULL where there is none. */
const struct output_format *output__by_name(const char *name);
const struct output_format *output__by_ending(const char *path);

/* Refuses FORMAT for COUNT events if it cannot hold them.  NULL, or what is wrong and its mend,
 * which the caller frees. */
char *output__refuse_events(const struct output_format *format, size_t count);

/* The name of FUNCTION's file, as it is to be shown. */
string_id output__filename(const struct output_options *options,
			   const struct profile_function *function);

/* Says that FORMAT was written to PATH, and what to do with it; nothing for standard output. */
void output__say_written(const struct output_format *format, const char *path);

/*
 * Labels: one line of text, safe in a folded stack and on a terminal.  Control
 * and direction characters are escaped, `;` is `:`, none ends in a space and a
 * number, and none is longer than LABEL_BYTES_MAX.  The caller frees them.
 */
#define LABEL_BYTES_MAX (16 * 1024)

/* How every text output spells a location: "qualname (json/decoder.py:355)", a reason as its
 * bare text, a file that is not known as "?". */
char *output__frame_label(const struct profile *profile, const struct output_options *options,
			  uint32_t location);

/* "thread (TID): name" and "process PID:"command"", which stand before a stack's frames; of several
 * processes that count as one, which has no PID, "service "name"". */
char *output__thread_label(const struct profile *profile, uint32_t thread);
char *output__process_label(const struct profile *profile, uint32_t process);

/* Whether a stack is told with its process. */
bool output__shows_processes(const struct profile *profile, const struct output_options *options);

/* Cuts what TEXT, of valid UTF-8, has over BYTES_MAX out of its middle, with " ... " in its place:
 * a command line begins with the program and ends with what it was told to do, a path ends with
 * the name.  Returns TEXT. */
char *output__shorten(char *text, size_t bytes_max);
#define COMMAND_BYTES_MAX 256

#endif
