/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile: the input of every output.
 *
 * Strings, functions, locations, threads and stacks are stored once each, and are referred to by
 * index, from 0.  Strings are valid UTF-8 without NUL, whatever bytes a target has, but may contain
 * any other character.
 */
#ifndef PYBPFPROF_PROFILE_H
#define PYBPFPROF_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/ledger.h"
#include "pybpfprof.h"

/* String 0 is "". */
typedef uint32_t string_id;

/* Functions are equal if all fields but the shorter file names are. */
struct profile_function {
	uint64_t apart;	     /* tells apart functions that are otherwise equal, or 0 */
	string_id name;	     /* qualname if there is one; a reason's text */
	string_id filename;  /* of the code object; 0: none */
	uint32_t first_line; /* 0: unknown */
	enum frame_kind kind;
	uint32_t nameless;	  /* the name is unknown, and says why */
	uint32_t of_interpreter;  /* machine code of the interpreter's own file, not of an extension
				   */
	string_id short_filename; /* from the package on: "json/decoder.py"; the longest that is
				     known */
	string_id shown_filename; /* the same or longer; see profile__tell_files_apart() */
};

/* A mapped part of a file of machine code, by the addresses in the file, which are the same in all
 * processes: START is the address of the byte at OFFSET. */
struct profile_mapping {
	uint64_t start, limit, offset;
	string_id file, build_id; /* path; GNU build ID in hex, or 0 */
};

struct profile_location {
	uint64_t address; /* of machine code, as MAPPING counts; otherwise 0 */
	uint32_t function;
	uint32_t line;	  /* 0: unknown or not wanted */
	uint32_t mapping; /* 0: none */
};

/* Unknown strings are 0, and so is an unknown start. */
struct profile_process {
	uint64_t serial; /* unique, unlike the pid */
	uint32_t pid;
	string_id command;	  /* the command line, joined by spaces */
	string_id short_name;	  /* the program: "worker.py", "gunicorn" */
	string_id comm;		  /* the kernel's name of it */
	string_id service_name;	  /* from its environment: identity.h */
	string_id python_version; /* "3.11.7" */
	string_id user;
	string_id cgroup;	/* path from the root of the hierarchy */
	string_id container_id; /* complete, without the runtime's name */
	string_id pod_uid;
	string_id pod_name; /* "namespace/pod", if labels say so */
	string_id unit;	    /* systemd unit: "nginx.service" */
	int64_t start_unix_ns;
	uint32_t first_label, label_count; /* if it stands for a label set: service.h */
};

struct profile_label {
	string_id name, value;
};

struct profile_thread {
	uint32_t process;
	uint32_t tid;
	uint64_t start; /* in the kernel's time, distinguishes threads with the same TID; or 0 */
	string_id name;
	bool named; /* by Python, not by the kernel */
};

struct profile_stack {
	const uint32_t *locations; /* leaf first */
	uint32_t depth;
};

/* An event.  The clock is sampled at the profile's rate; a sample of another event stands for
 * PERIOD of them. */
struct profile_event {
	const char *name, *unit; /* "page-faults", "count"; not owned by the profile */
	uint64_t period;	 /* 0: the clock */
	const char *meaning;	 /* of the value, if the name does not say it; else NULL */
};

static inline void amount__add(struct amount *sum, struct amount more)
{
	sum->count += more.count;
	sum->value += more.value;
}

/* The samples of a thread with a stack by an event; one entry for each triple. */
struct profile_sample {
	uint32_t thread;
	uint32_t stack;
	uint32_t event;
	struct amount amount;
};

struct profile {
	/* The request. */
	double rate_hz;
	int64_t start_unix_ns;
	int64_t duration_ns;
	struct profile_event events[EVENTS_MAX];
	uint32_t event_count; /* at least one */
	/* By event.  The first one's also covers the whole run. */
	struct ledger ledgers[EVENTS_MAX];

	const char **strings;
	struct profile_function *functions;
	struct profile_mapping *mappings; /* mapping 0 is none */
	struct profile_location *locations;
	struct profile_process *processes;
	struct profile_label *labels; /* those of a process are adjacent */
	struct profile_thread *threads;
	struct profile_stack *stacks;
	struct profile_sample *samples;
	size_t string_count, function_count, mapping_count, location_count, process_count;
	size_t thread_count, stack_count, sample_count, label_count;

	struct profile_index *index; /* private to profile.c */
};

/* An empty profile with one event, the clock; profile__free takes NULL too. */
struct profile *profile__new(void);
void profile__free(struct profile *profile);

/* Each returns the index of the entry with these values, which is added if it is new.
 * profile__string copies the string, and replaces bytes that are not UTF-8 by \xNN, as Python's
 * backslashreplace does.  profile__line adds a location without machine code.  A function without a
 * name is called "<unnamed>".  A stack has at least one location.  A process is identified by
 * SERIAL; the caller sets its other fields. */
string_id profile__string(struct profile *profile, const char *string);
uint32_t profile__function(struct profile *profile, const struct profile_function *function);
uint32_t profile__mapping(struct profile *profile, const struct profile_mapping *mapping);
uint32_t profile__location(struct profile *profile, const struct profile_location *location);
uint32_t profile__line(struct profile *profile, uint32_t function, uint32_t line);
uint32_t profile__process(struct profile *profile, uint64_t serial, uint32_t pid);
uint32_t profile__thread(struct profile *profile, uint32_t process, uint32_t tid, uint64_t start);
uint32_t profile__stack(struct profile *profile, const uint32_t *locations, uint32_t depth);

/* Adds a label to PROCESS, which must be the last one added. */
void profile__label(struct profile *profile, uint32_t process, const char *name, const char *value);

/* Whether the name of a function in STACK is unknown. */
bool profile__lacks_names(const struct profile *profile, uint32_t stack);

/* Whether that thread or stack exists. */
bool profile__has_thread(const struct profile *profile, uint32_t process, uint32_t tid,
			 uint64_t start);
bool profile__has_stack(const struct profile *profile, const uint32_t *locations, uint32_t depth);

/* Adds AMOUNT to the sample of THREAD and STACK by EVENT. */
void profile__add(struct profile *profile, uint32_t thread, uint32_t stack, uint32_t event,
		  struct amount amount);

/* Removes all samples, and nothing else. */
void profile__clear_samples(struct profile *profile);

/* Moves the contents of PROFILE to a new profile with the same indices, which the caller frees.
 * PROFILE keeps its request and ledgers, and starts with empty tables. */
struct profile *profile__retire(struct profile *profile);

/* Sets the shown name of each file to a unique one: its short name, with as many folders before it
 * as needed.  Functions that are added later get their short name. */
void profile__tell_files_apart(struct profile *profile);

/* Merges functions that are equal but for "apart", or that have become equal by their names.
 * Nothing may be added afterwards. */
void profile__merge_functions(struct profile *profile);

/* The number of strings, functions, mappings, locations, processes, threads and stacks. */
size_t profile__entries(const struct profile *profile);

/* The amount that a sample of EVENT stands for; for the clock at the profile's rate. */
uint64_t profile__period(const struct profile *profile, uint32_t event);

/* SAMPLE as a single number.  For the clock, samples at the profile's rate: their count may be
 * lower, if the process was sampled at a lower rate.  For other events the value. */
uint64_t profile__weight(const struct profile *profile, const struct profile_sample *sample);

/* The samples of a function: SELF as the leaf, TOTAL anywhere in the stack. */
struct function_total {
	uint32_t function;
	uint64_t self, total;
};

/* All functions with their totals, sorted by self, then by total, largest first; the caller frees
 * it.  HIDDEN has the bits 1 << KIND of frames to skip: their samples count for their callers. */
struct function_total *profile__totals(const struct profile *profile, unsigned int hidden,
				       size_t *count);

#endif
