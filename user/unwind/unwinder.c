// SPDX-License-Identifier: BSD-2-Clause
/*
 * A file's rows are made once and serve all processes that map it.  A process has a table of its
 * executable mappings.  Rows and tables lie in chunks (chunks.h).  Once these are full, all files
 * and mappings are forgotten, and made again as samples need them.  That happens once a minute at
 * most, and each time half as often: if memory is too small, some files stay without rows.  The
 * same applies to names, which take our own memory.
 *
 * unwinder__work reads mappings and makes rows for a few milliseconds at a time, so that stacks are
 * drained in between.  A file's symbols are read when the first of its functions is named.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/hash_table.h"
#include "base/now.h"
#include "base/sorted.h"
#include "base/xalloc.h"
#include "pybpfprof.h"
#include "reading/process.h"
#include "reading/reader.h"
#include "reading/target_memory.h"
#include "unwind/perf_maps.h"
#include "unwind/unwinder.h"

/* The time between two readings of a process's mappings.  It doubles when nothing has changed. */
#define AGAIN_NS     1000000000LL
#define AGAIN_MAX_NS (32 * AGAIN_NS)

/* The time between two new beginnings.  It doubles each time. */
#define ANEW_NS	    (60 * 1000000000LL)
#define ANEW_MAX_NS (32 * ANEW_NS)

/* A turn begins nothing new after this time. */
#define TURN_NS (10 * 1000000LL)

/* No process needs more. */
#define MAPPINGS_MAX (CHUNK_MAPPINGS / 4)

/* The trampolines of -X perf, and the row at the return address in each.  Those of aarch64 are
 * unknown yet. */
#define TRAMPOLINE_BYTES 11
static const struct {
	uint8_t code[TRAMPOLINE_BYTES], size;
	uint32_t row;
} trampolines[] = {
	/* sub $8, %rsp; call *%rcx; add $8, %rsp; ret */
	{ { 0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3 },
	  11,
	  ROW(ROW_SP, 2, 0) },
	/* From 3.14 on: push %rbp; mov %rsp, %rbp; call *%rcx; pop %rbp; ret */
	{ { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3 }, 8, ROW(ROW_SP, 2, 2) },
};

/* endbr64, the first instruction of each in a build with -fcf-protection. */
static const uint8_t branch_target[] = { 0xf3, 0x0f, 0x1e, 0xfa };

struct code_mapping {
	struct unwind_mapping entry; /* BPF's; first, for look-ups by its start */
	uint64_t offset;
	struct code_file *file; /* NULL: none, or one without machine code */
};

struct unwound_process {
	uint64_t serial; /* key */
	pid_t pid;
	uint64_t python;
	struct code_mapping *mappings; /* by address */
	size_t count;
	struct code_file *interpreter;
	uint64_t digest; /* of the mappings; 0: they have to be taken again */
	bool whole, ended, lacks;
	int64_t again_ns, wait_ns; /* when its mappings may be read again; the last wait */
	UT_hash_handle hh;
};

struct unwinder {
	int tables_map; /* BPF's, the caller's; -1 once it has stopped */
	struct code_files files;
	struct perf_maps *perf_maps;
	struct unwound_process *processes;
	uint32_t generation;
	int64_t anew_ns, wait_ns; /* when all may begin anew; the last wait */
};

struct unwinder *unwinder__new(const struct unwinder_maps *maps, uint64_t memory)
{
	struct unwinder *unwinder = xcalloc(1, sizeof(*unwinder));

	unwinder->tables_map = maps->tables;
	unwinder->wait_ns = ANEW_NS;
	unwinder->perf_maps = perf_maps__new();
	unwinder->files = (struct code_files){ .files_map = maps->files,
					       .rules_map = maps->rules,
					       .chunks = chunks__new(maps->chunks, memory),
					       .memory.limit = memory };
	return unwinder;
}

static void free_process(struct unwinder *unwinder, struct unwound_process *process)
{
	HASH_DEL(unwinder->processes, process);
	perf_maps__forget(unwinder->perf_maps, process->serial);
	free(process->mappings);
	free(process);
}

void unwinder__free(struct unwinder *unwinder)
{
	struct unwound_process *process, *next;

	if (!unwinder)
		return;
	HASH_ITER (hh, unwinder->processes, process, next)
		free_process(unwinder, process);
	perf_maps__free(unwinder->perf_maps);
	code_files__free(&unwinder->files);
	chunks__free(unwinder->files.chunks);
	free(unwinder);
}

void unwinder__stop(struct unwinder *unwinder)
{
	if (!unwinder)
		return;
	chunks__free(unwinder->files.chunks);
	unwinder->files.chunks = NULL;
	unwinder->tables_map = -1;
}

static struct unwound_process *find(const struct unwinder *unwinder, uint64_t serial)
{
	return HASH_GET(hh, unwinder->processes, &serial);
}

/* Writes the table of PROCESS for BPF.  Keeps what BPF has learned of process SERIAL, which is
 * PROCESS or its parent. */
static int write_table(struct unwinder *unwinder, const struct unwound_process *process,
		       uint64_t serial)
{
	struct unwind_table table = { 0 };
	struct unwind_mapping *mappings;
	uint32_t first;
	int error;

	if (!process->count)
		return 0;
	error = chunks__take(unwinder->files.chunks, sizeof(*mappings), process->count, true,
			     &first);
	if (error)
		return error;
	mappings = chunks__at(unwinder->files.chunks, sizeof(*mappings), first);
	for (size_t i = 0; i < process->count; i++)
		mappings[i] = process->mappings[i].entry;
	if (bpf_map_lookup_elem(unwinder->tables_map, &serial, &table))
		table = (struct unwind_table){ 0 };
	table.first = first;
	table.count = process->count;
	table.generation = ++unwinder->generation;
	table.interpreter = process->interpreter ? process->interpreter->number : UNWIND_NO_FILE;
	return bpf_map_update_elem(unwinder->tables_map, &process->serial, &table, 0) ? -errno : 0;
}

/* The same.  On failure, PROCESS has neither a table nor mappings, and so no native frames. */
static void update_table(struct unwinder *unwinder, struct unwound_process *process,
			 uint64_t serial)
{
	int error = write_table(unwinder, process, serial);

	if (!error)
		return;
	/* If memory is full, the next beginning reads its mappings again. */
	if (!code_files__note_full(&unwinder->files, error))
		process->digest = 0;
	bpf_map_delete_elem(unwinder->tables_map, &process->serial);
	free(process->mappings);
	process->mappings = NULL;
	process->count = 0;
}

/* The row of the trampolines in a mapping without a file; 0: there are none.  They are copies of
 * one another (asm_trampoline.S in CPython). */
static uint32_t find_trampolines(pid_t pid, const struct mapping *mapping)
{
	uint8_t bytes[sizeof(branch_target) + TRAMPOLINE_BYTES], *code = bytes;

	if (mapping->inode || mapping->is_vdso ||
	    target_memory__read(pid, mapping->start, bytes, sizeof(bytes)))
		return 0;
	if (memcmp(code, branch_target, sizeof(branch_target)) == 0)
		code += sizeof(branch_target);
	for (size_t i = 0; i < sizeof(trampolines) / sizeof(trampolines[0]); i++)
		if (memcmp(code, trampolines[i].code, trampolines[i].size) == 0)
			return trampolines[i].row;
	return 0;
}

/* Describes MAPPING of process PID. */
static struct code_mapping look_at(struct unwinder *unwinder, pid_t pid, pid_t reader,
				   const struct mapping *mapping)
{
	uint32_t row = find_trampolines(pid, mapping);
	struct code_mapping code = {
		.entry = {
			.start = mapping->start,
			.end = mapping->end,
			.bias = mapping->start - mapping->offset,
			.file = row ? UNWIND_TRAMPOLINES : UNWIND_NO_FILE,
			.row = row,
		},
		.offset = mapping->offset,
	};
	struct file_identity identity = { 0 };
	struct code_file *file;
	uint64_t bias;

	if (mapping->inode ? process__identify_mapping(pid, reader, mapping, &identity)
			   : !mapping->is_vdso)
		return code;
	file = code_files__get(&unwinder->files, pid, reader, mapping, &identity);
	if (file && code_file__bias(file, mapping->start, mapping->offset, &bias)) {
		code.file = file;
		code.entry.file = file->number;
		code.entry.bias = bias;
	}
	return code;
}

/* Replaces the mappings of PROCESS by the executable ones of COUNT. */
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

/* Whether its executable mappings differ from the last ones.  Remembers them. */
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
	if (digest == process->digest)
		return false;
	process->digest = digest;
	return true;
}

static void read_process(struct unwinder *unwinder, struct unwound_process *process, int64_t now)
{
	uint64_t missed = reader__missed(process->pid);
	pid_t reader = process__reader(process->pid);
	struct mapping *mappings;
	bool cut;
	ssize_t count = process__code_mappings(process->pid, reader, &mappings, &cut);

	process->lacks = false;
	if (count > 0 && has_changed(process, mappings, count)) {
		process->wait_ns = AGAIN_NS;
		take_mappings(unwinder, process, reader, mappings, count);
		update_table(unwinder, process, process->serial);
		for (size_t i = 0; i < process->count; i++)
			code_file__want(process->mappings[i].file, !process->whole);
	} else if (process->wait_ns < AGAIN_MAX_NS) {
		process->wait_ns *= 2;
	}
	process->again_ns = now + process->wait_ns;
	/* Some files may be missing: all are read again. */
	if (reader__was_late(process->pid, missed)) {
		process->wait_ns = AGAIN_NS;
		process->again_ns = now + AGAIN_NS;
		process->digest = 0;
		process->lacks = true;
	}
	free(mappings);
}

/* A forked process begins with its parent's memory. */
static void copy_mappings(struct unwinder *unwinder, struct unwound_process *process,
			  const struct unwound_process *parent)
{
	process->mappings = xcalloc(parent->count, sizeof(*process->mappings));
	memcpy(process->mappings, parent->mappings, parent->count * sizeof(*process->mappings));
	process->count = parent->count;
	process->interpreter = parent->interpreter;
	update_table(unwinder, process, parent->serial);
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
		process->lacks = true;
}

static struct code_mapping *mapping_at(const struct unwound_process *process, uint64_t address)
{
	size_t count = sorted__count_up_to(process->mappings, process->count,
					   sizeof(*process->mappings), address);

	return count && address < process->mappings[count - 1].entry.end
		       ? &process->mappings[count - 1]
		       : NULL;
}

void unwinder__want(struct unwinder *unwinder, uint64_t serial, uint64_t address)
{
	struct unwound_process *process = find(unwinder, serial);
	const struct code_mapping *mapping;

	if (!process || process->ended || !unwinder->files.chunks)
		return;
	if (address == UNWIND_ANY_ADDRESS && process->count)
		return;
	mapping = mapping_at(process, address);
	if (mapping)
		code_file__want(mapping->file, false);
	else
		process->lacks = true;
}

void unwinder__end(struct unwinder *unwinder, uint64_t serial)
{
	struct unwound_process *process = find(unwinder, serial);

	if (!process || process->ended)
		return;
	process->ended = true;
	perf_maps__end(unwinder->perf_maps, serial);
	bpf_map_delete_elem(unwinder->tables_map, &serial);
}

void unwinder__forget(struct unwinder *unwinder, uint64_t serial)
{
	struct unwound_process *process = find(unwinder, serial);

	unwinder__end(unwinder, serial);
	if (process)
		free_process(unwinder, process);
}

/* Forgets all files and mappings.  Processes that have not ended are read again at once, because
 * their samples have no names before that. */
static void begin_anew(struct unwinder *unwinder)
{
	struct unwound_process *process;

	for (process = unwinder->processes; process; process = process->hh.next) {
		bpf_map_delete_elem(unwinder->tables_map, &process->serial);
		process->count = 0;
		process->interpreter = NULL;
		process->digest = 0;
		process->lacks = true;
		process->again_ns = 0;
		process->whole = false;
	}
	code_files__begin_anew(&unwinder->files);
}

/* Reads the mappings of processes that lack something.  Returns when the next one may be read. */
static int64_t read_lacking(struct unwinder *unwinder, int64_t now)
{
	struct unwound_process *process;
	int64_t due_ns = INT64_MAX;
	bool has_read = false;

	for (process = unwinder->processes; process; process = process->hh.next) {
		if (!process->lacks || process->ended)
			continue;
		if (process->again_ns <= now && (!has_read || now_ns() < now + TURN_NS)) {
			read_process(unwinder, process, now);
			has_read = true;
		} else if (process->again_ns < due_ns) {
			due_ns = process->again_ns > now ? process->again_ns : now;
		}
	}
	return due_ns;
}

int64_t unwinder__work(struct unwinder *unwinder, int64_t now)
{
	int64_t due_ns;

	if (!unwinder || !unwinder->files.chunks)
		return INT64_MAX;
	if (unwinder->files.memory.is_full)
		code_files__note_full(&unwinder->files, -ENOSPC);
	if (unwinder->files.is_full && now >= unwinder->anew_ns) {
		begin_anew(unwinder);
		unwinder->anew_ns = now + unwinder->wait_ns;
		if (unwinder->wait_ns < ANEW_MAX_NS)
			unwinder->wait_ns *= 2;
	}
	due_ns = read_lacking(unwinder, now);
	if (code_files__make(&unwinder->files, now + TURN_NS))
		return now;
	return due_ns;
}

uint64_t unwinder__bytes(const struct unwinder *unwinder)
{
	return unwinder && unwinder->files.chunks ? unwinder->files.chunks->used : 0;
}

const char *unwinder__jit_name(struct unwinder *unwinder, uint64_t serial, uint64_t address)
{
	const struct unwound_process *process = find(unwinder, serial);

	if (!process)
		return NULL;
	return perf_maps__name(unwinder->perf_maps, serial, process->ended ? 0 : process->pid,
			       address, now_ns());
}

bool unwinder__have_names(struct unwinder *unwinder)
{
	return unwinder && perf_maps__have_news(unwinder->perf_maps, now_ns());
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
	place.address = address - mapping->entry.bias;
	place.start = mapping->entry.start - mapping->entry.bias;
	place.limit = mapping->entry.end - mapping->entry.bias;
	place.offset = mapping->offset;
	return place;
}
