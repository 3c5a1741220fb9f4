/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pods of a node, as lists and the events of a watch tell of them.  One that has gone is kept
 * for a while: what it ran is in windows that are not labelled yet.
 */
#ifndef PYBPFPROF_POD_SET_H
#define PYBPFPROF_POD_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pod_set;

struct pod_set *pod_set__new(void);
void pod_set__free(struct pod_set *set);

enum pod_news {
	POD_NEWS,      /* taken */
	POD_NO_NEWS,   /* how far the watch is */
	POD_TOO_OLD,   /* all is to be listed anew: the server has forgotten what came since */
	POD_NOT_VALID, /* it is not what a server says */
};

/* Takes the list of all pods in TEXT at NOW_NS. */
enum pod_news pod_set__take_list(struct pod_set *set, const char *text, size_t length,
				 int64_t now_ns);

/* Takes one event of a watch. */
enum pod_news pod_set__take_event(struct pod_set *set, const char *text, size_t length,
				  int64_t now_ns);

/* Whence the next watch goes on; "" before a list was taken. */
const char *pod_set__version(const struct pod_set *set);

/* How many pods have not gone. */
size_t pod_set__count(const struct pod_set *set);

/* Removes those that went so long ago that nobody will ask; whether there were any. */
bool pod_set__forget(struct pod_set *set, int64_t now_ns);

/* All records by key, as JSON's text, which the caller frees. */
char *pod_set__text(const struct pod_set *set);

#endif
