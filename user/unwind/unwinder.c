// SPDX-License-Identifier: BSD-2-Clause
/*
 * A file's rows are made once and serve all processes that map it.  A process has a table of its
 * executable mappings.  Both lie in chunks (chunks.h), where room is only taken: once it is used
 * up, everything begins anew, and what samples then lack is made.  That is done once a minute at
 * most, and each time half as often: with too little memory, some files stay without rows.  The
 * same holds for names, which take our own memory.
 *
 * Mappings and rows are read by unwinder__work, a few milliseconds at a time: stacks are drained
 * between.  A file's symbols are read when the first of its functions is named.
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
#include "reading/process.h"
#include "reading/target_files.h"
#include "reading/target_memory.h"
#include "unwind/chunks.h"
#include "unwind/code_files.h"
#include "unwind/perf_maps.h"
#include "unwind/unwinder.h"

/* How often a process's mappings are read again at most: each time that nothing has changed, half
 * as often. */
#define AGAIN_NS     1000000000LL
#define AGAIN_MAX_NS (32 * AGAIN_NS)

/* How often everything begins anew at most: each time, half as often. */
#define ANEW_NS	    (60 * 1000000000LL)
#define ANEW_MAX_NS (32 * ANEW_NS)

/* A turn begins nothing more after that time. */
#define TURN_NS (10 * 1000000LL)

/* No process needs more. */
#define MAPPINGS_MAX (CHUNK_MAPPINGS / 4)

/* The trampolines of -X perf, and the row at the return address in each.  Those of aarch64 are not
 * known yet. */
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

/* endbr64: what each begins with in a build with -fcf-protection. */
static const uint8_t branch_target[] = { 0xf3, 0x0f, 0x1e, 0xfa };

struct code_mapping {
	uint64_t start; /* first: they are looked up by it */
	uint64_t end, bias, offset;
	struct code_file *file;	 /* NULL: none, or none of machine code */
	uint32_t trampoline_row; /* without a file: of those of -X perf; 0: it has none */
};

struct unwound_process {
	uint64_t serial; /* key */
	pid_t pid;
	uint64_t python;
	struct code_mapping *mappings; /* by address */
	size_t count;
	struct code_file *interpreter;
	uint64_t digest; /* of what it mapped when that was read last; 0: it is to be taken anew */
	bool whole, ended, lacks;
	int64_t again_ns, wait_ns; /* when its mappings may be read again, and how long that was */
	UT_hash_handle hh;
};

struct unwinder {
	struct unwinder_maps maps;
	struct chunks *chunks;
	struct code_files files;
	struct perf_maps *perf_maps;
	struct unwound_process *processes;
	uint32_t generation;
	int64_t anew_ns, wait_ns; /* not before, and how long that was */
};

struct unwinder *unwinder__new(const struct unwinder_maps *maps, uint64_t memory)
{
	struct unwinder *unwinder = xcalloc(1, sizeof(*unwinder));

	unwinder->maps = *maps;
	unwinder->wait_ns = ANEW_NS;
	unwinder->perf_maps = perf_maps__new();
	unwinder->chunks = chunks__new(maps->chunks, memory);
	unwinder->files = (struct code_files){ .files_map = maps->files,
					       .rules_map = maps->rules,
					       .chunks = unwinder->chunks,
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
	chunks__free(unwinder->chunks);
	free(unwinder);
}

void unwinder__stop(struct unwinder *unwinder)
{
	if (!unwinder)
		return;
	chunks__free(unwinder->chunks);
	unwinder->chunks = NULL;
	unwinder->maps = (struct unwinder_maps){ -1, -1, -1, -1 };
}

static struct unwound_process *find(const struct unwinder *unwinder, uint64_t serial)
{
	struct unwound_process *process;

	HASH_FIND(hh, unwinder->processes, &serial, sizeof(serial), process);
	return process;
}

/* Writes the table of PROCESS, and tells BPF of it.  What BPF has learned of it so far, or of the
 * process that forked it, is that of process SERIAL. */
static int write_table(struct unwinder *unwinder, const struct unwound_process *process,
		       uint64_t serial)
{
	struct unwind_table table = { 0 };
	struct unwind_mapping *mappings;
	uint32_t first;
	int error;

	if (!process->count)
		return 0;
	error = chunks__take(unwinder->chunks, sizeof(*mappings), process->count, true, &first);
	if (error)
		return error;
	mappings = chunks__at(unwinder->chunks, sizeof(*mappings), first);
	for (size_t i = 0; i < process->count; i++) {
		const struct code_mapping *mapping = &process->mappings[i];

		mappings[i] = (struct unwind_mapping){
			.start = mapping->start,
			.end = mapping->end,
			.bias = mapping->bias,
			.file = mapping->file		  ? mapping->file->number
				: mapping->trampoline_row ? UNWIND_TRAMPOLINES
							  : UNWIND_NO_FILE,
			.row = mapping->trampoline_row,
		};
	}
	if (bpf_map_lookup_elem(unwinder->maps.tables, &serial, &table))
		table = (struct unwind_table){ 0 };
	table.first = first;
	table.count = process->count;
	table.generation = ++unwinder->generation;
	table.interpreter = process->interpreter ? process->interpreter->number : UNWIND_NO_FILE;
	return bpf_map_update_elem(unwinder->maps.tables, &process->serial, &table, 0) ? -errno : 0;
}

/* Without a table a process has no native frames, and nothing that it maps is to be kept. */
static void tell_table(struct unwinder *unwinder, struct unwound_process *process, uint64_t serial)
{
	int error = write_table(unwinder, process, serial);

	if (!error)
		return;
	/* Otherwise it is taken once all begins anew. */
	if (!code_files__note_full(&unwinder->files, error))
		process->digest = 0;
	bpf_map_delete_elem(unwinder->maps.tables, &process->serial);
	free(process->mappings);
	process->mappings = NULL;
	process->count = 0;
}

/* The row of the trampolines in a mapping without a file, which are copies of one another:
 * asm_trampoline.S.  0: there are none. */
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

/* What MAPPING of process PID is. */
static struct code_mapping look_at(struct unwinder *unwinder, pid_t pid, pid_t reader,
				   const struct mapping *mapping)
{
	struct code_mapping code = {
		.start = mapping->start,
		.end = mapping->end,
		.offset = mapping->offset,
		.bias = mapping->start - mapping->offset,
		.trampoline_row = find_trampolines(pid, mapping),
	};
	struct file_identity identity = { 0 };

	if (mapping->inode ? process__identify_mapping(pid, reader, mapping, &identity)
			   : !mapping->is_vdso)
		return code;
	code.file = code_files__get(&unwinder->files, pid, reader, mapping, &identity);
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
	if (digest == process->digest)
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
		tell_table(unwinder, process, process->serial);
		for (size_t i = 0; i < process->count; i++)
			if (process->whole || code_files__is_first(process->mappings[i].file))
				code_files__want(&unwinder->files, process->mappings[i].file);
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
	tell_table(unwinder, process, parent->serial);
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
	if (mapping)
		code_files__want(&unwinder->files, mapping->file);
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
	struct unwound_process *process;

	for (process = unwinder->processes; process; process = process->hh.next) {
		bpf_map_delete_elem(unwinder->maps.tables, &process->serial);
		process->count = 0;
		process->interpreter = NULL;
		process->digest = 0;
		process->lacks = true;
		process->again_ns = 0;
		process->whole = false;
	}
	code_files__begin_anew(&unwinder->files);
}

/* Reads what processes map that lack something; returns when the next of them may be read. */
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

	if (!unwinder || !unwinder->chunks)
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
	if (unwinder->files.wants_rows && code_files__make(&unwinder->files, now + TURN_NS))
		return now;
	return due_ns;
}

uint64_t unwinder__bytes(const struct unwinder *unwinder)
{
	return unwinder && unwinder->chunks ? chunks__used(unwinder->chunks) : 0;
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
	place.address = address - mapping->bias;
	place.start = mapping->start - mapping->bias;
	place.limit = mapping->end - mapping->bias;
	place.offset = mapping->offset;
	return place;
}
