/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The events that can be sampled.  Each kind is one file that ends with its event_source, and
 * events.c has their table.  The sampler calls the sources of the chosen events, and knows no kind.
 */
#ifndef PYBPFPROF_EVENTS_H
#define PYBPFPROF_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/profile.h"

struct bpf_program;
struct event_source;

/* For whom an event is found on this machine. */
struct event_users {
	const pid_t *pids;
	size_t count;
	bool everyone;	  /* they may be any processes */
	bool any_context; /* also tracepoints whose samples may be of another thread than the one
			   * that caused them */
};

/* More than any name of a tracepoint has. */
#define TRACEPOINT_NAME_MAX 64

/* A chosen event. */
struct event {
	const struct event_source *source;
	const char *name;    /* "page-faults"; lives as long as the program */
	const char *alias;   /* perf's other name of it; NULL: none */
	const char *unit;    /* of a sample's value */
	const char *meaning; /* as a profile has it; NULL: the name says it */
	bool blames;	     /* only the GIL's holder is sampled, once for each thread that waits */
	uint32_t type;	     /* for the source, as are ... */
	uint64_t config, config1, config2; /* ... these */
	uint64_t period;		   /* events that a sample stands for; 0: a rate decides */
	uint64_t hz;			   /* that rate; 0: a period decides, or it is a clock */
	bool has_own;			   /* the period or the rate was chosen for it */
	/* Of a tracepoint, once it is resolved: the kernel's name of it, and what BPF has to do. */
	char attach[TRACEPOINT_NAME_MAX];
	struct tracepoint tracepoint;
};

/* HZ samples per second, and never more than LIMIT_HZ (HUGE_VAL: not known). */
struct event_rate {
	double hz, limit_hz;
};

/* How often events have interrupted targets on a CPU; it only grows. */
struct interruptions {
	uint64_t (*of_cpu)(void *context, uint32_t cpu);
	void *context;
};

/* Which BPF program takes a source's samples. */
enum event_program {
	PROGRAM_PERF_EVENT,
	PROGRAM_SWITCHES, /* it runs at thread switches */
	PROGRAM_TRACEPOINT,
	PROGRAM_PROBE,
};

struct event_source {
	enum event_program program;
	/* The source's event INDEX, from 0, as it is by default; NULL: no more.  NULL: it lists
	 * none. */
	const struct event *(*list)(size_t index);
	/* Whether TEXT begins with an event that the source has but does not list.  If it does,
	 * *LENGTH is the length of its name, and EVENT, which has the source, is filled, or *WRONG
	 * is an error message that the caller frees.  NULL: it lists all. */
	bool (*take)(const char *text, size_t *length, struct event *event, char **wrong);
	/* Finds on this machine what EVENT names for USERS.  NULL, or an error message that the
	 * caller frees.  NULL: there is nothing to find. */
	char *(*resolve)(struct event *event, const struct event_users *users);
	/* Opens EVENT on each online CPU, without starting it.  0 with *RUN for close, or -errno of
	 * perf_event_open. */
	int (*open)(const struct event *event, struct event_rate rate, void **run);
	/* Runs PROGRAM with each sample from now on.  0 or -errno. */
	int (*attach)(void *run, const struct bpf_program *program);
	/* Samples process PID, too, which is a target until it leaves.  SERIAL identifies it.
	 * NULL: all processes are sampled. */
	void (*enter)(void *run, uint64_t serial, pid_t pid);
	void (*leave)(void *run, uint64_t serial);
	/* Ends sampling; what was sampled stays. */
	void (*detach)(void *run);
	void (*close)(void *run);
	/* Does what is due, and returns the nanoseconds until the next call.  NULL: nothing is ever
	 * due. */
	int64_t (*tick)(void *run, struct interruptions interruptions);
	/* Changes the rate from the next tick on.  NULL: the event has no rate. */
	void (*set_rate)(void *run, struct event_rate rate);
	/* How often the program should have run so far.  NULL: not known. */
	uint64_t (*expected)(void *run);
	/* Fills LEDGER's fields of CPUs and periods, and logs CPUs that came online.  NULL: there
	 * are none. */
	void (*account)(void *run, struct ledger *ledger);
};

extern const struct event_source event_cpu_clock;
extern const struct event_source event_perf;
extern const struct event_source event_off_cpu;
extern const struct event_source event_probe;
extern const struct event_source event_tracepoint;

/* All sources; NULL ends. */
extern const struct event_source *const event_sources[];

/* Whether this machine can sample EVENT: 0, or -errno. */
int event__try(const struct event *event);

/* The name of the first of the COUNT EVENTS that this machine cannot sample, if that is not the CPU
 * clock; NULL: there is none. */
const char *events__impossible(const struct event *events, uint32_t count);

/* The names of the listed events that this machine can count, "a, b"; the caller frees. */
char *events__countable(void);

/* Sets EVENT to the INDEXth of all listed events, from 0; whether there is one. */
bool event__listed(size_t index, struct event *event);

/* Fills EVENT from TEXT: "NAME", "NAME:COUNT" for samples that stand for COUNT events, or "NAME@HZ"
 * for HZ samples per second, if its source takes a rate.  NULL, or an error message that the caller
 * frees. */
char *event__parse(const char *text, struct event *event);

/* The event NAME, which there must be, as it is by default. */
struct event event__named(const char *name);

/* Settles the periods and rates of the COUNT EVENTS.  Those without their own take PERIOD, if it is
 * not 0 and they are counted, or otherwise *RATE_HZ, if they are sampled at a rate.  A clock with a
 * rate of its own sets *RATE_HZ, unless RATE_CHOSEN says that the user chose another one.  NULL, or
 * an error message that the caller frees. */
char *events__settle(struct event *events, uint32_t count, uint64_t period, double *rate_hz,
		     bool rate_chosen);

/* The name of the event that NAME is another name of, or NAME. */
const char *event__canonical(const char *name);

/* TEXT as a number from 1 to MOST; 0: it is none. */
uint64_t event__number(const char *text, uint64_t most);

/* The most events that one sample can stand for. */
#define EVENT_PERIOD_MAX 1000000000000ULL

/* Finds on this machine what the COUNT EVENTS name for USERS.  NULL, or an error message that the
 * caller frees. */
char *events__resolve(struct event *events, uint32_t count, const struct event_users *users);

/* Whether one of the COUNT EVENTS samples only processes that enter. */
bool events__enter(const struct event *events, uint32_t count);

/* Whether one of the COUNT EVENTS needs to know the kernel's code for interrupts. */
bool events__may_interrupt(const struct event *events, uint32_t count);

/* The CPU clock, which is sampled if no event is chosen. */
struct event event__default(void);

/* Sets the COUNT EVENTS as those of PROFILE.  Does not copy their names. */
void events__name(const struct event *events, uint32_t count, struct profile *profile);

#endif
