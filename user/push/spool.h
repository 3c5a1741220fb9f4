/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that wait, on disk: a file for each, written whole or not at all.  So requests survive a
 * killed push process and the end of the agent.
 *
 * A spool belongs to one process at a time.  If it cannot write, requests stay in memory.
 */
#ifndef PYBPFPROF_SPOOL_H
#define PYBPFPROF_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "push/push_destinations.h"

struct push_request;
struct spool;

/* Opens the folder "push" in FOLDER, and creates both.  A descriptor, or -1 with errno. */
int spool__folder(const char *folder);

/* Opens the spool in FOLDER, a descriptor, for requests to DESTINATIONS.  NULL if FOLDER is -1, or
 * if the folder is unusable or another process has it; warns of the latter two. */
struct spool *spool__open(int folder, const struct push_destinations *destinations);
void spool__close(struct spool *spool);

/* Removes the spool in FOLDER, because nothing is pushed any more; warns if requests are lost. */
void spool__clear(const char *folder);

/* All other functions take NULL, as an empty spool that stores nothing. */

/* Passes all requests, oldest first and without bodies, to TAKE, which owns them; SENT: one was
 * being sent.  Removes damaged requests, and those for other destinations, with a warning. */
void spool__find(struct spool *spool,
		 void (*take)(void *context, struct push_request *request, bool sent),
		 void *context);

/* Moves the body of REQUEST to disk.  If that fails, the body stays in memory, and the first
 * failure is logged. */
void spool__put(struct spool *spool, struct push_request *request);

/* The same for part NUMBER, from 1, of WHOLE, if WHOLE is on disk.  Parts count only after WHOLE is
 * removed. */
void spool__put_part(struct spool *spool, struct push_request *part,
		     const struct push_request *whole, unsigned int number);

/* Replaces the body on disk by that of REQUEST. */
void spool__replace(struct spool *spool, struct push_request *request);

/* Reads the body back from disk; false if that fails. */
bool spool__load(struct spool *spool, struct push_request *request);

/* Marks REQUEST as being sent: if this process dies, it may have arrived or not. */
void spool__mark(struct spool *spool, struct push_request *request);

/* REQUEST waits again: removes the mark, and the body from memory. */
void spool__rest(struct spool *spool, struct push_request *request);

/* Removes REQUEST from disk: it has an outcome. */
void spool__remove(struct spool *spool, struct push_request *request);

#endif
