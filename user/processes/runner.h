/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that run whatever application they are given, which is part of their name:
 *
 *	uvicorn --port 80 shop:app          uvicorn shop:app
 *	gunicorn -w4 'shop:create(1)'       gunicorn shop:create
 *	celery -A shop worker               celery shop
 *	manage.py runserver                 manage.py runserver
 *	gunicorn: worker [shop:app]         gunicorn shop:app, a title
 *
 * An option that is not known is taken for one with an argument, which hides an application rather
 * than showing what is none.
 */
#ifndef PYBPFPROF_RUNNER_H
#define PYBPFPROF_RUNNER_H

#include <string.h>

/* The words of a /proc/PID/cmdline, in which a NUL ends each and one without was cut. */
struct words {
	const char *next, *end;
};

/* The next word; NULL: there is none that is whole. */
static inline const char *words__take(struct words *words)
{
	const char *word = words->next;
	const char *nul = memchr(word, '\0', words->end - word);

	if (!nul)
		return NULL;
	words->next = nul + 1;
	return word;
}

/* The LENGTH bytes NAME of a program and its application, by its ARGUMENTS.  The caller frees;
 * NULL: the program runs one thing alone, or it is not clear what. */
char *runner__name(const char *name, size_t length, struct words arguments);

/* How much of such a NAME is the program; 0: it is none. */
size_t runner__length(const char *name);

/* The same of the title TITLE, which the program has put in place of its arguments. */
char *runner__name_of_title(const char *title);

#endif
