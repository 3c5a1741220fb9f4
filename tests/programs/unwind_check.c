// SPDX-License-Identifier: BSD-2-Clause
/*
 * unwind_check PID STOPS SEED
 *
 * Stops random threads of process PID at random places, STOPS times, and unwinds their native
 * stacks twice: with the BPF program's walk on rows from user/unwind/, and with elfutils' libdwfl,
 * which reads the same files independently.  No thread may start or end meanwhile, and no file
 * may be mapped.
 *
 * Prints one line of JSON: `stops`; `frames` of all stacks; the numbers of `equal`, `shorter`,
 * `longer` and `different` stacks by the walk's outcome (a shorter stack is the leaf end of
 * libdwfl's, a longer one contains libdwfl's at its leaf end); and `differences`, the first ones
 * described, without shorter stacks that end in code without unwind data.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <elfutils/libdwfl.h>

#include "base/now.h"
#include "base/xalloc.h"
#include "unwind/unwinder.h"
#include "unwinding.h"

#define THREADS_MAX 256
#define SHOWN	    10

/* The most time between two stops, and the interval of checks for signals, in microseconds. */
#define RUNS_US 1500
#define WAIT_US 20

/* The memory limit of rows and tables. */
#define MEMORY_BYTES (512UL << 20)

enum comparison { EQUAL, SHORTER, LONGER, DIFFERENT, COMPARISONS };

static const char *const comparisons[] = { "equal", "shorter", "longer", "different" };

static const char *const outcomes[] = {
#define X(id, name, text) name,
	NATIVE_OUTCOMES(X)
#undef X
};

/* libdwfl's stack: the program counters, leaf first. */
struct their_stack {
	Dwarf_Addr frames[NATIVE_FRAMES_MAX];
	size_t depth;
};

static pid_t target;
static size_t counts[COMPARISONS][NATIVE_OUTCOME_COUNT];

static void give_up(const char *what)
{
	fprintf(stderr, "unwind_check: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Replacements of libbpf's functions: maps are those of unwinding.c, and chunks are memfds. */

int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_bytes, __u32 value_bytes,
		   __u32 entries, const struct bpf_map_create_opts *options)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	(void)type;
	(void)key_bytes;
	(void)options;
	if (fd < 0 || ftruncate(fd, (off_t)value_bytes * entries))
		give_up("no memory for a chunk");
	return fd;
}

/* Lookups find nothing: the walk here learns nothing. */
int bpf_map_lookup_elem(int map, const void *key, void *value)
{
	(void)map;
	(void)key;
	(void)value;
	return -1;
}

int bpf_map_update_elem(int map, const void *key, const void *value, __u64 flags)
{
	void *chunk;

	(void)flags;
	if (map == UNWINDING_CHUNKS) {
		chunk = mmap(NULL, CHUNK_SIZE, PROT_READ, MAP_SHARED, *(const int *)value, 0);
		if (chunk == MAP_FAILED)
			give_up("no chunk");
		value = &chunk;
	}
	if (unwinding__put(map, key, value))
		return 0;
	errno = E2BIG;
	return -1;
}

/* The caller frees the result with unwinder__free. */
static struct unwinder *make_rows(void)
{
	const struct unwinder_maps maps = { .chunks = UNWINDING_CHUNKS,
					    .files = UNWINDING_FILES,
					    .rules = UNWINDING_RULES,
					    .tables = UNWINDING_TABLES };
	struct unwinder *unwinder = unwinder__new(&maps, MEMORY_BYTES);

	unwinder__add(unwinder, 1, target, 0, 0, true);
	while (unwinder__work(unwinder, now_ns()) <= now_ns())
		;
	return unwinder;
}

/* Opens files below the target's root, which may not be this process's. */
static int find_file(Dwfl_Module *module, void **context, const char *name, Dwarf_Addr base,
		     char **file_name, Elf **elf)
{
	char *path;
	int fd;

	if (name[0] != '/')
		return dwfl_linux_proc_find_elf(module, context, name, base, file_name, elf);
	path = xasprintf("/proc/%d/root%s", target, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		*file_name = path;
	else
		free(path);
	return fd;
}

/* Separate debug files are not needed. */
static int find_no_debug_file(Dwfl_Module *module, void **context, const char *name,
			      Dwarf_Addr base, const char *file_name, const char *link,
			      GElf_Word checksum, char **debug_name)
{
	(void)module, (void)context, (void)name, (void)base;
	(void)file_name, (void)link, (void)checksum, (void)debug_name;
	return -1;
}

/* Reports the target's mappings to libdwfl.  Its own function mistakes a second mapping of part
 * of a file, such as libffi makes, for the beginning of the file. */
static void report_files(Dwfl *dwfl)
{
	char *path = xasprintf("/proc/%d/maps", target), *line = NULL, *name = NULL;
	unsigned long start, end, offset, first = 0, limit = 0, last = 0;
	FILE *maps = fopen(path, "r");
	size_t capacity = 0;
	int at;

	if (!maps)
		give_up(path);
	while (getline(&line, &capacity, maps) > 0) {
		at = 0;
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %n", &start, &end, &offset, &at) != 3 ||
		    (line[at] != '/' && strcmp(line + at, "[vdso]")))
			continue;
		if (!offset) {
			if (name)
				dwfl_report_module(dwfl, name, first, limit);
			free(name);
			name = line[at] == '/' ? xstrdup(line + at)
					       : xasprintf("[vdso: %d]", target);
			first = start;
		} else if (!name || strcmp(name, line + at) || offset <= last) {
			continue;
		}
		limit = end;
		last = offset;
	}
	if (name)
		dwfl_report_module(dwfl, name, first, limit);
	free(name);
	free(line);
	free(path);
	fclose(maps);
}

static Dwfl *begin_dwfl(void)
{
	static const Dwfl_Callbacks callbacks = { .find_elf = find_file,
						  .find_debuginfo = find_no_debug_file };
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (dwfl)
		report_files(dwfl);
	if (!dwfl || dwfl_report_end(dwfl, NULL, NULL) ||
	    dwfl_linux_proc_attach(dwfl, target, true)) {
		fprintf(stderr, "unwind_check: libdwfl: %s\n", dwfl_errmsg(-1));
		exit(1);
	}
	return dwfl;
}

static int take_frame(Dwfl_Frame *frame, void *context)
{
	struct their_stack *stack = context;

	if (stack->depth == NATIVE_FRAMES_MAX ||
	    !dwfl_frame_pc(frame, &stack->frames[stack->depth], NULL))
		return DWARF_CB_ABORT;
	stack->depth++;
	return DWARF_CB_OK;
}

/* Attaches to all threads. Returns their number. */
static size_t seize(pid_t threads[THREADS_MAX])
{
	char *path = xasprintf("/proc/%d/task", target);
	DIR *folder = opendir(path);
	struct dirent *entry;
	size_t count = 0;

	if (!folder)
		give_up(path);
	while ((entry = readdir(folder)) && count < THREADS_MAX) {
		pid_t tid = atoi(entry->d_name);

		if (!tid)
			continue;
		if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
			give_up("a thread cannot be traced");
		threads[count++] = tid;
	}
	closedir(folder);
	free(path);
	return count;
}

static void go_on(pid_t tid, int number)
{
	if (ptrace(PTRACE_CONT, tid, NULL, number))
		give_up("a thread cannot go on");
}

/* Lets all threads run for a time. A thread that gets a signal stops until it is delivered here. */
static void run(unsigned int microseconds)
{
	int64_t end_ns = now_ns() + microseconds * 1000LL;
	int status;

	while (now_ns() < end_ns) {
		pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);

		if (tid > 0 && WIFSTOPPED(status))
			go_on(tid, WSTOPSIG(status));
		else
			usleep(WAIT_US);
	}
}

/* Stops a thread where it runs. Returns whether a signal came first, which is delivered: the
 * thread then stands at the beginning of the handler. */
static bool stop_late(pid_t tid)
{
	bool late = false;
	int status;

	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		give_up("a thread cannot be stopped");
	for (;;) {
		if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
			give_up("a thread has ended");
		if (status >> 16 == PTRACE_EVENT_STOP)
			return late;
		late = true;
		go_on(tid, WSTOPSIG(status));
	}
}

/* Lets all threads run, and then stops one at a random place. */
static void stop(pid_t tid, struct user_regs_struct *registers)
{
	run(random() % RUNS_US);
	while (stop_late(tid)) {
		go_on(tid, 0);
		run(random() % RUNS_US);
	}
	if (ptrace(PTRACE_GETREGS, tid, NULL, registers))
		give_up("a thread has no registers");
}

/* The address in the form "0x7f12 qsort_r+0x2c (libc.so.6)". */
static char *describe(Dwfl *dwfl, Dwarf_Addr address)
{
	Dwfl_Module *module = dwfl_addrmodule(dwfl, address);
	const char *file, *name;
	GElf_Off offset;
	GElf_Sym symbol;

	if (!module)
		return xasprintf("%#lx", address);
	file = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
	name = dwfl_module_addrinfo(module, address, &offset, &symbol, NULL, NULL, NULL);
	return xasprintf("%#lx %s+%#lx (%s)", address, name ? name : "?", name ? offset : 0, file);
}

/* The number of equal frames from the leaf on. */
static size_t common_depth(const struct unwinding_stack *ours, const struct their_stack *theirs)
{
	size_t depth = 0;

	while (depth < ours->depth && depth < theirs->depth &&
	       ours->frames[depth].address == theirs->frames[depth])
		depth++;
	return depth;
}

static char *describe_difference(Dwfl *dwfl, const struct unwinding_stack *ours,
				 const struct their_stack *theirs, size_t common)
{
	char *below = common ? describe(dwfl, theirs->frames[common - 1]) : xstrdup("nothing");
	char *our = common < ours->depth ? describe(dwfl, ours->frames[common].address)
					 : xstrdup("the end");
	char *their = common < theirs->depth ? describe(dwfl, theirs->frames[common])
					     : xstrdup("the end");
	char *text =
		xasprintf("%s: frames %zu, libdwfl %zu; above %s: %s, libdwfl: %s",
			  outcomes[ours->outcome], ours->depth, theirs->depth, below, our, their);

	free(below);
	free(our);
	free(their);
	return text;
}

static void compare(Dwfl *dwfl, const struct unwinding_stack *ours,
		    const struct their_stack *theirs, json_t *differences)
{
	size_t common = common_depth(ours, theirs);
	enum comparison comparison = DIFFERENT;
	char *text;

	if (common == ours->depth)
		comparison = common == theirs->depth ? EQUAL : SHORTER;
	else if (common == theirs->depth)
		comparison = LONGER;
	counts[comparison][ours->outcome]++;
	if (comparison == EQUAL || json_array_size(differences) == SHOWN ||
	    (comparison == SHORTER && ours->outcome == NATIVE_NO_ROWS))
		return;
	text = describe_difference(dwfl, ours, theirs, common);
	json_array_append_new(differences, json_string(text));
	free(text);
}

static void report(size_t stops, size_t frames, json_t *differences)
{
	json_t *result = json_pack("{s:I, s:I, s:o}", "stops", (json_int_t)stops, "frames",
				   (json_int_t)frames, "differences", differences);

	for (int i = 0; i < COMPARISONS; i++) {
		json_t *by_outcome = json_object();

		for (int outcome = 0; outcome < NATIVE_OUTCOME_COUNT; outcome++)
			if (counts[i][outcome])
				json_object_set_new(by_outcome, outcomes[outcome],
						    json_integer(counts[i][outcome]));
		json_object_set_new(result, comparisons[i], by_outcome);
	}
	json_dumpf(result, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(result);
}

int main(int argc, char **argv)
{
	static struct their_stack theirs;
	pid_t threads[THREADS_MAX];
	size_t count, stops, frames = 0;
	json_t *differences = json_array();
	struct unwinder *unwinder;
	Dwfl *dwfl;

	if (argc != 4) {
		fputs("usage: unwind_check PID STOPS SEED\n", stderr);
		return 2;
	}
	target = atoi(argv[1]);
	stops = strtoul(argv[2], NULL, 10);
	srandom(strtoul(argv[3], NULL, 10));
	unwinder = make_rows();
	dwfl = begin_dwfl();
	count = seize(threads);
	for (size_t i = 0; i < stops; i++) {
		pid_t tid = threads[random() % count];
		struct user_regs_struct registers;
		struct unwinding_stack ours;

		stop(tid, &registers);
		ours = unwinding__walk(target, tid, &registers);
		theirs.depth = 0;
		dwfl_getthread_frames(dwfl, tid, take_frame, &theirs);
		compare(dwfl, &ours, &theirs, differences);
		frames += ours.depth;
		go_on(tid, 0);
	}
	report(stops, frames, differences);
	dwfl_end(dwfl);
	unwinder__free(unwinder);
	return 0;
}
