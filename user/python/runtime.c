// SPDX-License-Identifier: BSD-2-Clause
/*
 * Every file that a process has loaded is a candidate, whatever its name: an interpreter
 * may be static, in libpython, embedded in a server, or renamed.  A file with a CPython
 * defines _PyRuntime (3.7 and later; in .dynsym even if stripped) or
 * PyInterpreterState_Head (all versions).  Several files may do so: a small program and
 * its libpython, or a plug-in with a Python of its own.  A file may also be loaded twice.
 * The Python that is alive has an interpreter with a thread.
 *
 * A file is loaded where it has an executable mapping, or a writable one if its code was
 * moved to huge pages.  Its header must lie in memory where that mapping implies.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "architecture/architecture.h"
#include "elf/elf_cache.h"
#include "python/python_image.h"
#include "python/runtime.h"
#include "reading/reader.h"
#include "reading/process.h"
#include "reading/target_memory.h"
#include "system/limits.h"

/* Limits of a search, so that no process can keep the profiler busy. */
#define FILES_MAX      4096
#define CANDIDATES_MAX 16
#define LOADED_MAX     8    /* places of one file */
#define PLACES_MAX     1024 /* places of all files */
#define BUDGET_BYTES   (1ULL << 30)

#define HEADER_BYTES 64 /* of the header of an ELF file */

/* The longest pthread_self(), rounded up. */
#define SELF_CODE_BYTES 32

/* The distance from ob_type to tp_flags in a type object, the same in all versions, and the flag
 * that PyType_Ready sets. */
#define TP_FLAGS_AFTER_TYPE 160
#define TP_FLAG_READY	    (1 << 12)

/* How far pthread_self() lies below the thread pointer, on architectures that leave this to the C
 * library.  The code of pthread_self() shows it; it differs between C libraries and releases. */
struct thread_area {
	uint64_t bytes;
	bool known;
	bool disputed; /* files of the process differ */
};

struct search {
	pid_t pid, reader;	  /* the thread through which its mappings are read */
	struct mapping *mappings; /* sorted by file */
	ssize_t count, next;	  /* number of mappings; index of the first one of the next file */
	int files_left[2];	  /* files without and with executable mappings */
	int candidates, places_left; /* negative: the limit was reached */
	int result;		     /* of the best candidate; -ENOEXEC where there is none */
	struct runtime runtime;	     /* the best candidate */
	uint64_t copied_type;	     /* PyCode_Type in a file without a Python; 0: none */
	int denied;		     /* -errno if a file could not be read */
	int error;		     /* ends the search */
	struct elf_budget budget;
	struct thread_area thread_area;
};

/* Reads the pthread_self() of process PID at ADDRESS.  One that only calls another is ignored. */
static void learn_thread_area(struct thread_area *area, const struct architecture *architecture,
			      pid_t pid, uint64_t address)
{
	uint8_t code[SELF_CODE_BYTES];
	uint64_t bytes;

	if (!architecture->decode_thread_area ||
	    target_memory__read(pid, address, code, sizeof(code)) ||
	    !architecture->decode_thread_area(code, sizeof(code), &bytes))
		return;
	area->disputed |= area->known && area->bytes != bytes;
	area->known = true;
	area->bytes = bytes;
}

/* Why threads cannot be found with AREA; NULL if they can. */
static const char *thread_area_objection(const struct thread_area *area,
					 const struct architecture *architecture)
{
	if (!architecture->decode_thread_area || (area->known && !area->disputed))
		return NULL;
	return area->disputed ? "its C libraries disagree on pthread_self(), which is needed to "
				"find threads"
			      : "the code of its C library does not show what pthread_self() is, "
				"which is needed to find threads";
}

/* How good a candidate is: one that is alive, before one that may become so, before one that is not
 * supported but has a version. */
enum rank { UNKNOWN, REFUSED, LOADED, ALIVE };

static enum rank rank(int result, const struct runtime *runtime)
{
	if (result)
		return *runtime->version ? REFUSED : UNKNOWN;
	return runtime->initialized ? ALIVE : LOADED;
}

static void consider(struct search *search, int result, const struct runtime *candidate)
{
	struct runtime other = search->runtime;
	enum rank best = rank(search->result, &search->runtime), this = rank(result, candidate);

	if (search->result == -ENOEXEC || this > best ||
	    (this == best && candidate->offsets.version > other.offsets.version)) {
		search->result = result;
		search->runtime = *candidate;
	} else {
		other = *candidate;
	}
	if (best == ALIVE && this == ALIVE)
		memcpy(search->runtime.other_version, other.version, sizeof(other.version));
}

/* 0 if IMAGE is what memory holds at BIAS; -ENOEXEC if not. */
static int check_loaded(pid_t pid, const struct elf_image *image, uint64_t bias)
{
	uint8_t in_file[HEADER_BYTES], in_memory[HEADER_BYTES];
	uint64_t address;
	int error;

	if (!elf_image__first_bytes(image, in_file, sizeof(in_file), &address))
		return 0;
	error = target_memory__read(pid, address + bias, in_memory, sizeof(in_memory));
	if (error)
		return error == -EFAULT ? -ENOEXEC : error;
	return memcmp(in_file, in_memory, sizeof(in_file)) ? -ENOEXEC : 0;
}

/* The address of pthread_self() in IMAGE, if it is needed. */
static bool find_pthread_self(struct elf_image *image, bool python, uint64_t *address)
{
	static const char name[] = "pthread_self";

	return ARCHITECTURE.decode_thread_area && elf_image__is_native(image) &&
	       (python ? elf_image__symbol(image, name, address)
		       : elf_image__exported_symbol(image, name, address));
}

/* Examines IMAGE once for each place where the COUNT mappings may have it loaded.  *USEFUL: the
 * image has something that is searched for. */
static int examine_image(struct search *search, struct elf_image *image,
			 const struct mapping *mappings, ssize_t count, bool *useful)
{
	bool python = python_image__is_any(image);
	uint64_t type, self, biases[LOADED_MAX];
	bool has_self = find_pthread_self(image, python, &self);
	bool has_type = !python && elf_image__exported_symbol(image, "PyCode_Type", &type);
	struct runtime candidate;
	int loaded = 0, error;

	*useful = python || has_type || has_self;
	if (!*useful)
		return 0;
	for (ssize_t i = 0; i < count && loaded < LOADED_MAX; i++) {
		uint64_t *bias = &biases[loaded];
		bool known = false;

		if (!elf_segments__bias(image->segments, image->header.e_phnum, mappings[i].start,
					mappings[i].offset, mappings[i].executable, bias))
			continue;
		for (int j = 0; j < loaded; j++)
			known |= biases[j] == *bias;
		known |= --search->places_left < 0;
		error = known ? -ENOEXEC : check_loaded(search->pid, image, *bias);
		if (error == -ENOEXEC)
			continue;
		if (error)
			return error;
		loaded++;
		if (has_self)
			learn_thread_area(&search->thread_area, &ARCHITECTURE, search->pid,
					  self + *bias);
		if (has_type)
			search->copied_type = type + *bias;
		if (!python)
			continue;
		error = python_image__examine(search->pid, image, *bias, &candidate);
		if (error == -ESRCH || error == -EPERM)
			return error;
		search->candidates++;
		candidate.text.bias = *bias;
		candidate.text.offset = mappings[i].offset;
		/* A place found by the memory of one process is not valid for others. */
		if (mappings[i].executable && !candidate.stripped)
			candidate.text.start = mappings[i].start;
		consider(search, error, &candidate);
	}
	return 0;
}

/* The number of mappings of the next file. */
static ssize_t count_mappings(const struct search *search)
{
	const struct mapping *first = &search->mappings[search->next];
	ssize_t count = 1;

	while (search->next + count < search->count && first[count].inode == first->inode &&
	       first[count].device == first->device)
		count++;
	return count;
}

/* Whether the process did not answer at some time during the search. */
static bool has_missed(const struct search *search)
{
	return reader__missed(search->pid) != search->budget.missed;
}

/* Skips to the next file to be examined; false if there is none. */
static bool has_next(struct search *search)
{
	while (search->next < search->count && !search->error &&
	       search->candidates < CANDIDATES_MAX && !has_missed(search)) {
		if (search->files_left[search->mappings[search->next].executable] > 0)
			return true;
		search->next += count_mappings(search);
	}
	return false;
}

/* Ends the next file, with the ERROR that ends the search or 0. */
static void go_on(struct search *search, int error)
{
	search->files_left[search->mappings[search->next].executable]--;
	search->next += count_mappings(search);
	search->error = error;
}

/* Examines the next file as IMAGE; NULL if it is of no use. */
static void examine_next(struct search *search, struct elf_image *image)
{
	bool useful = false;
	int error = 0;

	if (image)
		error = examine_image(search, image, &search->mappings[search->next],
				      count_mappings(search), &useful);
	elf_cache__release(image, useful);
	go_on(search, error);
}

/* A container's seccomp profile or a security module may deny access to files. */
static void note_denial(struct search *search, int error)
{
	if (error == -EPERM || error == -EACCES || error == -ENOSYS)
		search->denied = error;
}

/* Examines files that are known from other processes, up to the first one that must be opened. */
static void examine_known(void *context)
{
	struct search *search = context;
	struct file_identity identity;
	struct elf_image *image;
	int error = 0;

	while (has_next(search)) {
		error = process__identify_mapping(search->pid, search->reader,
						  &search->mappings[search->next], &identity);
		if (error || !elf_cache__find(&identity, &search->budget, &image))
			break;
		examine_next(search, image);
	}
	/* If the kernel lacks the system call, the C library replaces it and refuses some flags:
	 * -EINVAL. */
	note_denial(search, error == -EINVAL ? -ENOSYS : error);
}

/* Opens and examines the next file.  It may be unmapped meanwhile. */
static void examine_new(struct search *search)
{
	ssize_t count = count_mappings(search);
	int fd = -ENOENT;

	for (ssize_t i = 0; fd == -ENOENT && i < count; i++)
		fd = process__open_mapping(search->pid, search->reader,
					   &search->mappings[search->next + i]);
	note_denial(search, fd);
	if (fd >= 0)
		examine_next(search, elf_cache__open(fd, &search->budget));
	else
		go_on(search, limits__lack_files(fd) ? fd : 0);
}

/* Sorts by file.  Executable mappings come first: their file offsets locate the file best. */
static int compare_mappings(const void *left, const void *right)
{
	const struct mapping *a = left, *b = right;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->inode != b->inode)
		return a->inode < b->inode ? -1 : 1;
	if (a->executable != b->executable)
		return a->executable ? -1 : 1;
	return a->start < b->start ? -1 : a->start > b->start;
}

static bool is_ready(const struct search *search, uint64_t type)
{
	uint64_t at = type + search->runtime.offsets.object_type + TP_FLAGS_AFTER_TYPE, flags;

	return !target_memory__read_pointer(search->pid, at, &flags) && flags & TP_FLAG_READY;
}

/* The linker may give a program that refers to libpython's PyCode_Type a copy of it, which
 * libpython then uses too. */
static void choose_code_type(struct search *search)
{
	struct runtime *runtime = &search->runtime;

	if (!search->result && search->copied_type && !is_ready(search, runtime->code_type) &&
	    is_ready(search, search->copied_type)) {
		runtime->code_type = search->copied_type;
		runtime->text.start = 0;
	}
}

/* A supported Python also needs a way to find threads.  A program that is still loading may not
 * have its C library yet. */
static void choose_thread_area(struct search *search)
{
	struct runtime *runtime = &search->runtime;

	if (search->result)
		return;
	runtime->thread_area = search->thread_area.bytes;
	runtime->objection = thread_area_objection(&search->thread_area, &ARCHITECTURE);
	if (runtime->objection)
		search->result = runtime->initialized ? -ENOTSUP : -EAGAIN;
}

/* Examines all files.  Known files and the memory of the process are read in one errand, as most
 * processes have the same files as others. */
static void search_files(struct search *search)
{
	if (search->count > 0)
		qsort(search->mappings, search->count, sizeof(*search->mappings), compare_mappings);
	while (has_next(search)) {
		reader__send(examine_known, search);
		if (has_next(search))
			examine_new(search);
	}
}

int runtime__find_among(pid_t pid, pid_t reader, struct mapping *mappings, ssize_t count, bool cut,
			struct runtime *runtime)
{
	struct search search = {
		.pid = pid,
		.reader = reader,
		.mappings = mappings,
		.count = count,
		.files_left = { FILES_MAX, FILES_MAX },
		.places_left = PLACES_MAX,
		.result = -ENOEXEC,
		.error = count < 0 ? count : 0,
		.budget = { .pid = pid, .bytes = BUDGET_BYTES, .missed = reader__missed(pid) },
	};

	search_files(&search);
	if (search.result == -ENOEXEC && search.denied)
		search.result = search.denied;
	if (search.result == -ENOEXEC && (cut || search.places_left < 0 || search.budget.exceeded))
		search.result = -E2BIG;
	choose_code_type(&search);
	choose_thread_area(&search);
	*runtime = search.runtime;
	/* The result may be incomplete. */
	if (has_missed(&search) || search.error == -ETIMEDOUT) {
		elf_cache__forget_used();
		return reader__has_given_up(pid) ? -ETIMEDOUT : -EINPROGRESS;
	}
	return search.error ? search.error : search.result;
}

static int find_once(pid_t pid, struct runtime *runtime)
{
	pid_t reader = process__reader(pid);
	struct mapping *mappings;
	bool cut;
	ssize_t count = process__program_mappings(pid, reader, &mappings, &cut);
	int error = runtime__find_among(pid, reader, mappings, count, cut, runtime);

	free(mappings);
	return error;
}

int runtime__find(pid_t pid, struct runtime *runtime)
{
	int error;

	while ((error = find_once(pid, runtime)) == -EINPROGRESS)
		reader__wait(pid);
	return error;
}

void runtime__move(struct runtime *runtime, uint64_t distance)
{
	runtime->interpreters += distance;
	if (runtime->code_type)
		runtime->code_type += distance;
	if (runtime->entry_gap.length)
		runtime->entry_gap.start += distance;
	runtime->text.start += distance;
	runtime->text.bias += distance;
}
