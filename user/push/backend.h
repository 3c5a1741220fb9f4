/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kinds of servers that profiles are sent to: one file each, each ending with its
 * entry in one table (backends.c).
 */
#ifndef PYBPFPROF_BACKEND_H
#define PYBPFPROF_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/batches.h"
#include "push/body.h"
#include "services/labelled_window.h"

/* Where a series goes to when a request is taken apart. */
enum push_place {
	PUSH_NOWHERE,
	PUSH_ALONE,    /* into a request of its own */
	PUSH_TOGETHER, /* into one with all others that go there */
};

/* That of a series; LABELS: of two series they are equal or not. */
typedef enum push_place push_place_of(void *context, const char *labels, uint64_t samples);

struct push_backend {
	const char *name; /* in a URL: NAME+https://... */
	const char *path; /* what the URL's is followed by */
	const char *content_type;
	const char *content_encoding; /* NULL: none */
	const char *const *answers;   /* the content types of its answers, up to NULL */
	int64_t age_max_ns;	      /* of a window's start, for it to be taken; 0: any */
	/* Whether what was sent twice counts once. */
	bool repeatable;
	/* Has TAKE take all of WINDOW, as requests of some REQUEST_BYTES at most. */
	void (*encode)(const struct labelled_window *window, push_take *take, void *context);
	/* Has TAKE take what such a request comes to, each series at its PLACE, where the backend
	 * may refuse some and take the others; NULL: it takes all or none. */
	void (*split)(const void *request, size_t length, push_place_of *place, push_take *take,
		      void *context);
	/* How many profiles an answer with status 200 says were not taken; NULL: none ever.
	 * *WHY is for the caller to free. */
	int64_t (*rejected)(const void *answer, size_t length, char **why);
};

/* What a backend that wants one calls these profiles. */
#define PROFILE_NAME "process_cpu"

/* All of them, up to NULL. */
extern const struct push_backend *const push_backends[];

extern const struct push_backend push_pyroscope, push_parca, push_otlp;

#endif
