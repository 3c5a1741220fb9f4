// SPDX-License-Identifier: BSD-2-Clause
/*
 * From 3.11 on, a code object has its qualified name.  Before that, only the function object has
 * it, and a frame does not lead to its function.  The type of a frame's first argument would only
 * be a guess at the class: it may be a subclass, and it costs reads in each sample.  But most
 * functions can be reached from the modules (function_search.c), and each points to its code
 * object.  So after new code objects were sampled, user space searches all functions once.
 * Sampling does not notice.
 *
 * function_object.c decides whether a function's name is its code's.  If several functions share a
 * code object, all must agree.  The process runs on meanwhile, so after each function the identity
 * of the code object is read again, which must be that of the samples.
 *
 * In the profile, a function is a bare name, a file and a line.  Several code objects may share
 * these: those of a reloaded module, or of several processes.  The function gets the qualified name
 * if all of them were found to have it.  If one was not found, or differs, the others are not
 * looked for.  A forked process has its parent's code objects, with the same addresses and
 * identities: a name found in one process holds in all of them.  Code without a name (<genexpr>) is
 * not looked for, as its name, file and line say nothing.
 *
 * Functions that a program makes while it runs (<string>) have no useful file and line either.
 * Each of their code objects is a function of its own in the profile, and is looked for in all
 * versions.
 *
 * A search that is cut short by the end of its process names nothing: the rest may have had the
 * same code under another name.  Such code does not count in its function's name either.
 *
 * In 2.7 no function knows its class.  Its name is the path that leads to it, if each part of the
 * path confirms it (function_object.c).  If two paths do, neither is taken.  The same holds for
 * nested functions, whose path would lack "<locals>".
 *
 * A function that is not found keeps its bare name, as nested ones do.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "naming/code_identity.h"
#include "naming/qualified_names.h"
#include "naming/thread_names.h"
#include "python/function_search.h"
#include "reading/reader.h"
#include "reading/target_memory.h"

/* A function that was not found may be in a module that was being loaded: it is looked for
 * again. */
#define SEARCHES 2

/* How long a search goes on at a time, while stacks wait; and at the end of a recording. */
#define STEP_NS	     20000000LL
#define LAST_STEP_NS 1000000000LL

/* Earlier than the time at which any search is due. */
#define NOTHING_IS_DUE (-1)

/* The pause between two searches of a process.  After each step, of any process, the pause is this
 * multiple of its duration: searches take a twentieth of a CPU. */
#define PAUSE_NS	 500000000LL
#define PAUSE_A_DURATION 20

/* Limits the remembered results. */
#define FOUND_MAX 16384

#define NEWS_NOT_LOOKED_AT UINT64_MAX

/* The result of a search for a code object. */
struct found {
	uint64_t address, identity; /* key */
	uint64_t family;	    /* of the process that it was last found in */
	char *qualified;	    /* NULL if not found */
	UT_hash_handle hh;
};

/* A code object that is looked for. */
struct wanted {
	uint64_t address; /* key */
	uint64_t identity;
	uint32_t function;
	unsigned int searches; /* including the one under way */
	char *name;	       /* co_name */
	bool generated;
	char *qualified; /* NULL if not found */
	bool contradictory;
	UT_hash_handle hh;
};

struct searched_process {
	uint64_t serial; /* key */
	pid_t pid;
	const struct target_process *target;
	struct wanted *wanted;
	struct function_search *search; /* NULL if none is under way */
	uint64_t missed;		/* reader__missed() when it began */
	uint64_t news;			/* of NAMES, when known results were last taken */
	int64_t due_ns;
	UT_hash_handle hh;
};

/* A function of the profile, and the name of its code objects. */
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
	struct found *found; /* found last comes last */
	uint64_t news;	     /* changes when leave_known() may find more */
	int64_t due_ns;	     /* when the next step is allowed */
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
	while (names->processes)
		forget_process(names, names->processes);
	HASH_EMPTY(names->functions, free);
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
	return HASH_GET(hh, names->processes, &target->key.serial);
}

/* Takes the qualified name if all code objects agree, otherwise the bare one. */
static void set_name(struct qualified_names *names, const struct shared_name *shared)
{
	bool agreed = shared->found && shared->found == shared->codes && !shared->is_bare;

	names->profile->functions[shared->function].name =
		agreed ? shared->qualified : shared->bare;
}

static struct shared_name *find_name(const struct qualified_names *names, uint32_t function)
{
	return HASH_GET(hh, names->functions, &function);
}

/* FUNCTION has one more code object. */
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

/* The result for the same code object, maybe in a process of its family; or NULL. */
static struct found *find_found(const struct qualified_names *names, const struct wanted *wanted)
{
	const struct found key = { .address = wanted->address, .identity = wanted->identity };
	struct found *found;

	HASH_FIND(hh, names->found, &key, FOUND_KEY_BYTES, found);
	return code_identity_is_whole(wanted->identity) ? found : NULL;
}

/* A process and all that it forked have the same code objects at the same addresses. */
static uint64_t family_of(const struct searched_process *process)
{
	return process->target->ancestor ? process->target->ancestor : process->serial;
}

/* Keeps the result for WANTED, whose name is NULL if it was not found. */
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

/* SHARED keeps its bare name. */
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

/* Whether the name of WANTED is known from another process.  That process must be of its family, or
 * its code object must be of the same function. */
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

/* Drops from the list what another process has found, and what cannot get a name. */
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

/* WANTED cannot be looked for any more.  If no search for it was completed, it does not count in
 * its function's name.  Otherwise that name stays bare. */
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
		wanted = HASH_GET(hh, process->wanted, &code->address);
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
	char *qualified = reader__lend(
		function_object__believed_name(reader, function, wanted->name, wanted->generated));

	if (qualified && code_identity__read(process->target, function->code) == wanted->identity) {
		wanted->contradictory |= wanted->qualified && strcmp(wanted->qualified, qualified);
		free(wanted->qualified);
		wanted->qualified = reader__take_back(qualified);
		qualified = NULL;
	}
	free(reader__take_back(qualified));
}

static void look_at_function(void *context, struct object_reader *reader,
			     const struct function_object *function)
{
	struct searched_process *process = context;
	struct wanted *wanted = HASH_GET(hh, process->wanted, &function->code);

	if (wanted && wanted->identity && wanted->searches)
		take_name(process, reader, function, wanted);
}

/* Discards the name. */
static void take_back(struct wanted *wanted)
{
	free(wanted->qualified);
	wanted->qualified = NULL;
	wanted->contradictory = false;
}

/* Takes the names that were found, and drops them and what was searched for often enough. */
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

	process->missed = reader__missed(process->pid);
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

/* Whether the memory of PROCESS is still there.  It goes before the end is reported; then a search
 * finds nothing more. */
static bool is_readable(const struct searched_process *process)
{
	uint64_t interpreters;

	return !target_memory__read_pointer(process->pid, process->target->runtime.interpreters,
					    &interpreters);
}

/* The process did not answer, or ended during the search.  The search does not count: the rest may
 * have had the same code under another name. */
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

/* Continues the search under way, or begins one if it is due. */
static void search_on(struct qualified_names *names, struct searched_process *process,
		      int64_t now_ns, int64_t *left_ns)
{
	bool due = now_ns == THREAD_NAMES_ALL || now_ns >= process->due_ns;
	int64_t before_ns = *left_ns;

	if (process->target->ended)
		return;
	if (process->search && reader__missed(process->pid) != process->missed)
		abandon(process);
	if (!reader__answers(process->pid))
		return;
	leave_known(names, process);
	if (process->search ? !due && now_ns != NOTHING_IS_DUE : !due || !process->wanted)
		return;
	if (!process->search)
		start(process);
	if (!function_search__go_on(process->search, left_ns)) {
		process->due_ns = now_ns + PAUSE_A_DURATION * (before_ns - *left_ns);
	} else if (is_readable(process)) {
		end(names, process, now_ns);
	} else {
		abandon(process);
		process->due_ns = now_ns + PAUSE_NS;
	}
}

/* Same for all processes in turn, for LEFT_NS.  Returns the time that is left. */
static int64_t search_all(struct qualified_names *names, int64_t now_ns, int64_t left_ns)
{
	unsigned int count = HASH_COUNT(names->processes);

	for (unsigned int i = 0; i < count && left_ns > 0; i++) {
		struct searched_process *process = names->processes;

		search_on(names, process, now_ns, &left_ns);
		/* Moves it to the end. */
		HASH_DEL(names->processes, process);
		HASH_ADD(hh, names->processes, serial, sizeof(process->serial), process);
	}
	return left_ns;
}

/* Same for one step, if it is due.  CPU time also has the walk through the lists; elapsed time also
 * has waits for swapped memory.  The longer one counts. */
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
	/* A search under way does not look for what came after its start. */
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
