// SPDX-License-Identifier: BSD-2-Clause
/*
 * From 3.11 on a code object knows its qualified name.  Before that only the function
 * object does, and a frame does not tell which that is.  To name the class by the type
 * of a frame's first argument would be a guess: that may be a subclass, and costs reads
 * in each sample.  But whose __code__ the code object is has a __qualname__, and most
 * functions can be reached from the modules (function_search.c).  So when code objects
 * were seen for the first time, user space goes through all functions once, and the
 * sampling knows nothing of it.
 *
 * When a function's name is believed to be its code's, believed_name.c tells.  Of several functions
 * with one code object all have to say the same.  The process runs on meanwhile, so after a
 * function the identity of the code object is read, which has to be that of the samples.
 *
 * The profile knows a function by its bare name, its file and its line, which several
 * code objects may share: those of a module that was loaded anew, say, or of several
 * processes.  It is given the qualified name when all of them were found to have that
 * one; where one was not found, or has another, no more are looked for.  A forked process has its
 * parent's code objects, at the same addresses and with the same identity: a name that is found
 * in one of these processes is the name in all of them.  Code without a name (<genexpr>) is not
 * looked for: name, file and line tell nothing there.
 *
 * They tell nothing either of functions that a program makes while it runs (<string>).  Each of
 * their code objects is a function of its own in the profile, and looked for in all versions.
 *
 * A search that its process's end cuts short names nothing: what it did not come to might have had
 * the same code under another name.  Nor has that code a say in its function's name then.
 *
 * In 2.7 no function knows in which class it was written: its name is the path that leads to it, of
 * which each part says so itself (function_owner.c).  Where two paths do, nothing is believed; nor
 * of what was written within a function, whose path would have no "<locals>".
 *
 * What is not found keeps its bare name: a function within a function.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "naming/believed_name.h"
#include "naming/code_identity.h"
#include "naming/qualified_names.h"
#include "naming/thread_names.h"
#include "python/function_search.h"
#include "reading/deputy.h"

/* What was not found may be in a module that was just being loaded: it is looked for again. */
#define SEARCHES 2

/* A search goes on for this long at a time, for stacks wait meanwhile; at the end of a recording it
 * comes to its own. */
#define STEP_NS	     20000000LL
#define LAST_STEP_NS 1000000000LL

/* Before any moment at which a search is due. */
#define NOTHING_IS_DUE (-1)

/* Between two searches of a process; and after each step, of any, so much that searching takes a
 * twentieth of a core. */
#define PAUSE_NS	 500000000LL
#define PAUSE_A_DURATION 20

/* So many that were found are remembered. */
#define FOUND_MAX 16384

#define NEWS_NOT_LOOKED_AT UINT64_MAX

/* A code object that was found, or looked for in vain. */
struct found {
	uint64_t address, identity; /* key */
	uint64_t family;	    /* of the process that it was found in last */
	char *qualified;	    /* NULL: in vain */
	UT_hash_handle hh;
};

/* A code object that is looked for. */
struct wanted {
	uint64_t address; /* key */
	uint64_t identity;
	uint32_t function;
	unsigned int searches; /* in which it was looked for, the current one included */
	char *name;	       /* co_name */
	bool generated;
	char *qualified; /* NULL: not found */
	bool contradictory;
	UT_hash_handle hh;
};

struct searched_process {
	uint64_t serial; /* key */
	pid_t pid;
	const struct target_process *target;
	struct wanted *wanted;
	struct function_search *search; /* NULL: none is under way */
	uint64_t missed;		/* of what deputy.h counts, when it began */
	uint64_t news;			/* when it was looked what is known */
	int64_t due_ns;
	UT_hash_handle hh;
};

/* A function of the profile, and what its code objects are called. */
struct shared_name {
	uint32_t function; /* key */
	bool is_bare;	   /* for good */
	string_id bare, qualified;
	uint64_t codes, found;
	UT_hash_handle hh;
};

struct qualified_names {
	struct profile *profile;
	struct searched_process *processes;
	struct shared_name *functions;
	struct found *found; /* the one that was found last at the end */
	uint64_t news;	     /* what was found, and what is not to be, so far */
	int64_t due_ns;	     /* when searching may go on */
};

struct qualified_names *qualified_names__new(struct profile *profile)
{
	struct qualified_names *names = xcalloc(1, sizeof(*names));

	names->profile = profile;
	return names;
}

static void forget(struct searched_process *process, struct wanted *wanted)
{
	HASH_DEL(process->wanted, wanted);
	free(wanted->qualified);
	free(wanted->name);
	free(wanted);
}

static void forget_process(struct qualified_names *names, struct searched_process *process)
{
	while (process->wanted)
		forget(process, process->wanted);
	function_search__free(process->search);
	HASH_DEL(names->processes, process);
	free(process);
}

static void forget_found(struct qualified_names *names, struct found *found)
{
	HASH_DEL(names->found, found);
	free(found->qualified);
	free(found);
}

void qualified_names__begin_anew(struct qualified_names *names)
{
	struct shared_name *function, *next;

	while (names->processes)
		forget_process(names, names->processes);
	HASH_ITER (hh, names->functions, function, next) {
		HASH_DEL(names->functions, function);
		free(function);
	}
}

void qualified_names__free(struct qualified_names *names)
{
	if (!names)
		return;
	qualified_names__begin_anew(names);
	while (names->found)
		forget_found(names, names->found);
	free(names);
}

static struct searched_process *find_process(const struct qualified_names *names,
					     const struct target_process *target)
{
	struct searched_process *process;

	HASH_FIND(hh, names->processes, &target->key.serial, sizeof(uint64_t), process);
	return process;
}

/* Gives the function the name that all its code objects have; else it has the bare one. */
static void set_name(struct qualified_names *names, const struct shared_name *shared)
{
	bool agreed = shared->found && shared->found == shared->codes && !shared->is_bare;

	names->profile->functions[shared->function].name =
		agreed ? shared->qualified : shared->bare;
}

static struct shared_name *find_name(const struct qualified_names *names, uint32_t function)
{
	struct shared_name *shared;

	HASH_FIND(hh, names->functions, &function, sizeof(function), shared);
	return shared;
}

/* One more code object of FUNCTION. */
static void add_code(struct qualified_names *names, uint32_t function)
{
	struct shared_name *shared = find_name(names, function);

	if (!shared) {
		shared = xcalloc(1, sizeof(*shared));
		shared->function = function;
		shared->bare = names->profile->functions[function].name;
		HASH_ADD(hh, names->functions, function, sizeof(shared->function), shared);
	}
	shared->codes++;
	set_name(names, shared);
}

#define FOUND_KEY_BYTES offsetof(struct found, family)

/* What was found of that code object, or of the one that it was forked from; or NULL. */
static struct found *find_found(const struct qualified_names *names, const struct wanted *wanted)
{
	const struct found key = { .address = wanted->address, .identity = wanted->identity };
	struct found *found;

	HASH_FIND(hh, names->found, &key, FOUND_KEY_BYTES, found);
	return code_identity_is_whole(wanted->identity) ? found : NULL;
}

/* Processes of one family have the same code objects at the same addresses. */
static uint64_t family_of(const struct searched_process *process)
{
	return process->target->ancestor ? process->target->ancestor : process->serial;
}

/* Takes note of what WANTED was found to be called, NULL: it was not found. */
static void remember(struct qualified_names *names, const struct searched_process *process,
		     const struct wanted *wanted)
{
	struct found *found = find_found(names, wanted);

	if (!code_identity_is_whole(wanted->identity) ||
	    (found && found->qualified && !wanted->qualified))
		return;
	if (!found) {
		found = xcalloc(1, sizeof(*found));
		found->address = wanted->address;
		found->identity = wanted->identity;
		HASH_ADD(hh, names->found, address, FOUND_KEY_BYTES, found);
		names->news++;
	}
	found->family = family_of(process);
	free(found->qualified);
	found->qualified = wanted->qualified ? xstrdup(wanted->qualified) : NULL;
	if (HASH_COUNT(names->found) > FOUND_MAX)
		forget_found(names, names->found);
}

/* SHARED's name is the bare one, for good. */
static void leave_bare(struct qualified_names *names, struct shared_name *shared)
{
	names->news += !shared->is_bare;
	shared->is_bare = true;
}

static void add_name(struct qualified_names *names, const struct searched_process *process,
		     const struct wanted *wanted)
{
	string_id name = profile__string(names->profile, wanted->qualified);
	struct shared_name *shared = find_name(names, wanted->function);

	if (shared->found && shared->qualified != name)
		leave_bare(names, shared);
	shared->qualified = name;
	shared->found++;
	set_name(names, shared);
	remember(names, process, wanted);
}

/* Whether another process tells the name of WANTED: one of those whose code makes up that function,
 * or a forgotten one of its own family. */
static bool take_known(struct qualified_names *names, const struct searched_process *process,
		       const struct wanted *wanted, struct shared_name *shared)
{
	const struct found *found = find_found(names, wanted);

	if (!found ||
	    (found->family != family_of(process) && (!shared->found || !found->qualified)))
		return false;
	if (!found->qualified)
		leave_bare(names, shared);
	else if (!shared->found++)
		shared->qualified = profile__string(names->profile, found->qualified);
	return true;
}

/* Takes off the list what is known from another process, or would be of no use. */
static void leave_known(struct qualified_names *names, struct searched_process *process)
{
	struct wanted *wanted, *next;

	if (process->search || process->news == names->news)
		return;
	process->news = names->news;
	HASH_ITER (hh, process->wanted, wanted, next) {
		struct shared_name *shared = find_name(names, wanted->function);
		bool known = take_known(names, process, wanted, shared);

		set_name(names, shared);
		if (known || shared->is_bare)
			forget(process, wanted);
	}
}

/* Nobody can look for WANTED any more.  Where no search has come to its end, it has no say in its
 * function's name; else that is bare, for good. */
static void give_up(struct qualified_names *names, struct searched_process *process,
		    struct wanted *wanted)
{
	struct shared_name *shared = find_name(names, wanted->function);

	if (wanted->searches <= !!process->search)
		shared->codes--;
	else
		leave_bare(names, shared);
	set_name(names, shared);
	forget(process, wanted);
}

/* Whether the name of CODE is one that has to be looked for. */
static bool has_bare_name(const struct target_process *target, const struct code *code)
{
	return target->runtime.offsets.code_qualname == OFFSET_ABSENT && *code->name != '<' &&
	       *code->filename != '<';
}

void qualified_names__want(struct qualified_names *names, const struct target_process *target,
			   const struct known_code *code)
{
	struct searched_process *process = find_process(names, target);
	bool generated = names->profile->functions[code->function].apart;
	struct wanted *wanted;

	if (!code->code.name || (!generated && !has_bare_name(target, &code->code)))
		return;
	if (process) {
		HASH_FIND(hh, process->wanted, &code->address, sizeof(code->address), wanted);
		if (wanted)
			give_up(names, process, wanted);
	} else {
		process = xcalloc(1, sizeof(*process));
		process->serial = target->key.serial;
		process->pid = target->process.pid;
		process->target = target;
		HASH_ADD(hh, names->processes, serial, sizeof(process->serial), process);
	}
	wanted = xcalloc(1, sizeof(*wanted));
	wanted->address = code->address;
	wanted->identity = code->identity;
	wanted->function = code->function;
	wanted->name = xstrdup(code->code.name);
	wanted->generated = generated;
	HASH_ADD(hh, process->wanted, address, sizeof(wanted->address), wanted);
	add_code(names, code->function);
	process->news = NEWS_NOT_LOOKED_AT;
}

static void take_name(const struct searched_process *process, struct object_reader *reader,
		      const struct function_object *function, struct wanted *wanted)
{
	char *qualified = deputy__lend(believed_name__of(process->target, reader, function,
							 wanted->name, wanted->generated));

	if (qualified && code_identity__read(process->target, function->code) == wanted->identity) {
		wanted->contradictory |= wanted->qualified && strcmp(wanted->qualified, qualified);
		free(wanted->qualified);
		wanted->qualified = deputy__take_back(qualified);
		qualified = NULL;
	}
	free(deputy__take_back(qualified));
}

static void look_at_function(void *context, struct object_reader *reader,
			     const struct function_object *function)
{
	struct searched_process *process = context;
	struct wanted *wanted;

	HASH_FIND(hh, process->wanted, &function->code, sizeof(function->code), wanted);
	if (wanted && wanted->identity && wanted->searches)
		take_name(process, reader, function, wanted);
}

/* What was found is not believed. */
static void take_back(struct wanted *wanted)
{
	free(wanted->qualified);
	wanted->qualified = NULL;
	wanted->contradictory = false;
}

/* Takes the names that were found, and what is not to be looked for again off the list. */
static void settle(struct qualified_names *names, struct searched_process *process)
{
	bool cut = function_search__extent(process->search)->cut;
	struct wanted *wanted, *next;

	HASH_ITER (hh, process->wanted, wanted, next) {
		if (wanted->contradictory || cut)
			take_back(wanted);
		if (wanted->qualified) {
			add_name(names, process, wanted);
			forget(process, wanted);
		} else if (wanted->searches == SEARCHES) {
			remember(names, process, wanted);
			give_up(names, process, wanted);
		}
	}
}

static void start(struct searched_process *process)
{
	const struct runtime *runtime = &process->target->runtime;

	process->missed = deputy__missed(process->pid);
	process->search = function_search__new(process->pid, &runtime->offsets,
					       runtime->interpreters, look_at_function, process);
	for (struct wanted *wanted = process->wanted; wanted; wanted = wanted->hh.next)
		wanted->searches++;
}

static void end(struct qualified_names *names, struct searched_process *process, int64_t now_ns)
{
	const struct function_search_extent *extent = function_search__extent(process->search);
	unsigned int wanted = HASH_COUNT(process->wanted);

	settle(names, process);
	log__debug("process %d: looked for %u qualified names, in %llu classes, at %llu objects%s, "
		   "for %.1f ms; %u are still wanted",
		   process->pid, wanted, (unsigned long long)extent->classes,
		   (unsigned long long)extent->objects, extent->cut ? ", and not all" : "",
		   extent->duration_ns / 1e6, HASH_COUNT(process->wanted));
	process->due_ns = now_ns + PAUSE_NS + PAUSE_A_DURATION * extent->duration_ns;
	function_search__free(process->search);
	process->search = NULL;
}

/* Its process did not answer once.  The search was left amid a step, and does not count: what it
 * would have come to might have had the same code under another name. */
static void abandon(struct searched_process *process)
{
	struct wanted *wanted;

	for (wanted = process->wanted; wanted; wanted = wanted->hh.next) {
		wanted->searches -= wanted->searches > 0;
		take_back(wanted);
	}
	function_search__free(process->search);
	process->search = NULL;
}

/* Goes on with the search that is under way, or with a new one, where that is due. */
static void search_on(struct qualified_names *names, struct searched_process *process,
		      int64_t now_ns, int64_t *left_ns)
{
	bool due = now_ns == THREAD_NAMES_ALL || now_ns >= process->due_ns;
	int64_t before_ns = *left_ns;

	if (process->target->ended)
		return;
	if (process->search && deputy__missed(process->pid) != process->missed)
		abandon(process);
	if (!deputy__answers(process->pid))
		return;
	leave_known(names, process);
	if (process->search ? !due && now_ns != NOTHING_IS_DUE : !due || !process->wanted)
		return;
	if (!process->search)
		start(process);
	if (function_search__go_on(process->search, left_ns))
		end(names, process, now_ns);
	else
		process->due_ns = now_ns + PAUSE_A_DURATION * (before_ns - *left_ns);
}

/* The same for all processes, in turn, for LEFT_NS; returns how much of that is left. */
static int64_t search_all(struct qualified_names *names, int64_t now_ns, int64_t left_ns)
{
	unsigned int count = HASH_COUNT(names->processes);

	for (unsigned int i = 0; i < count && left_ns > 0; i++) {
		struct searched_process *process = names->processes;

		search_on(names, process, now_ns, &left_ns);
		/* To the end of the row. */
		HASH_DEL(names->processes, process);
		HASH_ADD(hh, names->processes, serial, sizeof(process->serial), process);
	}
	return left_ns;
}

/* The same for a moment, where that is due.  What goes through the lists takes time of its own; and
 * reading what is swapped out takes time, but hardly of this CPU. */
static void search_in_passing(struct qualified_names *names, int64_t now_ns)
{
	int64_t begin_ns, used_ns, passed_ns;

	if (now_ns < names->due_ns)
		return;
	begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	passed_ns = STEP_NS - search_all(names, now_ns, STEP_NS);
	used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	names->due_ns = now_ns + PAUSE_A_DURATION * (used_ns > passed_ns ? used_ns : passed_ns);
}

void qualified_names__read(struct qualified_names *names, int64_t now_ns)
{
	struct searched_process *process;

	if (now_ns != THREAD_NAMES_ALL) {
		search_in_passing(names, now_ns);
		return;
	}
	/* A search that is under way is not for what came since. */
	search_all(names, NOTHING_IS_DUE, LAST_STEP_NS);
	search_all(names, now_ns, LAST_STEP_NS);
	for (process = names->processes; process; process = process->hh.next)
		leave_known(names, process);
}

bool qualified_names__are_all_found(const struct qualified_names *names)
{
	return !names->processes;
}

void qualified_names__forget(struct qualified_names *names, const struct target_process *target)
{
	struct searched_process *process = find_process(names, target);

	if (!process)
		return;
	while (process->wanted)
		give_up(names, process, process->wanted);
	forget_process(names, process);
}
