/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The short name of a process: the script or module that it runs, not `python`.
 *
 *	python3 -X dev web.py --port 80          web.py
 *	python3 /usr/local/bin/celery worker     celery
 *	python3 app.pyz, python3 folder/         app.pyz, folder
 *	python3 -Em http.server                  http.server
 *	python3 -c 'import app; app.run()'       -c, where no ancestor has a name: identity.h
 *	python3 -c 'from multiprocessing.spawn   multiprocessing.spawn, likewise
 *	python3, python3 -, python3 -i           python3.12, the executable
 *	gunicorn: worker [app], a title          gunicorn, its first word
 *	/usr/bin/uwsgi --http :80                uwsgi
 *
 * Options are understood as CPython 2.7 to 3.15 understand them.
 */
#ifndef PYBPFPROF_COMMAND_NAME_H
#define PYBPFPROF_COMMAND_NAME_H

#include <stddef.h>

/* The name of what was started with WORDS, LENGTH bytes of a /proc/PID/cmdline, in which a NUL ends
 * each word and one without was cut; EXECUTABLE is the base name of the program's file, or NULL
 * where that is not known.  At most 255 bytes, which the caller frees; NULL where neither tells. */
char *command_name__of(const char *words, size_t length, const char *executable);

enum command_kind {
	COMMAND_OTHER, /* it shows no Python */
	COMMAND_PYTHON,
	/* It does not say what this Python is for, as with most workers: `-c`, with which
	 * multiprocessing and execnet start theirs, and modules such as joblib's.  The process that
	 * started it says that. */
	COMMAND_WORKER,
	/* The file of the command line is of a cache, in which PEX has put what it has unpacked;
	 * the environment says which file the user started: service_name.h. */
	COMMAND_UNPACKED,
};

/* What such a command line is, with the same arguments. */
enum command_kind command_name__kind(const char *words, size_t length, const char *executable);

#endif
