/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kinds of backends: one file each, which ends with its entry of the table in backends.c.
 */
#ifndef PYBPFPROF_BACKEND_H
#define PYBPFPROF_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/batches.h"
#include "push/body.h"
#include "services/labelled_window.h"

/* Where a series goes when a request is taken apart. */
enum push_place {
	PUSH_NOWHERE,
	PUSH_ALONE,    /* a request of its own */
	PUSH_TOGETHER, /* one request with all others of this place */
};

/* Chooses the place of a series.  LABELS is opaque text, equal for series with equal labels. */
typedef enum push_place push_place_of(void *context, const char *labels, uint64_t samples);

struct push_backend {
	const char *name; /* as in a URL: NAME+https://... */
	const char *path; /* follows the URL's path */
	const char *content_type;
	const char *content_encoding; /* NULL: none */
	const char *const *answers;   /* content types of its answers, up to NULL */
	int64_t age_max_ns;	      /* largest age of a window's start that it takes; 0: any */
	/* Requests that are sent twice count once. */
	bool repeatable;
	/* Encodes WINDOW as requests of about REQUEST_BYTES at most, and passes them to TAKE. */
	void (*encode)(const struct labelled_window *window, push_take *take, void *context);
	/* Takes a request apart: each series goes to its PLACE, and the new requests to TAKE.
	 * Nothing happens if the request is damaged.  NULL: the backend takes all of a request, or
	 * nothing. */
	void (*split)(const void *request, size_t length, push_place_of *place, push_take *take,
		      void *context);
	/* The number of profiles that a 2xx answer reports as rejected.  *WHY: its message, which
	 * the caller frees.  NULL: answers report none. */
	int64_t (*rejected)(const void *answer, size_t length, char **why);
};

/* The profile name, for backends that need one. */
#define PROFILE_NAME "process_cpu"

/* All backends, up to NULL. */
extern const struct push_backend *const push_backends[];

extern const struct push_backend push_pyroscope, push_parca, push_otlp;

#endif
