/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The short name of a process: the script or module that it runs, not `python`.
 *
 *	python3 -X dev web.py --port 80          web.py
 *	python3 /usr/local/bin/celery worker     celery
 *	python3 app.pyz, python3 folder/         app.pyz, folder
 *	python3 -Em http.server                  http.server
 *	python3 -c 'import app; app.run()'       -c, unless an ancestor has a name: identity.h
 *	python3 -c 'from multiprocessing.spawn   multiprocessing.spawn, likewise
 *	python3, python3 -, python3 -i           python3.12, the executable
 *	gunicorn: worker [app], a title          gunicorn, its first word
 *	/usr/bin/uwsgi --http :80                uwsgi
 *
 * A program that runs an application has it in its name:
 *
 *	uvicorn --port 80 shop:app               uvicorn shop:app
 *	gunicorn -w4 'shop:create(1)'            gunicorn shop:create
 *	celery -A shop worker                    celery shop
 *	manage.py runserver                      manage.py runserver
 *	gunicorn: worker [shop:app], a title     gunicorn shop:app
 *
 * CPython's options are parsed as CPython 2.7 to 3.15 parse them.  An unknown option of a program
 * is assumed to take an argument: an application may be missed, but nothing else is taken for one.
 */
#ifndef PYBPFPROF_COMMAND_NAME_H
#define PYBPFPROF_COMMAND_NAME_H

#include <stddef.h>

/* Returns the short name, at most 255 bytes, which the caller frees; NULL if it is unknown.  WORDS
 * is LENGTH bytes of a /proc/PID/cmdline: each word ends with a NUL, and one without was cut.
 * EXECUTABLE is the base name of the executable, or NULL. */
char *command_name__of(const char *words, size_t length, const char *executable);

/* The length of the program in a short name that has an application; 0: it has none. */
size_t command_name__runner_length(const char *name);

enum command_kind {
	COMMAND_OTHER, /* no sign of Python */
	COMMAND_PYTHON,
	/* The command line does not say what the process does: `-c`, by which multiprocessing and
	 * execnet start workers, or a module such as joblib's.  The parent's command line says it.
	 */
	COMMAND_WORKER,
	/* PEX runs a file of the cache that it unpacked itself to.  The environment has the path of
	 * the user's own file: service_name.h. */
	COMMAND_UNPACKED,
};

/* What kind of command line this is.  Arguments as above. */
enum command_kind command_name__kind(const char *words, size_t length, const char *executable);

#endif
