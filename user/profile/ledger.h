/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ledger: what became of every sample.
 *
 *	events = samples + lost
 *	samples = python + no_python + sum(errors)
 *
 * `events` is counted by the kernel on entry, the others from the stacks they
 * were counted under, so that the first line is a check and not a definition.
 */
#ifndef PYBPFPROF_LEDGER_H
#define PYBPFPROF_LEDGER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "pybpfprof.h"

/* How the sampling period was made irregular. */
struct ledger_periods {
	uint64_t shortest_ns, longest_ns;
	uint64_t changes;
};

#define UNKNOWN_COMMANDS      16
#define UNKNOWN_COMMAND_BYTES 64

/* Samples of processes that ended, or executed another program, before it was known what they ran,
 * and of those that the first commands of these came to: there may be more than have room.  What
 * has no command that is known is one of them, by the name "[unknown]". */
struct unknown_processes {
	uint64_t samples;
	struct {
		char name[UNKNOWN_COMMAND_BYTES]; /* as printable text, perhaps cut */
		uint64_t samples;
	} commands[UNKNOWN_COMMANDS]; /* the unused ones are behind them, and have 0 */
};

struct ledger {
	double rate_hz; /* asked for, after the kernel's limit */
	double duration_s;
	uint64_t events;
	uint64_t outcomes[OUTCOME_COUNT]; /* PYTHON here excludes TRUNCATED */
	uint64_t lost;
	uint64_t left_out; /* that the kernel counted, but did not hand over: of any process */
	uint64_t stacks;
	uint64_t code_objects;
	uint64_t unnamed_code_objects; /* gone before their names could be read */
	uint64_t ring_full;	       /* definitions that had to be sent again */
	uint64_t cpus_not_sampled;     /* they went online while sampling */
	/* Of processes that are followed: */
	struct unknown_processes unknown;
	uint64_t unreadable_processes; /* closed to us, so that nobody knows what they run */
	uint64_t untold, crowded;      /* not sampled: no room to tell of them, or for them */
	struct ledger_periods periods;
	/* What the native parts of all samples that BPF took came to, and how often one went on
	 * behind a break; all 0 where there were none. */
	uint64_t native[NATIVE_OUTCOME_COUNT];
	uint64_t resumptions;
	uint64_t unmatched;    /* the value of waits whose stack lost its slot meanwhile */
	uint64_t unwind_bytes; /* of the tables by which native frames are walked */
};

/* Nanoseconds of CPU time that a sample at RATE_HZ stands for, to BPF and wherever counts are
 * shown; 0: there is no rate. */
uint64_t ledger__period_ns(double rate_hz);

/* Samples that are in the profile. */
uint64_t ledger__samples(const struct ledger *ledger);

/* Samples with a Python stack, cut ones included. */
uint64_t ledger__python(const struct ledger *ledger);

/* Whether both sums of the head comment hold. */
bool ledger__adds_up(const struct ledger *ledger);

/* What came to LEDGER since it was BEFORE: events, outcomes and what was lost; the rest is
 * LEDGER's. */
struct ledger ledger__since(const struct ledger *ledger, const struct ledger *before);

/* Counts SAMPLES of a process that was started as COMMAND, in any bytes; NULL: not known. */
void unknown_processes__add(struct unknown_processes *unknown, const char *command,
			    uint64_t samples);

/* The same of all that OTHERS has. */
void unknown_processes__add_all(struct unknown_processes *unknown,
				const struct unknown_processes *others);

/* "grep 380, sed 12", of at most COUNT commands, those with most samples first; "" where there
 * is none.  The caller frees. */
char *unknown_processes__text(const struct unknown_processes *unknown, size_t count);

/* The name of an outcome in the ledger ("frame_fault"), and its text in the profile. */
const char *outcome__name(enum outcome outcome);
const char *outcome__text(enum outcome outcome);

/* The name of what became of a sample's native part ("no_rows"). */
const char *native_outcome__name(enum native_outcome outcome);

struct json_t;

/* The ledger as a JSON object, of which the caller has the reference; NULL: no memory. */
struct json_t *ledger__json(const struct ledger *ledger);

/* Writes JSON in ASCII, and a newline; 0 or -errno.  Takes the reference. */
int ledger__write_json(struct json_t *json, FILE *file);

/* "284 samples, all whole", or how many have each outcome and how many are lost; the caller
 * frees. */
char *ledger__outline(const struct ledger *ledger);

/* One or two lines for people, without a newline at the end; the caller frees. */
char *ledger__summary(const struct ledger *ledger);

#endif
