/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ledger: what became of every sample.
 *
 *	events = samples + without_gil + lost
 *	samples = python + no_python + sum(errors)
 *
 * The kernel counts `events` on entry.  The others are counted from the stacks of the samples, so
 * the first line is a check and not a definition.
 */
#ifndef PYBPFPROF_LEDGER_H
#define PYBPFPROF_LEDGER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "pybpfprof.h"

/* The range of the random sampling period. */
struct ledger_periods {
	uint64_t shortest_ns, longest_ns;
	uint64_t changes;
};

#define UNKNOWN_COMMANDS      16
#define UNKNOWN_COMMAND_BYTES 64

/* Samples of processes that exited, or executed another program, before it was known what they run,
 * and their commands.  Commands beyond the table count in the total only.  A process without a
 * known command is named "[unknown]". */
struct unknown_processes {
	uint64_t samples;
	struct unknown_command {
		char name[UNKNOWN_COMMAND_BYTES]; /* escaped, perhaps shortened */
		uint64_t samples;
	} commands[UNKNOWN_COMMANDS]; /* used entries first; unused ones have 0 samples */
};

#define LEDGER_COUNTS (sizeof(((struct ledger *)0)->counts) / sizeof(uint64_t))

struct ledger {
	double rate_hz; /* as requested, within the kernel's limit */
	double duration_s;
	union {
		struct {
			uint64_t events, lost;
			uint64_t busy;	      /* part of LOST: the CPU was taking another sample */
			uint64_t without_gil; /* left out by --gil or --gil-blame */
			uint64_t left_out;    /* counted by the kernel but not delivered, of any
						 process */
			uint64_t outcomes[OUTCOME_COUNT]; /* PYTHON does not include TRUNCATED */
			/* The outcomes of the native parts of samples, and how often a walk went on
			 * after a break; 0 without native frames. */
			uint64_t native[NATIVE_OUTCOME_COUNT];
			uint64_t resumptions;
			uint64_t unmatched; /* the value of waits whose stack lost its slot, or
					       whose end was not seen */
			uint64_t brief;	    /* that of waits that were too short to be shown */
		};
		uint64_t counts[8 + OUTCOME_COUNT + NATIVE_OUTCOME_COUNT]; /* all of these */
	};
	uint64_t stacks;
	uint64_t code_objects;
	uint64_t unnamed_code_objects; /* gone before their names were read */
	uint64_t ring_full;	       /* definitions that were sent again */
	uint64_t cpus_not_sampled;     /* went online while sampling */
	/* Of the processes that are followed: */
	struct unknown_processes unknown;
	uint64_t unreadable_processes; /* not readable, so it is unknown what they run */
	uint64_t untold, crowded;      /* not sampled: no room to announce them, or to hold them */
	struct ledger_periods periods;
	uint64_t unwind_bytes; /* size of the unwind tables */
};

/* The mean period in nanoseconds of CPU time at RATE_HZ; 0 for no rate. */
uint64_t ledger__period_ns(double rate_hz);

/* Samples in the profile. */
uint64_t ledger__samples(const struct ledger *ledger);

/* Samples with a Python stack, truncated ones included. */
uint64_t ledger__python(const struct ledger *ledger);

/* Events by the first sum above. */
uint64_t ledger__events(const struct ledger *ledger);

/* Whether both sums above hold. */
bool ledger__adds_up(const struct ledger *ledger);

/* LEDGER with the counts of samples since it was BEFORE. */
struct ledger ledger__since(const struct ledger *ledger, const struct ledger *before);

/* Counts SAMPLES of a process started as COMMAND, in any bytes; NULL: unknown. */
void unknown_processes__add(struct unknown_processes *unknown, const char *command,
			    uint64_t samples);

/* Adds all of OTHERS. */
void unknown_processes__add_all(struct unknown_processes *unknown,
				const struct unknown_processes *others);

/* "grep 380, sed 12": at most COUNT commands, those with the most samples first; "" if there are
 * none.  The caller frees it. */
char *unknown_processes__text(const struct unknown_processes *unknown, size_t count);

/* An outcome's name in the ledger ("frame_fault"), and its text in the profile. */
const char *outcome__name(enum outcome outcome);
const char *outcome__text(enum outcome outcome);

/* The name of the outcome of a sample's native part ("no_rows"). */
const char *native_outcome__name(enum native_outcome outcome);

struct json_t;

/* The ledger as a JSON object, a new reference. */
struct json_t *ledger__json(const struct ledger *ledger);

/* Writes JSON in ASCII, and a newline; 0 or -errno.  Releases JSON; NULL is an error. */
int ledger__write_json(struct json_t *json, FILE *file);

/* "284 samples, all whole", or the number of each outcome, and of lost samples; the caller frees
 * it. */
char *ledger__outline(const struct ledger *ledger);

/* One or two lines for the terminal, without a final newline; the caller frees it. */
char *ledger__summary(const struct ledger *ledger);

#endif
