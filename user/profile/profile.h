/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile: what every output reads, and nothing else.
 *
 * Strings, functions, locations, threads and stacks are held once each and
 * named by index, from 0.  Strings are valid UTF-8 without NUL bytes, whatever
 * bytes a target held; they may hold any other character.
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

/* A function is the same by all but its file's shorter names. */
struct profile_function {
	uint64_t apart;	     /* not 0: what tells it from others that are the same but for that */
	string_id name;	     /* qualname where there is one; a reason's text */
	string_id filename;  /* as the code object has it; 0 where there is none */
	uint32_t first_line; /* 0: unknown */
	enum frame_kind kind;
	uint32_t nameless;	  /* a code object's whose name says why it is not known */
	uint32_t of_interpreter;  /* machine code of the interpreter's own file: no extension's */
	string_id short_filename; /* from the package down: "json/decoder.py"; the longest known */
	string_id shown_filename; /* the same, or longer: profile__tell_files_apart() */
};

/* A part of a file of machine code.  Its addresses are as the file numbers them, and so the same in
 * all processes: START is where the part's byte at OFFSET of the file is. */
struct profile_mapping {
	uint64_t start, limit, offset;
	string_id file, build_id; /* its path; its GNU build ID in hex, 0: it has none */
};

struct profile_location {
	uint64_t address; /* of machine code, in MAPPING's numbers; else 0 */
	uint32_t function;
	uint32_t line;	  /* 0: unknown or not wanted */
	uint32_t mapping; /* 0: none */
};

/* Of what is not known the string is 0, and the start. */
struct profile_process {
	uint64_t serial; /* of this process alone; a pid is used again */
	uint32_t pid;
	string_id command;	  /* the command line, words joined by a space */
	string_id short_name;	  /* what it runs: "worker.py", "gunicorn" */
	string_id comm;		  /* the kernel's name for it */
	string_id service_name;	  /* what its environment calls it: identity.h */
	string_id python_version; /* "3.11.7" */
	string_id user;
	string_id cgroup;	/* its path, from the hierarchy's root */
	string_id container_id; /* whole, without its runtime's name */
	string_id pod_uid;
	string_id pod_name; /* "namespace/pod", where labels tell */
	string_id unit;	    /* systemd's: "nginx.service" */
	int64_t start_unix_ns;
	uint32_t first_label, label_count; /* of one that is a set of labels: service.h */
};

struct profile_label {
	string_id name, value;
};

struct profile_thread {
	uint32_t process;
	uint32_t tid;
	uint64_t start; /* in the kernel's time, to tell it from another with its TID; or 0 */
	string_id name;
	bool named; /* by Python: not the kernel's name */
};

struct profile_stack {
	const uint32_t *locations; /* leaf first */
	uint32_t depth;
};

/* What was sampled.  The clock is sampled at the profile's rate; of all others a sample stands for
 * PERIOD events. */
struct profile_event {
	const char *name, *unit; /* "page-faults", "count"; not the profile's own */
	uint64_t period;	 /* 0: the clock */
};

static inline void amount__add(struct amount *sum, struct amount more)
{
	sum->count += more.count;
	sum->value += more.value;
}

/* What a thread was seen with a stack by an event.  One sample for each triple. */
struct profile_sample {
	uint32_t thread;
	uint32_t stack;
	uint32_t event;
	struct amount amount;
};

struct profile {
	/* What was asked for, and when. */
	double rate_hz;
	int64_t start_unix_ns;
	int64_t duration_ns;
	struct profile_event events[EVENTS_MAX];
	uint32_t event_count; /* one at least */
	/* Of each event; the first one's has what is of the whole run, too. */
	struct ledger ledgers[EVENTS_MAX];

	const char **strings;
	struct profile_function *functions;
	struct profile_mapping *mappings; /* the first one stands for none */
	struct profile_location *locations;
	struct profile_process *processes;
	struct profile_label *labels; /* those of a process side by side */
	struct profile_thread *threads;
	struct profile_stack *stacks;
	struct profile_sample *samples;
	size_t string_count, function_count, mapping_count, location_count, process_count;
	size_t thread_count, stack_count, sample_count, label_count;

	struct profile_index *index; /* of profile.c alone */
};

/* An empty profile; free with profile__free, which takes NULL too. */
struct profile *profile__new(void);
void profile__free(struct profile *profile);

/* Each returns the index of the one entry with these values, adding it if it is new.
 * profile__string copies; bytes that are not UTF-8 become \xNN, as Python's backslashreplace.
 * profile__line is a location without machine code.  A function without a name gets "<unnamed>".  A
 * stack has one location at least.  A process is the one that the caller gave SERIAL; what else is
 * known of it, the caller enters. */
string_id profile__string(struct profile *profile, const char *string);
uint32_t profile__function(struct profile *profile, const struct profile_function *function);
uint32_t profile__mapping(struct profile *profile, const struct profile_mapping *mapping);
uint32_t profile__location(struct profile *profile, const struct profile_location *location);
uint32_t profile__line(struct profile *profile, uint32_t function, uint32_t line);
uint32_t profile__process(struct profile *profile, uint64_t serial, uint32_t pid);
uint32_t profile__thread(struct profile *profile, uint32_t process, uint32_t tid, uint64_t start);
uint32_t profile__stack(struct profile *profile, const uint32_t *locations, uint32_t depth);

/* Adds a label to PROCESS, the one that was added last. */
void profile__label(struct profile *profile, uint32_t process, const char *name, const char *value);

/* Whether STACK has a function whose name is not known. */
bool profile__lacks_names(const struct profile *profile, uint32_t stack);

/* Whether profile__thread would find that thread, and profile__stack that stack. */
bool profile__has_thread(const struct profile *profile, uint32_t process, uint32_t tid,
			 uint64_t start);
bool profile__has_stack(const struct profile *profile, const uint32_t *locations, uint32_t depth);

/* Adds AMOUNT to the sample of THREAD and STACK by EVENT. */
void profile__add(struct profile *profile, uint32_t thread, uint32_t stack, uint32_t event,
		  struct amount amount);

/* Removes all samples, and nothing else. */
void profile__clear_samples(struct profile *profile);

/* Moves all that PROFILE holds to a profile that the caller frees, with the same numbers.  What was
 * asked for and the ledger stay; all tables begin anew. */
struct profile *profile__retire(struct profile *profile);

/* Has each file shown by a name that no other file of the profile has: its short one, with as many
 * folders before it as that takes.  Functions that are added later have their short one. */
void profile__tell_files_apart(struct profile *profile);

/* Makes one of all functions that are the same but for what told them apart, or have become the
 * same by their names.  Nothing is to be added any more. */
void profile__merge_functions(struct profile *profile);

/* How many strings, functions, mappings, locations, processes, threads and stacks it holds. */
size_t profile__entries(const struct profile *profile);

/* What one sample of EVENT stands for; of the clock at the profile's rate. */
uint64_t profile__period(const struct profile *profile, uint32_t event);

/* What SAMPLE is shown as where one number is: of the clock samples at the profile's rate, it may
 * have fewer where its process was sampled at a lower one; of others its value. */
uint64_t profile__weight(const struct profile *profile, const struct profile_sample *sample);

/* A function's samples: SELF with it as the leaf, TOTAL with it anywhere (once a stack). */
struct function_total {
	uint32_t function;
	uint64_t self, total;
};

/* All functions with their totals, hottest first (by self, then by total); the caller frees. HIDDEN
 * has the bits 1 << KIND of the frames that do not count: what they did, their callers did. */
struct function_total *profile__totals(const struct profile *profile, unsigned int hidden,
				       size_t *count);

#endif
