/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that wait, on disk: a file each, which is there whole or not at all, so that neither a
 * process that is killed nor an agent that ends takes them with it.
 *
 * One process at a time has a spool.  Where it cannot write, requests stay in memory.
 */
#ifndef PYBPFPROF_SPOOL_H
#define PYBPFPROF_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "push/push_destinations.h"

struct push_request;
struct spool;

/* The folder "push" in FOLDER, both made where they are not there; or -1, with errno. */
int spool__folder(const char *folder);

/* What FOLDER, a descriptor, has for DESTINATIONS; of others it is removed, which is said.  NULL,
 * which is said, where another process has it, or unreadable; or FOLDER is none. */
struct spool *spool__open(int folder, const struct push_destinations *destinations);
void spool__close(struct spool *spool);

/* Removes what FOLDER has in its folder "push", which is said, and that: nothing is pushed now. */
void spool__clear(const char *folder);

/* All of the others take NULL, as what has nothing and takes nothing. */

/* Has TAKE take all that is there, oldest first, without its bodies; SENT: it was on its way. */
void spool__find(struct spool *spool,
		 void (*take)(void *context, struct push_request *request, bool sent),
		 void *context);

/* Takes REQUEST's body to disk; where it cannot, that is said when it begins, and it stays. */
void spool__put(struct spool *spool, struct push_request *request);

/* The same of a part of WHOLE, where that is on disk: NUMBER, from 1.  Parts count once WHOLE is
 * removed. */
void spool__put_part(struct spool *spool, struct push_request *part,
		     const struct push_request *whole, unsigned int number);

/* The same of one that is on disk with another body, in place of that. */
void spool__replace(struct spool *spool, struct push_request *request);

/* Brings the body of a request that is on disk back; false where it is not to be had. */
bool spool__load(struct spool *spool, struct push_request *request);

/* Takes note that REQUEST is on its way: where this process ends, it may have arrived or not. */
void spool__mark(struct spool *spool, struct push_request *request);

/* It waits again. */
void spool__rest(struct spool *spool, struct push_request *request);

/* It has an outcome. */
void spool__remove(struct spool *spool, struct push_request *request);

#endif
