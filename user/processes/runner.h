/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that run an application have it in their name:
 *
 *	uvicorn --port 80 shop:app          uvicorn shop:app
 *	gunicorn -w4 'shop:create(1)'       gunicorn shop:create
 *	celery -A shop worker               celery shop
 *	manage.py runserver                 manage.py runserver
 *	gunicorn: worker [shop:app]         gunicorn shop:app, a title
 *
 * An unknown option is assumed to take an argument.  So an application may be missed, but nothing
 * else is taken for one.
 */
#ifndef PYBPFPROF_RUNNER_H
#define PYBPFPROF_RUNNER_H

#include <string.h>

/* The words of a /proc/PID/cmdline.  A NUL ends each; one without was cut. */
struct words {
	const char *next, *end;
};

/* Takes the next whole word; NULL: there is none. */
static inline const char *words__take(struct words *words)
{
	const char *word = words->next;
	const char *nul = memchr(word, '\0', words->end - word);

	if (!nul)
		return NULL;
	words->next = nul + 1;
	return word;
}

/* Returns the program NAME, of LENGTH bytes, with the application that ARGUMENTS tell.  The caller
 * frees.  NULL: the program runs no applications, or it is not clear which. */
char *runner__name(const char *name, size_t length, struct words arguments);

/* The length of the program in such a name; 0: it is no such name. */
size_t runner__length(const char *name);

/* As runner__name, but from a title that the program set. */
char *runner__name_of_title(const char *title);

#endif
