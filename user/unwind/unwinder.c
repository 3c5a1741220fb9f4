// SPDX-License-Identifier: BSD-2-Clause
/*
 * A file's rows are made once and serve all processes that map it.  A process has a table of its
 * executable mappings.  Both lie in chunks (chunks.h), where room is only taken: where it is used
 * up, everything begins anew, and what samples then lack is made first.  That is not done more
 * often than once a minute: with too little memory, some files stay without rows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/hash_table.h"
#include "base/log.h"
#include "base/now.h"
#include "base/sorted.h"
#include "base/xalloc.h"
#include "pybpfprof.h"
#include "target/process.h"
#include "target/target_files.h"
#include "target/target_memory.h"
#include "unwind/chunks.h"
#include "unwind/file_rows.h"
#include "unwind/unwinder.h"

/* How often a process's mappings are read again at most: each time that nothing has changed, half
 * as often. */
#define AGAIN_NS     1000000000LL
#define AGAIN_MAX_NS (32 * AGAIN_NS)

/* How often everything begins anew at most. */
#define ANEW_NS (60 * 1000000000LL)

/* No process needs more. */
#define MAPPINGS_MAX (CHUNK_MAPPINGS / 4)

/* Files that are kept open until their symbols are needed. */
#define OPEN_FILES_MAX 128

/* The kernel maps this image into each process.  None of its sections is larger. */
#define VDSO_BYTES 8192
#define VDSO_NAME  "[vdso]"

/* sub $8, %rsp; call *%rcx; add $8, %rsp; ret.  On aarch64 the trampolines are not known yet. */
static const uint8_t trampoline[] = { 0x48, 0x83, 0xec, 0x08, 0xff, 0xd1,
				      0x48, 0x83, 0xc4, 0x08, 0xc3 };

struct code_mapping {
	uint64_t start; /* first: they are looked up by it */
	uint64_t end, bias, offset;
	struct code_file *file; /* NULL: none, or none of machine code */
	bool trampolines;	/* without a file: those of -X perf */
};

struct unwound_process {
	uint64_t serial; /* key */
	pid_t pid;
	uint64_t python;
	struct code_mapping *mappings; /* by address */
	size_t count;
	struct code_file *interpreter;
	uint64_t digest; /* of what it mapped when that was read last */
	bool whole, ended, lacks;
	int64_t again_ns, wait_ns; /* when its mappings may be read again, and how long that was */
	UT_hash_handle hh;
};

struct unwinder {
	struct unwinder_maps maps;
	struct chunks *chunks;
	struct code_file *files;
	uint32_t file_count; /* numbers that were given */
	uint64_t file_serial;
	uint32_t rule_count;
	struct unwound_process *processes;
	int64_t anew_ns; /* not before */
	bool is_full, was_full;
};

struct unwinder *unwinder__new(const struct unwinder_maps *maps, uint64_t memory)
{
	struct unwinder *unwinder = xcalloc(1, sizeof(*unwinder));

	unwinder->maps = *maps;
	unwinder->chunks = chunks__new(maps->chunks, memory);
	return unwinder;
}

static void free_process(struct unwinder *unwinder, struct unwound_process *process)
{
	HASH_DEL(unwinder->processes, process);
	free(process->mappings);
	free(process);
}

static void free_files(struct unwinder *unwinder)
{
	struct code_file *file, *next;

	HASH_ITER (hh, unwinder->files, file, next) {
		HASH_DEL(unwinder->files, file);
		code_file__free(file);
	}
}

void unwinder__free(struct unwinder *unwinder)
{
	struct unwound_process *process, *next;

	if (!unwinder)
		return;
	HASH_ITER (hh, unwinder->processes, process, next)
		free_process(unwinder, process);
	free_files(unwinder);
	chunks__free(unwinder->chunks);
	free(unwinder);
}

void unwinder__stop(struct unwinder *unwinder)
{
	if (!unwinder)
		return;
	chunks__free(unwinder->chunks);
	unwinder->chunks = NULL;
	unwinder->maps = (struct unwinder_maps){ -1, -1, -1, -1, -1 };
}

static struct unwound_process *find(const struct unwinder *unwinder, uint64_t serial)
{
	struct unwound_process *process;

	HASH_FIND(hh, unwinder->processes, &serial, sizeof(serial), process);
	return process;
}

/* A file that has the vDSO's image, which is the same in this process; -1: there is none. */
static int open_vdso(void)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	int fd = image ? memfd_create(VDSO_NAME, MFD_CLOEXEC) : -1;

	/* Where it is shorter, that many bytes are written. */
	if (fd >= 0 && write(fd, image, VDSO_BYTES) <= 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* The file of IDENTITY, opened as process PID maps it; NULL where there is no room for more. */
static struct code_file *get_file(struct unwinder *unwinder, pid_t pid, pid_t reader,
				  const struct mapping *mapping,
				  const struct file_identity *identity)
{
	struct file_identity found = { 0 };
	struct code_file *file;
	int fd;

	HASH_FIND(hh, unwinder->files, identity, sizeof(*identity), file);
	if (file)
		return file;
	if (unwinder->file_count == UNWIND_FILES_MAX) {
		unwinder->is_full = true;
		return NULL;
	}
	fd = mapping->inode ? process__open_mapping(pid, reader, mapping) : open_vdso();
	if (fd < 0)
		return NULL;
	/* Another file may be mapped there since its identity was read. */
	if (mapping->inode &&
	    (!target_file__identify(fd, &found) || memcmp(&found, identity, sizeof(found)) != 0)) {
		target_file__close(pid, fd);
		return NULL;
	}
	file = code_file__new(fd, pid, identity);
	if (!file->part_count) {
		code_file__free(file);
		return NULL;
	}
	if (mapping->is_vdso) {
		free(file->path);
		file->path = xstrdup(VDSO_NAME);
	}
	file->number = unwinder->file_count++;
	file->serial = ++unwinder->file_serial;
	HASH_ADD(hh, unwinder->files, identity, sizeof(file->identity), file);
	return file;
}

/* Tells BPF where the rows of FILE are.  A sample may look between: what says that they are there
 * is written last. */
static int tell_file(const struct unwinder *unwinder, const struct code_file *file,
		     const struct unwind_file *rows)
{
	struct unwind_file before = *rows;
	int error;

	before.pages = 0;
	error = bpf_map_update_elem(unwinder->maps.files, &file->number, &before, 0);
	if (!error)
		error = bpf_map_update_elem(unwinder->maps.files, &file->number, rows, 0);
	return error ? -errno : 0;
}

static int tell_rules(struct unwinder *unwinder, const struct cfi_rows *rows, uint32_t *first)
{
	*first = unwinder->rule_count;
	if (rows->rule_count > UNWIND_RULES_MAX / 8)
		return -E2BIG;
	if (rows->rule_count > UNWIND_RULES_MAX - unwinder->rule_count)
		return -ENOSPC;
	for (size_t i = 0; i < rows->rule_count; i++) {
		uint32_t number = unwinder->rule_count++;

		if (bpf_map_update_elem(unwinder->maps.rules, &number, &rows->rules[i], 0))
			return -errno;
	}
	return 0;
}

static size_t count_open(const struct unwinder *unwinder)
{
	const struct code_file *file;
	size_t count = 0;

	for (file = unwinder->files; file; file = file->hh.next)
		count += file->image != NULL;
	return count;
}

/* Notes whether ERROR is that there was no room, in the budget or in the kernel; returns that. */
static bool note_room(struct unwinder *unwinder, int error)
{
	if (error != -ENOSPC && error != -ENOMEM && error != -EPERM)
		return false;
	if (!unwinder->was_full)
		log__warning(
			"the unwind tables of native frames need more memory than they may use: "
			"some stacks lack native frames; raise --unwind-memory");
	unwinder->is_full = unwinder->was_full = true;
	return true;
}

/* Makes the rows of FILE, unless that was done. */
static void make_rows(struct unwinder *unwinder, struct code_file *file)
{
	/* None of its addresses is in this page. */
	const struct unwind_file without_rows = { .base = UINT64_MAX, .pages = 1 };
	struct unwind_file told = { 0 };
	struct cfi_rows rows = { 0 };
	int64_t begin_ns = now_ns();
	int error;

	if (file->has_rows || unwinder->is_full)
		return;
	error = code_file__read_rows(file, &rows);
	if (!error)
		error = tell_rules(unwinder, &rows, &told.rules);
	if (!error)
		error = file_rows__store(unwinder->chunks, &rows, &told);
	if (!error)
		error = tell_file(unwinder, file, &told);
	if (!note_room(unwinder, error) && error)
		tell_file(unwinder, file, &without_rows);
	log__debug("%s: %zu unwind rows, %zu rules, %zu not supported, in %.1f ms%s%s",
		   code_file__name(file), rows.count, rows.rule_count, rows.unsupported,
		   (double)(now_ns() - begin_ns) / 1e6, error ? ": " : "",
		   error ? strerror(-error) : "");
	cfi_rows__free(&rows);
	if (count_open(unwinder) > OPEN_FILES_MAX)
		code_file__read_symbols(file);
}

/* Writes the table of PROCESS, and tells BPF of it. */
static int tell_table(struct unwinder *unwinder, const struct unwound_process *process)
{
	struct unwind_table table = { .count = process->count };
	struct unwind_mapping *mappings;
	int error;

	if (!process->count)
		return 0;
	error = chunks__take(unwinder->chunks, sizeof(*mappings), process->count, true,
			     &table.first);
	if (error)
		return error;
	mappings = chunks__at(unwinder->chunks, sizeof(*mappings), table.first);
	for (size_t i = 0; i < process->count; i++) {
		const struct code_mapping *mapping = &process->mappings[i];

		mappings[i] = (struct unwind_mapping){
			.start = mapping->start,
			.end = mapping->end,
			.bias = mapping->bias,
			.file = mapping->file	       ? mapping->file->number
				: mapping->trampolines ? UNWIND_TRAMPOLINES
						       : UNWIND_NO_FILE,
		};
	}
	table.interpreter = process->interpreter ? process->interpreter->number : UNWIND_NO_FILE;
	return bpf_map_update_elem(unwinder->maps.tables, &process->serial, &table, 0) ? -errno : 0;
}

/* Whether a mapping without a file has the trampolines of -X perf, which are copies of one another:
 * Objects/asm_trampoline.S. */
static bool has_trampolines(pid_t pid, const struct mapping *mapping)
{
	uint8_t bytes[sizeof(trampoline)];

	return !mapping->inode && !mapping->is_vdso &&
	       !target_memory__read(pid, mapping->start, bytes, sizeof(bytes)) &&
	       memcmp(bytes, trampoline, sizeof(trampoline)) == 0;
}

/* What MAPPING of process PID is. */
static struct code_mapping look_at(struct unwinder *unwinder, pid_t pid, pid_t reader,
				   const struct mapping *mapping)
{
	struct code_mapping code = {
		.start = mapping->start,
		.end = mapping->end,
		.offset = mapping->offset,
		.bias = mapping->start - mapping->offset,
		.trampolines = has_trampolines(pid, mapping),
	};
	struct file_identity identity = { 0 };

	if (mapping->inode ? process__identify_mapping(pid, reader, mapping, &identity)
			   : !mapping->is_vdso)
		return code;
	code.file = get_file(unwinder, pid, reader, mapping, &identity);
	if (code.file && !code_file__bias(code.file, code.start, code.offset, &code.bias))
		code.file = NULL;
	return code;
}

/* Takes the executable ones of COUNT mappings. */
static void take_mappings(struct unwinder *unwinder, struct unwound_process *process, pid_t reader,
			  const struct mapping *mappings, ssize_t count)
{
	const struct mapping *python = NULL;

	for (ssize_t i = 0; i < count; i++)
		if (process->python - mappings[i].start < mappings[i].end - mappings[i].start)
			python = &mappings[i];
	free(process->mappings);
	process->mappings = xcalloc(count > 0 ? count : 1, sizeof(*process->mappings));
	process->count = 0;
	process->interpreter = NULL;
	for (ssize_t i = 0; i < count && process->count < MAPPINGS_MAX; i++) {
		struct code_mapping *code = &process->mappings[process->count];

		if (!mappings[i].executable)
			continue;
		*code = look_at(unwinder, process->pid, reader, &mappings[i]);
		process->count++;
		if (code->file && python && python->inode == mappings[i].inode &&
		    python->device == mappings[i].device) {
			code->file->is_interpreter = true;
			process->interpreter = code->file;
		}
	}
}

static bool is_first(const struct code_file *file)
{
	return file && (file->is_interpreter || code_file__is_c_library(file));
}

/* Makes the rows of its files: those that are on nearly each stack first. */
static void make_all_rows(struct unwinder *unwinder, const struct unwound_process *process)
{
	for (size_t i = 0; i < process->count; i++)
		if (is_first(process->mappings[i].file))
			make_rows(unwinder, process->mappings[i].file);
	for (size_t i = 0; i < process->count && process->whole; i++)
		if (process->mappings[i].file)
			make_rows(unwinder, process->mappings[i].file);
}

/* Whether what it maps to be executed is not what was read last. */
static bool has_changed(struct unwound_process *process, const struct mapping *mappings,
			ssize_t count)
{
	uint64_t digest = 1;

	for (ssize_t i = 0; i < count; i++) {
		const struct mapping *mapping = &mappings[i];

		if (!mapping->executable)
			continue;
		digest = digest_word(digest, mapping->start);
		digest = digest_word(digest, mapping->end);
		digest = digest_word(digest, mapping->offset);
		digest = digest_word(digest, mapping->inode ^ mapping->device << 32);
	}
	if (digest == process->digest && process->count)
		return false;
	process->digest = digest;
	return true;
}

static void read_process(struct unwinder *unwinder, struct unwound_process *process, int64_t now)
{
	pid_t reader = process__reader(process->pid);
	struct mapping *mappings;
	bool cut;
	ssize_t count = process__code_mappings(process->pid, reader, &mappings, &cut);

	process->lacks = false;
	if (count > 0 && has_changed(process, mappings, count)) {
		process->wait_ns = AGAIN_NS;
		take_mappings(unwinder, process, reader, mappings, count);
		note_room(unwinder, tell_table(unwinder, process));
		make_all_rows(unwinder, process);
	} else if (process->wait_ns < AGAIN_MAX_NS) {
		process->wait_ns *= 2;
	}
	process->again_ns = now + process->wait_ns;
	free(mappings);
}

/* A process that was forked begins with its parent's memory. */
static void copy_mappings(struct unwinder *unwinder, struct unwound_process *process,
			  const struct unwound_process *parent)
{
	process->mappings = xcalloc(parent->count, sizeof(*process->mappings));
	memcpy(process->mappings, parent->mappings, parent->count * sizeof(*process->mappings));
	process->count = parent->count;
	process->interpreter = parent->interpreter;
	note_room(unwinder, tell_table(unwinder, process));
}

void unwinder__add(struct unwinder *unwinder, uint64_t serial, pid_t pid, uint64_t python,
		   uint64_t parent_serial, bool whole)
{
	struct unwound_process *process = find(unwinder, serial);
	const struct unwound_process *parent = find(unwinder, parent_serial);

	if (process)
		return;
	process = xcalloc(1, sizeof(*process));
	process->serial = serial;
	process->pid = pid;
	process->python = python;
	process->whole = whole;
	process->wait_ns = AGAIN_NS;
	HASH_ADD(hh, unwinder->processes, serial, sizeof(process->serial), process);
	if (parent && parent->count)
		copy_mappings(unwinder, process, parent);
	else
		read_process(unwinder, process, now_ns());
}

static struct code_mapping *mapping_at(const struct unwound_process *process, uint64_t address)
{
	size_t count = sorted__count_up_to(process->mappings, process->count,
					   sizeof(*process->mappings), address);

	return count && address < process->mappings[count - 1].end ? &process->mappings[count - 1]
								   : NULL;
}

void unwinder__want(struct unwinder *unwinder, uint64_t serial, uint64_t address)
{
	struct unwound_process *process = find(unwinder, serial);
	const struct code_mapping *mapping;

	if (!process || process->ended || !unwinder->chunks)
		return;
	if (address == UNWIND_ANY_ADDRESS && process->count)
		return;
	mapping = mapping_at(process, address);
	if (mapping && mapping->file && !mapping->file->has_rows)
		make_rows(unwinder, mapping->file);
	else if (!mapping)
		process->lacks = true;
}

void unwinder__end(struct unwinder *unwinder, uint64_t serial)
{
	struct unwound_process *process = find(unwinder, serial);

	if (!process || process->ended)
		return;
	process->ended = true;
	bpf_map_delete_elem(unwinder->maps.tables, &serial);
}

void unwinder__forget(struct unwinder *unwinder, uint64_t serial)
{
	struct unwound_process *process = find(unwinder, serial);

	unwinder__end(unwinder, serial);
	if (process)
		free_process(unwinder, process);
}

/* Forgets all files, and what processes map.  Those that have not ended are read again at once, as
 * their samples have no names until that is done. */
static void begin_anew(struct unwinder *unwinder)
{
	const struct unwind_file no_rows = { 0 };
	const uint64_t no_anchor = 0;
	struct unwound_process *process;

	log__debug("unwind rows begin anew, after %u files", unwinder->file_count);
	for (process = unwinder->processes; process; process = process->hh.next) {
		bpf_map_delete_elem(unwinder->maps.tables, &process->serial);
		process->count = 0;
		process->interpreter = NULL;
		process->lacks = true;
		process->again_ns = 0;
		process->whole = false;
	}
	for (uint32_t i = 0; i < unwinder->file_count; i++)
		bpf_map_update_elem(unwinder->maps.files, &i, &no_rows, 0);
	chunks__begin_anew(unwinder->chunks);
	/* Now that no sample is under way which could write one. */
	for (uint32_t i = 0; i < unwinder->file_count; i++)
		bpf_map_update_elem(unwinder->maps.anchors, &i, &no_anchor, 0);
	free_files(unwinder);
	unwinder->file_count = unwinder->rule_count = 0;
	unwinder->is_full = false;
}

void unwinder__work(struct unwinder *unwinder, int64_t now_ns)
{
	struct unwound_process *process;

	if (!unwinder || !unwinder->chunks)
		return;
	if (unwinder->is_full && now_ns >= unwinder->anew_ns) {
		begin_anew(unwinder);
		unwinder->anew_ns = now_ns + ANEW_NS;
	}
	for (process = unwinder->processes; process; process = process->hh.next)
		if (process->lacks && !process->ended && now_ns >= process->again_ns)
			read_process(unwinder, process, now_ns);
}

struct code_place unwinder__place(const struct unwinder *unwinder, uint64_t serial,
				  uint64_t address)
{
	const struct unwound_process *process = find(unwinder, serial);
	const struct code_mapping *mapping = process ? mapping_at(process, address) : NULL;
	struct code_place place = { .is_mapped = mapping };

	if (!mapping || !mapping->file)
		return place;
	place.file = mapping->file;
	place.address = address - mapping->bias;
	place.start = mapping->start - mapping->bias;
	place.limit = mapping->end - mapping->bias;
	place.offset = mapping->offset;
	return place;
}
