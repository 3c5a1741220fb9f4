/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The output formats: one file each, which ends with its entry of the table in formats.c; and the
 * labels that they share (labels.c).
 */
#ifndef PYBPFPROF_OUTPUT_H
#define PYBPFPROF_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "profile/profile.h"

struct output_options {
	bool threads;	     /* -t: a frame for each thread at the root */
	bool by_process;     /* show processes even if there is only one */
	bool full_filenames; /* --full-filenames: paths as in code objects */
	/* The target: "PID 1234: python3 app.py"; valid UTF-8.  NULL: pprof writes no comments. */
	const char *title;
	/* The profile before, for formats with tells_difference.  It shares everything with the
	 * profile but samples and times.  NULL: no comparison. */
	const struct profile *before;
};

struct output_format {
	const char *name;	 /* as for -f */
	const char *description; /* one line for --help */
	const char *use;	 /* what to do with the file, or NULL */
	const char *suffix;	 /* of a default file name: "html", "speedscope.json" */
	const char *endings[4];	 /* of -o that choose this format, longest first, up to NULL */
	bool tells_threads;	 /* shows threads even without -t */
	bool tells_difference;	 /* can show a difference */
	bool holds_events;	 /* holds several events; other formats show the profile's first */
	bool chooses_kinds;	 /* the viewer chooses kinds of frames, so all kinds are wanted */
	/* Writes the whole profile.  0, or -errno for errors other than those of FILE, which the
	 * caller checks. */
	int (*write)(const struct profile *profile, const struct output_options *options,
		     FILE *file);
};

extern const struct output_format output_html;
extern const struct output_format output_folded;
extern const struct output_format output_pprof;
extern const struct output_format output_speedscope;
extern const struct output_format output_text;

/* All formats, the default first, up to NULL. */
extern const struct output_format *const output_formats[];

/* NULL: there is none. */
const struct output_format *output__by_name(const char *name);
const struct output_format *output__by_ending(const char *path);

/* NULL, or why FORMAT cannot hold COUNT events, with a remedy; the caller frees it. */
char *output__refuse_events(const struct output_format *format, size_t count);

/* The path of FUNCTION's file to show. */
string_id output__filename(const struct output_options *options,
			   const struct profile_function *function);

/* The factor for counts of BEFORE that makes them comparable with those of NOW: both are then parts
 * of the same CPU time. */
double output__scale(const struct profile *before, const struct profile *now);

/* Writes PROFILE to PATH in FORMAT, as output_file__write does; 0 or -errno.  The second function
 * also logs the error, or that PATH was written and what to do with it. */
int output__write(const struct output_format *format, const struct profile *profile,
		  const struct output_options *options, const char *path);
int output__write_or_say(const struct output_format *format, const struct profile *profile,
			 const struct output_options *options, const char *path);

/*
 * Labels: one line of text, safe in a folded stack and on a terminal.  Control characters and those
 * of text direction are escaped, `;` becomes `:`, no label ends in a space and a number, and none
 * is longer than LABEL_BYTES_MAX.  The caller frees labels.
 */
#define LABEL_BYTES_MAX (16 * 1024)

/* The label of a location: "qualname (json/decoder.py:355)"; a reason is its text alone; "?" is an
 * unknown file. */
char *output__frame_label(const struct profile *profile, const struct output_options *options,
			  uint32_t location);

/* The labels "thread (TID): name" and "process PID:"command"", which precede a stack's frames.  A
 * service, which has no PID, is "service "name"". */
char *output__thread_label(const struct profile *profile, uint32_t thread);
char *output__process_label(const struct profile *profile, uint32_t process);

/* Whether stacks are shown with their processes. */
bool output__shows_processes(const struct profile *profile, const struct output_options *options);

/* Shortens TEXT, valid UTF-8, in place to BYTES_MAX bytes, with " ... " in its middle: a command
 * line starts with the program and ends with its task, and a path ends with the name.  Returns
 * TEXT. */
char *output__shorten(char *text, size_t bytes_max);
#define COMMAND_BYTES_MAX 256

#endif
