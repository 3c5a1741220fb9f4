/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles made by hand, for the tests of everything that reads a profile. */
#ifndef PYBPFPROF_TESTS_SYNTHETIC_H
#define PYBPFPROF_TESTS_SYNTHETIC_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "output/output.h"
#include "profile/profile.h"

#define SYNTHETIC_LONG_NAME 4096

/* Each is used as the name of a function, a file and a thread, and as a command. */
static const char *const synthetic_names[] = {
	"</script><b onload=x>",
	"]]><!--<img src=x onerror=alert(1)>",
	"quotes \" ' ` \\",
	"line\nbreak\r\n and\vmore\f",
	"semi;colon;",
	"tab\tbell\aescape\x1b[31mdelete\x7f",
	"ends in 123",
	"ends in 4.5",
	"ends in a space ",
	"99",
	"not UTF-8: \xff\xfe \xc3( \xed\xa0\x80",
	"\xe2\x80\xaenwod edispu\xe2\x80\x8f",
	"separators \xe2\x80\xa8 \xe2\x80\xa9 \xc2\x85 \302\2407",
	"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e \xf0\x9f\x90\x8d",
	"{\"json\": [1]} 5",
	"%s%n%d 100%",
	"$& ${x} \\x0a \\u2028",
	"-",
	"--",
	"name_[k]",
	"# comment 1",
	"__proto__",
	"<module>",
	"<lambda>",
	"operator<<(std::vector<int>)[abi]",
	"_ZN3foo3barEv",
	"   ",
	"",
};

#define SYNTHETIC_NAMES (sizeof(synthetic_names) / sizeof(synthetic_names[0]))

static inline uint32_t synthetic__location(struct profile *profile, const char *name,
					   const char *folder, const char *file,
					   uint32_t first_line, uint32_t line)
{
	char *filename = xasprintf("%s%s", folder, file);
	struct profile_function function = {
		.name = profile__string(profile, name),
		.filename = profile__string(profile, filename),
		.short_filename = profile__string(profile, file),
		.first_line = first_line,
		.kind = FRAME_PYTHON,
	};

	free(filename);
	return profile__line(profile, profile__function(profile, &function), line);
}

static inline uint32_t synthetic__reason(struct profile *profile, enum outcome outcome)
{
	struct profile_function function = {
		.name = profile__string(profile, outcome__text(outcome)),
		.kind = FRAME_REASON,
	};

	return profile__line(profile, profile__function(profile, &function), 0);
}

static inline uint32_t synthetic__thread(struct profile *profile, uint32_t pid, const char *command,
					 uint32_t tid, const char *name)
{
	uint32_t process = profile__process(profile, pid, pid);
	uint32_t thread = profile__thread(profile, process, tid, 0);

	profile->processes[process].command = profile__string(profile, command);
	profile->processes[process].python_version = profile__string(profile, "3.11.7");
	profile->threads[thread].name = profile__string(profile, name);
	return thread;
}

/* COUNT samples at the rate of PROFILE. */
static inline struct amount synthetic__amount(const struct profile *profile, uint64_t count)
{
	return (struct amount){ count, count * profile__period(profile, 0) };
}

/* The sum of the weights with which the samples are shown. */
static inline uint64_t synthetic__weight(const struct profile *profile)
{
	uint64_t weight = 0;

	for (size_t i = 0; i < profile->sample_count; i++)
		weight += profile__weight(profile, &profile->samples[i]);
	return weight;
}

/* Adds COUNT samples and enters them in the ledger. */
static inline void synthetic__add(struct profile *profile, enum outcome outcome, uint32_t thread,
				  const uint32_t *locations, uint32_t depth, uint64_t count)
{
	profile__add(profile, thread, profile__stack(profile, locations, depth), 0,
		     synthetic__amount(profile, count));
	profile->ledgers[0].outcomes[outcome] += count;
	profile->ledgers[0].events += count;
	profile->ledgers[0].stacks = profile->stack_count;
	profile->ledgers[0].code_objects = profile->function_count;
}

/* 100 Hz, 10 s, begun at 2024-01-02 03:04:05 UTC. */
static inline struct profile *synthetic__new(void)
{
	struct profile *profile = profile__new();

	profile->rate_hz = 100;
	profile->start_unix_ns = 1704164645000000000;
	profile->duration_ns = 10000000000;
	profile->ledgers[0].rate_hz = 100;
	profile->ledgers[0].duration_s = 10;
	profile->ledgers[0].periods = (struct ledger_periods){ 5000000, 15000000, 100 };
	return profile;
}

/* One process, two threads, 110 samples; fib calls itself. */
static inline struct profile *synthetic__plain(void)
{
	struct profile *profile = synthetic__new();
	uint32_t first = synthetic__thread(profile, 100, "python3 app.py", 100, "MainThread");
	uint32_t second = synthetic__thread(profile, 100, "python3 app.py", 101, "worker 1");
	uint32_t main = synthetic__location(profile, "main", "/srv/", "app.py", 1, 10);
	uint32_t load =
		synthetic__location(profile, "Loader.load", "/srv/lib/", "pkg/load.py", 15, 20);
	uint32_t load_next =
		synthetic__location(profile, "Loader.load", "/srv/lib/", "pkg/load.py", 15, 21);
	uint32_t fib = synthetic__location(profile, "fib", "/srv/lib/", "pkg/fib.py", 3, 5);
	uint32_t cut = synthetic__reason(profile, OUTCOME_TRUNCATED);
	uint32_t none = synthetic__reason(profile, OUTCOME_NO_PYTHON);

	synthetic__add(profile, OUTCOME_PYTHON, first, (uint32_t[]){ load, main }, 2, 30);
	synthetic__add(profile, OUTCOME_PYTHON, first, (uint32_t[]){ load_next, main }, 2, 20);
	synthetic__add(profile, OUTCOME_PYTHON, first, (uint32_t[]){ fib, fib, fib, main }, 4, 40);
	synthetic__add(profile, OUTCOME_TRUNCATED, first, (uint32_t[]){ fib, fib, cut }, 3, 5);
	synthetic__add(profile, OUTCOME_PYTHON, second, (uint32_t[]){ load, main }, 2, 10);
	synthetic__add(profile, OUTCOME_NO_PYTHON, second, &none, 1, 5);
	return profile;
}

/* The same, and a sample of 5 page faults of each stack.  3 samples were lost. */
static inline struct profile *synthetic__events(void)
{
	struct profile *profile = synthetic__plain();
	size_t count = profile->sample_count;
	struct ledger *faults;

	profile->events[1] =
		(struct profile_event){ .name = "page-faults", .unit = "count", .period = 5 };
	profile->event_count = 2;
	faults = &profile->ledgers[1];
	for (size_t i = 0; i < count; i++) {
		profile__add(profile, profile->samples[i].thread, profile->samples[i].stack, 1,
			     (struct amount){ 1, 5 });
		faults->outcomes[OUTCOME_PYTHON]++;
	}
	faults->lost = 3;
	faults->events = count + 3;
	return profile;
}

#define SYNTHETIC_ADDRESS  0xffffffff81000010
#define SYNTHETIC_BUILD_ID "0123456789abcdef0123456789abcdef01234567"

static inline uint32_t synthetic__machine_code(struct profile *profile, const char *name,
					       enum frame_kind kind, uint64_t address,
					       uint32_t mapping)
{
	struct profile_function function = { .name = profile__string(profile, name), .kind = kind };
	struct profile_location location = {
		.function = profile__function(profile, &function),
		.mapping = mapping,
		.address = address,
	};

	return profile__location(profile, &location);
}

/* Python that calls a library, which calls the kernel: 8 samples there, and 4 in the library. */
static inline struct profile *synthetic__mixed(void)
{
	struct profile *profile = synthetic__new();
	uint32_t thread = synthetic__thread(profile, 100, "python3 app.py", 100, "MainThread");
	uint32_t main = synthetic__location(profile, "main", "/srv/", "app.py", 1, 10);
	const struct profile_mapping library = {
		.start = 0x2000,
		.limit = 0x9000,
		.offset = 0x1000,
		.file = profile__string(profile, "/usr/lib/libm.so.6"),
		.build_id = profile__string(profile, SYNTHETIC_BUILD_ID),
	};
	uint32_t sqrt = synthetic__machine_code(profile, "sqrt", FRAME_NATIVE, 0x2345,
						profile__mapping(profile, &library));
	uint32_t fault = synthetic__machine_code(profile, "exc_page_fault_[k]", FRAME_KERNEL,
						 SYNTHETIC_ADDRESS, 0);

	synthetic__add(profile, OUTCOME_PYTHON, thread, (uint32_t[]){ fault, sqrt, main }, 3, 8);
	synthetic__add(profile, OUTCOME_PYTHON, thread, (uint32_t[]){ sqrt, main }, 2, 4);
	return profile;
}

static inline uint32_t synthetic__interpreter(struct profile *profile, const char *name)
{
	struct profile_function function = {
		.name = profile__string(profile, name),
		.kind = FRAME_NATIVE,
		.of_interpreter = true,
	};

	return profile__line(profile, profile__function(profile, &function), 0);
}

/* 80 samples of Python, extensions, the interpreter and the kernel, for tests/e2e/page/pages.py. */
static inline struct profile *synthetic__native(void)
{
	struct profile *profile = synthetic__new();
	uint32_t first = synthetic__thread(profile, 100, "python3 app.py", 100, "MainThread");
	uint32_t second = synthetic__thread(profile, 100, "python3 app.py", 101, "worker 1");
	uint32_t main = synthetic__location(profile, "main", "/srv/", "app.py", 1, 10);
	uint32_t load =
		synthetic__location(profile, "Loader.load", "/srv/lib/", "pkg/load.py", 15, 20);
	uint32_t fib = synthetic__location(profile, "fib", "/srv/lib/", "pkg/fib.py", 3, 5);
	uint32_t sort = synthetic__interpreter(profile, "list_sort (libpython3.11.so.1.0)");
	uint32_t gil = synthetic__interpreter(profile, "take_gil (libpython3.11.so.1.0)");
	uint32_t dot =
		synthetic__machine_code(profile, "dot (libblas.so.3)", FRAME_NATIVE, 0x10, 0);
	uint32_t again =
		synthetic__machine_code(profile, "dot (libblas.so.3)", FRAME_NATIVE, 0x20, 0);
	uint32_t pool =
		synthetic__machine_code(profile, "pool (libgomp.so.1)", FRAME_NATIVE, 0x30, 0);
	uint32_t fault = synthetic__machine_code(profile, "exc_page_fault_[k]", FRAME_KERNEL, 0, 0);
	uint32_t cut = synthetic__reason(profile, OUTCOME_TRUNCATED);

	synthetic__add(profile, OUTCOME_PYTHON, first, (uint32_t[]){ load, main }, 2, 10);
	synthetic__add(profile, OUTCOME_PYTHON, first, (uint32_t[]){ load, sort, main }, 3, 8);
	synthetic__add(profile, OUTCOME_PYTHON, first, (uint32_t[]){ dot, main }, 2, 20);
	synthetic__add(profile, OUTCOME_PYTHON, first, (uint32_t[]){ fault, again, main }, 3, 12);
	synthetic__add(profile, OUTCOME_PYTHON, first, (uint32_t[]){ sort, main }, 2, 6);
	synthetic__add(profile, OUTCOME_PYTHON, first, (uint32_t[]){ dot, sort, main }, 3, 4);
	synthetic__add(profile, OUTCOME_PYTHON, first, (uint32_t[]){ fault, main }, 2, 5);
	synthetic__add(profile, OUTCOME_TRUNCATED, second, (uint32_t[]){ fib, dot, cut }, 3, 5);
	synthetic__add(profile, OUTCOME_NO_PYTHON, second, &pool, 1, 7);
	synthetic__add(profile, OUTCOME_NO_PYTHON, second, (uint32_t[]){ fault, gil }, 2, 3);
	return profile;
}

/* A process and a stack for each hostile name: the Nth, from 1, has N samples. */
static inline struct profile *synthetic__hostile(void)
{
	struct profile *profile = synthetic__new();
	char long_name[SYNTHETIC_LONG_NAME + 1];

	memset(long_name, 'x', SYNTHETIC_LONG_NAME);
	long_name[SYNTHETIC_LONG_NAME] = '\0';
	for (uint32_t i = 0; i <= SYNTHETIC_NAMES; i++) {
		const char *name = i < SYNTHETIC_NAMES ? synthetic_names[i] : long_name;
		uint32_t thread = synthetic__thread(profile, 200 + i, name, 300 + i, name);
		uint32_t main = synthetic__location(profile, "main", "/", "app.py", 1, 2);
		uint32_t leaf = synthetic__location(profile, name, "/tmp/", name, 7, 8);

		synthetic__add(profile, OUTCOME_PYTHON, thread, (uint32_t[]){ leaf, main }, 2,
			       i + 1);
	}
	return profile;
}

/* Ten samples of a function in utils.py below FOLDER, a name that several files have. */
static inline struct profile *synthetic__utils(const char *folder)
{
	struct profile *profile = synthetic__new();
	uint32_t thread = synthetic__thread(profile, 100, "python3 app.py", 100, "MainThread");
	uint32_t location = synthetic__location(profile, "normalise", folder, "utils.py", 1, 2);

	synthetic__add(profile, OUTCOME_PYTHON, thread, &location, 1, 10);
	return profile;
}

#define SYNTHETIC_CONTAINER "4f5b3c9de7a8012b4f5b3c9de7a8012b4f5b3c9de7a8012b4f5b3c9de7a8012b"
#define SYNTHETIC_POD	    "a1b2c3d4-0000-4000-8000-112233445566"
#define SYNTHETIC_CGROUP                                                                          \
	"/kubepods.slice/kubepods-pod" SYNTHETIC_POD ".slice/cri-containerd-" SYNTHETIC_CONTAINER \
	".scope"

/* A process of SERIAL, and its only thread. */
static inline uint32_t synthetic__main_thread(struct profile *profile, uint64_t serial,
					      uint32_t pid, const char *short_name,
					      const char *command)
{
	uint32_t process = profile__process(profile, serial, pid);
	uint32_t thread = profile__thread(profile, process, pid, 0);

	profile->processes[process].short_name = profile__string(profile, short_name);
	profile->processes[process].command = profile__string(profile, command);
	profile->processes[process].python_version = profile__string(profile, "3.11.7");
	profile->threads[thread].name = profile__string(profile, "MainThread");
	return thread;
}

/* Sets the owner of the processes from FIRST up to BEYOND. */
static inline void synthetic__belong(struct profile *profile, uint32_t first, uint32_t beyond,
				     const char *user, const char *cgroup, const char *unit)
{
	bool is_pod = strstr(cgroup, SYNTHETIC_CONTAINER);

	for (uint32_t i = first; i < beyond; i++) {
		struct profile_process *process = &profile->processes[i];

		process->user = profile__string(profile, user);
		process->cgroup = profile__string(profile, cgroup);
		process->unit = profile__string(profile, unit);
		process->container_id = profile__string(profile, is_pod ? SYNTHETIC_CONTAINER : "");
		process->pod_uid = profile__string(profile, is_pod ? SYNTHETIC_POD : "");
		process->start_unix_ns = 1704164000000000000 + i * 1000000000LL;
	}
}

/* 100 samples of a machine's processes: two workers of a pod; two runs of a script, one with the
 * PID that a worker had; one process about which little is known; one that was idle. */
static inline struct profile *synthetic__machine(void)
{
	struct profile *profile = synthetic__new();
	uint32_t threads[] = {
		synthetic__main_thread(profile, 1, 10, "worker.py",
				       "python3 worker.py --queue high"),
		synthetic__main_thread(profile, 2, 11, "worker.py",
				       "python3 worker.py --queue low"),
		synthetic__main_thread(profile, 3, 20, "report.py", "python3 /srv/report.py"),
		synthetic__main_thread(profile, 4, 11, "report.py", "python3 /srv/report.py"),
		synthetic__main_thread(profile, 5, 30, "", "python3 -c pass"),
		synthetic__main_thread(profile, 6, 40, "idle.py", "python3 idle.py"),
	};
	uint32_t main = synthetic__location(profile, "main", "/srv/", "app.py", 1, 10);
	uint32_t load =
		synthetic__location(profile, "Loader.load", "/srv/lib/", "pkg/load.py", 15, 20);
	uint32_t fib = synthetic__location(profile, "fib", "/srv/lib/", "pkg/fib.py", 3, 5);
	uint32_t none = synthetic__reason(profile, OUTCOME_NO_PYTHON);

	synthetic__belong(profile, 0, 2, "www-data", SYNTHETIC_CGROUP, "");
	synthetic__belong(profile, 2, 4, "root", "/system.slice/report.service", "report.service");
	synthetic__add(profile, OUTCOME_PYTHON, threads[0], (uint32_t[]){ load, main }, 2, 30);
	synthetic__add(profile, OUTCOME_PYTHON, threads[1], (uint32_t[]){ load, main }, 2, 20);
	synthetic__add(profile, OUTCOME_PYTHON, threads[1], (uint32_t[]){ fib, main }, 2, 10);
	synthetic__add(profile, OUTCOME_PYTHON, threads[2], (uint32_t[]){ fib, main }, 2, 24);
	synthetic__add(profile, OUTCOME_PYTHON, threads[3], (uint32_t[]){ fib, main }, 2, 6);
	synthetic__add(profile, OUTCOME_NO_PYTHON, threads[4], &none, 1, 10);
	return profile;
}

/* 200 samples of 10 s, and 400 of 20 s in BEFORE.  The shares changed as follows.  In worker.py:
 * Loader.load, which has moved, from 25 % to 50 %, fib from 50 % to 10 %, gone from 10 % to none,
 * fresh from none to 10 %.  In report.py: fib from 5 % to 6 %, samples without Python from 10 % to
 * 24 %.  Free only the samples of BEFORE. */
static inline struct profile *synthetic__change(struct profile *before)
{
	struct profile *profile = synthetic__new();
	uint32_t worker = synthetic__main_thread(profile, 1, 10, "worker.py", "python3 worker.py");
	uint32_t report = synthetic__main_thread(profile, 2, 20, "report.py", "python3 report.py");
	uint32_t main = synthetic__location(profile, "main", "/srv/", "app.py", 1, 10);
	uint32_t load =
		synthetic__location(profile, "Loader.load", "/srv/lib/", "pkg/load.py", 15, 20);
	uint32_t moved =
		synthetic__location(profile, "Loader.load", "/srv/lib/", "pkg/load.py", 17, 22);
	uint32_t fib = synthetic__location(profile, "fib", "/srv/lib/", "pkg/fib.py", 3, 5);
	uint32_t gone = synthetic__location(profile, "gone", "/srv/lib/", "pkg/gone.py", 1, 2);
	uint32_t fresh = synthetic__location(profile, "fresh", "/srv/lib/", "pkg/fresh.py", 1, 2);
	uint32_t none = synthetic__reason(profile, OUTCOME_NO_PYTHON);
	struct ledger ledger = profile->ledgers[0];

	synthetic__add(profile, OUTCOME_PYTHON, worker, (uint32_t[]){ load, main }, 2, 100);
	synthetic__add(profile, OUTCOME_PYTHON, worker, (uint32_t[]){ fib, main }, 2, 200);
	synthetic__add(profile, OUTCOME_PYTHON, worker, (uint32_t[]){ gone, main }, 2, 40);
	synthetic__add(profile, OUTCOME_PYTHON, report, (uint32_t[]){ fib, main }, 2, 20);
	synthetic__add(profile, OUTCOME_NO_PYTHON, report, &none, 1, 40);
	*before = (struct profile){ .sample_count = profile->sample_count };
	before->samples = xcalloc(profile->sample_count, sizeof(*before->samples));
	memcpy(before->samples, profile->samples, profile->sample_count * sizeof(*before->samples));
	before->rate_hz = profile->rate_hz;
	before->start_unix_ns = profile->start_unix_ns - 3600 * 1000000000LL;
	before->duration_ns = 2 * profile->duration_ns;

	profile__clear_samples(profile);
	profile->ledgers[0] = ledger;
	synthetic__add(profile, OUTCOME_PYTHON, worker, (uint32_t[]){ moved, main }, 2, 100);
	synthetic__add(profile, OUTCOME_PYTHON, worker, (uint32_t[]){ fib, main }, 2, 20);
	synthetic__add(profile, OUTCOME_PYTHON, worker, (uint32_t[]){ fresh, main }, 2, 20);
	synthetic__add(profile, OUTCOME_PYTHON, report, (uint32_t[]){ fib, main }, 2, 12);
	synthetic__add(profile, OUTCOME_NO_PYTHON, report, &none, 1, 48);
	return profile;
}

/* Thread INDEX of a tree.  All PROCESSES have equally many threads, and 20 processes share a
 * command. */
static inline uint32_t synthetic__worker(struct profile *profile, uint32_t index,
					 uint32_t processes)
{
	uint32_t process = index % processes, thread;
	char command[64], *name = command + strlen("python3 ");

	snprintf(command, sizeof(command), "python3 app_%u.py", process / 20);
	thread = synthetic__thread(profile, 100 + process,
				   processes > 1 ? command : "python3 app.py", 100 + index,
				   "worker");
	if (processes > 1)
		profile->processes[process].short_name = profile__string(profile, name);
	return thread;
}

/* A tree of FRAMES distinct locations below 20 common callers.  Each is the leaf once. */
static inline struct profile *synthetic__tree(uint32_t frames, uint32_t threads, uint32_t processes)
{
	enum { TRUNK = 20, DEPTH_MAX = 1000 };
	struct profile *profile = synthetic__new();
	uint32_t *parents = xcalloc(frames, sizeof(*parents));
	uint32_t *locations = xcalloc(frames, sizeof(*locations));
	uint64_t random = 1;

	for (uint32_t i = 0; i < frames; i++) {
		uint32_t stack[DEPTH_MAX], depth = 0;
		char name[64], file[64];

		random = random * 6364136223846793005 + 1442695040888963407;
		parents[i] = i <= TRUNK ? i - 1 : TRUNK + (random >> 33) % (i - TRUNK);
		snprintf(name, sizeof(name), "Class%u.method_%u", i / 7, i / 3);
		snprintf(file, sizeof(file), "package/module_%u.py", i / 50);
		locations[i] = synthetic__location(profile, name, "/usr/lib/", file, i / 3, i);
		for (uint32_t at = i; at < frames && depth < DEPTH_MAX; at = parents[at])
			stack[depth++] = locations[at];
		synthetic__add(profile, OUTCOME_PYTHON,
			       synthetic__worker(profile, i % threads, processes), stack, depth, 1);
	}
	free(parents);
	free(locations);
	return profile;
}

/* The output of FORMAT; the caller frees. */
static inline char *synthetic__write(const struct output_format *format,
				     const struct profile *profile,
				     const struct output_options *options, size_t *size)
{
	char *bytes;
	FILE *file = open_memstream(&bytes, size);
	int error = format->write(profile, options, file);

	if (fclose(file) || error)
		abort();
	return bytes;
}

#endif
