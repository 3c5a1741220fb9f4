// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/log.h"
#include "base/now.h"
#include "base/sorted.h"
#include "base/xalloc.h"
#include "pybpfprof.h"
#include "reading/reader.h"
#include "unwind/cfi.h"
#include "unwind/code_files.h"
#include "unwind/file_rows.h"
#include "unwind/plumbing.h"

/* Bytes that are read of one file, with its symbols. */
#define BYTES_MAX (256ULL * 1024 * 1024)

/* Files that stay open until their symbols are needed. */
#define OPEN_FILES_MAX 128

/* The kernel maps this image into each process.  No section of it is larger. */
#define VDSO_BYTES 8192
#define VDSO_NAME  "[vdso]"

/* The kernel appends this to the path of a deleted file. */
#define DELETED_TEXT " (deleted)"

/* Only these files have the functions that start a program or thread. */
static const char *const c_libraries[] = { "libc.so", "libc-2.", "libpthread", "ld-musl" };

static char *read_path(int fd)
{
	char link[32], path[PATH_MAX];
	ssize_t length, cut = strlen(DELETED_TEXT);

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path));
	if (length <= 0)
		return xstrdup("?");
	if (length > cut && memcmp(path + length - cut, DELETED_TEXT, cut) == 0)
		length -= cut;
	return xstrndup(path, length);
}

static struct code_file *open_file(int fd, pid_t pid, const struct file_identity *identity,
				   struct code_memory *memory)
{
	struct code_file *file = xcalloc(1, sizeof(*file));
	const Elf64_Phdr *segments;

	file->identity = *identity;
	file->memory = memory;
	file->path = read_path(fd);
	file->budget = (struct elf_budget){ .pid = pid, .bytes = BYTES_MAX };
	file->image = elf_image__open(fd, &file->budget);
	if (!file->image || !elf_image__is_native(file->image))
		return file;
	segments = file->image->segments;
	for (size_t i = 0; i < file->image->header.e_phnum && file->part_count < CODE_PARTS_MAX;
	     i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_X)
			file->parts[file->part_count++] = segments[i];
	elf_image__build_id(file->image, file->build_id);
	return file;
}

static uint64_t function_bytes(const struct code_file *file)
{
	return file->function_count * sizeof(*file->functions);
}

static void free_file(struct code_file *file)
{
	elf_image__close(file->image);
	file->memory->used -= symbols__bytes(file->symbols) + function_bytes(file);
	symbols__free(file->symbols);
	free(file->functions);
	free(file->path);
	free(file);
}

static const char *name_of(const struct code_file *file)
{
	const char *slash = strrchr(file->path, '/');

	return slash && slash[1] ? slash + 1 : file->path;
}

bool code_file__bias(const struct code_file *file, uint64_t start, uint64_t offset, uint64_t *bias)
{
	return elf_segments__bias(file->parts, file->part_count, start, offset, true, bias);
}

/* Closes the file once all is read. */
static void close_read(struct code_file *file)
{
	if (!file->has_rows || !file->has_symbols)
		return;
	elf_image__close(file->image);
	file->image = NULL;
}

/* Whether the process that FILE is read of does not answer, but may later. */
static bool has_to_wait(const struct code_file *file)
{
	return !reader__answers(file->budget.pid) && !reader__has_given_up(file->budget.pid);
}

/* The budget of FILE, which is read now. */
static struct elf_budget begin_reading(struct code_file *file)
{
	file->budget.missed = reader__missed(file->budget.pid);
	return file->budget;
}

/* Whether the process did not answer for some of what was read since BEGUN, begin_reading's.  Then
 * that is read again, and spends nothing. */
static bool was_late(struct code_file *file, const struct elf_budget *begun)
{
	if (!reader__was_late(begun->pid, begun->missed))
		return false;
	file->budget = *begun;
	return true;
}

void code_file__read_symbols(struct code_file *file)
{
	struct elf_budget begun;

	if (file->has_symbols || has_to_wait(file))
		return;
	begun = begin_reading(file);
	if (file->memory->used >= file->memory->limit)
		file->memory->is_full = true;
	else if (file->image)
		file->symbols = symbols__read(file->image, file->memory->limit);
	if (was_late(file, &begun)) {
		symbols__free(file->symbols);
		file->symbols = NULL;
		return;
	}
	file->has_symbols = true;
	file->memory->used += symbols__bytes(file->symbols);
	close_read(file);
}

static bool has_prefix(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_c_library(const struct code_file *file)
{
	for (size_t i = 0; i < sizeof(c_libraries) / sizeof(c_libraries[0]); i++)
		if (has_prefix(name_of(file), c_libraries[i]))
			return true;
	return false;
}

/* Whether it has plumbing: functions of CPython itself, or those that start a thread. */
static bool has_plumbing(const struct code_file *file)
{
	return file->is_interpreter || is_c_library(file) || has_prefix(name_of(file), "python");
}

/* Whether it is the greenlet module: "_greenlet.cpython-311-x86_64-linux-gnu.so". */
static bool is_greenlet(const struct code_file *file)
{
	const char *name = name_of(file);

	return has_prefix(name + (name[0] == '_'), "greenlet.");
}

/* Reads and marks the rows of FILE.  0, -ENOENT if it has no unwind data, -ETIMEDOUT if they can be
 * read later, or as cfi__read. */
static int read_rows(struct code_file *file, struct cfi_rows *rows)
{
	bool plumbing = has_plumbing(file), is_marked = plumbing || is_greenlet(file);
	struct elf_budget begun;
	struct cfi_section section;
	void *bytes = NULL;
	int error;

	if (is_marked)
		code_file__read_symbols(file);
	if (has_to_wait(file) || (is_marked && !file->has_symbols))
		return -ETIMEDOUT;
	begun = begin_reading(file);
	if (file->image)
		bytes = cfi__load(file->image, &section);
	if (was_late(file, &begun)) {
		free(bytes);
		return -ETIMEDOUT;
	}
	file->has_rows = true;
	close_read(file);
	if (!bytes)
		return -ENOENT;
	error = cfi__read(&section, rows);
	free(bytes);
	if (error)
		return error;
	file->functions = rows->starts;
	file->function_count = rows->start_count;
	rows->starts = NULL;
	file->memory->used += function_bytes(file);
	if (is_marked)
		file_rows__mark(rows, file->symbols, !plumbing);
	return 0;
}

/* The start of the function at ADDRESS by the unwind data; ADDRESS itself if there is none. */
static uint64_t frame_start(const struct code_file *file, uint64_t address)
{
	size_t count = sorted__count_up_to(file->functions, file->function_count,
					   sizeof(*file->functions), address);

	return count ? file->functions[count - 1] : address;
}

static const char *symbol_at(struct code_file *file, uint64_t address, uint64_t *start)
{
	uint64_t size;

	code_file__read_symbols(file);
	return symbols__name(file->symbols, address, start, &size);
}

uint64_t code_file__function_start(struct code_file *file, uint64_t address)
{
	uint64_t start;

	return symbol_at(file, address, &start) ? start : frame_start(file, address);
}

char *code_file__describe(struct code_file *file, uint64_t address)
{
	const char *symbol;
	char *readable, *text;
	uint64_t start;

	symbol = symbol_at(file, address, &start);
	if (!symbol)
		return xasprintf("%s+0x%" PRIx64, name_of(file), frame_start(file, address));
	readable = symbols__demangle(symbol);
	text = xasprintf("%s (%s)", readable, name_of(file));
	free(readable);
	return text;
}

bool code_file__is_plumbing(struct code_file *file, uint64_t address)
{
	uint64_t start;
	const char *symbol = symbol_at(file, address, &start);

	if (!symbol)
		return false;
	return has_plumbing(file) ? plumbing__is_name(symbol) : strcmp(symbol, "_start") == 0;
}

void code_files__free(struct code_files *files)
{
	HASH_EMPTY(files->all, free_file);
}

/* A file with the vDSO's image, which is the same in this process; -1: there is none. */
static int open_vdso(void)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	int fd = image ? memfd_create(VDSO_NAME, MFD_CLOEXEC) : -1;

	/* If it is shorter, fewer bytes are written. */
	if (fd >= 0 && write(fd, image, VDSO_BYTES) <= 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static size_t count_open(const struct code_files *files)
{
	const struct code_file *file;
	size_t count = 0;

	for (file = files->all; file; file = file->hh.next)
		count += file->image != NULL;
	return count;
}

/* Whether nearly every stack needs its rows. */
static bool is_first(const struct code_file *file)
{
	return file->is_interpreter || is_c_library(file);
}

void code_file__want(struct code_file *file, bool first)
{
	if (file && !file->has_rows && (!first || is_first(file)))
		file->is_wanted = true;
}

struct code_file *code_files__get(struct code_files *files, pid_t pid, pid_t reader,
				  const struct mapping *mapping,
				  const struct file_identity *identity)
{
	struct file_identity found = { 0 };
	struct code_file *file = HASH_GET(hh, files->all, identity);
	uint64_t missed;
	int fd;

	if (file)
		return file;
	if (HASH_COUNT(files->all) == UNWIND_FILES_MAX) {
		files->is_full = true;
		return NULL;
	}
	fd = mapping->inode ? process__open_mapping(pid, reader, mapping) : open_vdso();
	if (fd < 0)
		return NULL;
	/* Another file may be mapped there now. */
	if (mapping->inode &&
	    (!target_file__identify(fd, &found) || memcmp(&found, identity, sizeof(found)) != 0)) {
		target_file__close(pid, fd);
		return NULL;
	}
	missed = reader__missed(pid);
	file = open_file(fd, pid, identity, &files->memory);
	if (!file->part_count || reader__was_late(pid, missed)) {
		free_file(file);
		return NULL;
	}
	if (mapping->is_vdso) {
		free(file->path);
		file->path = xstrdup(VDSO_NAME);
	}
	file->number = HASH_COUNT(files->all);
	file->serial = ++files->serial;
	HASH_ADD(hh, files->all, identity, sizeof(file->identity), file);
	/* To make its rows reads and closes it. */
	if (count_open(files) > OPEN_FILES_MAX)
		code_file__want(file, false);
	return file;
}

/* Tells BPF where the rows of FILE are.  A sample may read the entry meanwhile, so the number of
 * pages is written last. */
static int write_file(const struct code_files *files, const struct code_file *file,
		      const struct unwind_file *rows)
{
	struct unwind_file before = *rows;
	int error;

	before.pages = 0;
	error = bpf_map_update_elem(files->files_map, &file->number, &before, 0);
	if (!error)
		error = bpf_map_update_elem(files->files_map, &file->number, rows, 0);
	return error ? -errno : 0;
}

static int write_rules(struct code_files *files, const struct cfi_rows *rows, uint32_t *first)
{
	*first = files->rule_count;
	if (rows->rule_count > UNWIND_RULES_MAX / 8)
		return -E2BIG;
	if (rows->rule_count > UNWIND_RULES_MAX - files->rule_count)
		return -ENOSPC;
	for (size_t i = 0; i < rows->rule_count; i++) {
		uint32_t number = files->rule_count++;

		if (bpf_map_update_elem(files->rules_map, &number, &rows->rules[i], 0))
			return -errno;
	}
	return 0;
}

bool code_files__note_full(struct code_files *files, int error)
{
	if (error != -ENOSPC && error != -ENOMEM && error != -EPERM)
		return false;
	if (!files->was_full && error == -ENOSPC)
		log__warning(
			"native frames have used up --unwind-memory: some stacks lack them, or "
			"their names; raise it");
	else if (!files->was_full)
		log__warning("the kernel refuses memory for unwind tables (%s): some stacks lack "
			     "native frames; %s",
			     strerror(-error),
			     error == -EPERM ? "grant CAP_BPF; before Linux 5.11 also ulimit -l "
					       "unlimited"
					     : "raise the control group's limit");
	files->is_full = files->was_full = true;
	return true;
}

static void make_rows(struct code_files *files, struct code_file *file)
{
	/* No address of the file is in this page. */
	const struct unwind_file without_rows = { .base = UINT64_MAX, .pages = 1 };
	struct unwind_file entry = { 0 };
	struct cfi_rows rows = { 0 };
	int64_t begin_ns = now_ns();
	int error;

	error = read_rows(file, &rows);
	file->is_wanted = error == -ETIMEDOUT;
	if (!error)
		error = write_rules(files, &rows, &entry.rules);
	if (!error)
		error = file_rows__store(files->chunks, &rows, &entry);
	if (!error)
		error = write_file(files, file, &entry);
	if (!code_files__note_full(files, error) && error && !file->is_wanted)
		write_file(files, file, &without_rows);
	log__debug("%s: %zu unwind rows, %zu rules, %zu not supported, in %.1f ms%s%s",
		   name_of(file), rows.count, rows.rule_count, rows.unsupported,
		   (double)(now_ns() - begin_ns) / 1e6, error ? ": " : "",
		   error ? strerror(-error) : "");
	cfi_rows__free(&rows);
	if (count_open(files) > OPEN_FILES_MAX)
		code_file__read_symbols(file);
}

bool code_files__make(struct code_files *files, int64_t until_ns)
{
	struct code_file *file;
	bool has_made = false;

	for (int first = 1; first >= 0; first--)
		for (file = files->all; file; file = file->hh.next) {
			if (!file->is_wanted || is_first(file) < first)
				continue;
			if (files->is_full)
				return false;
			if (has_made && now_ns() >= until_ns)
				return true;
			make_rows(files, file);
			has_made = true;
		}
	return false;
}

void code_files__begin_anew(struct code_files *files)
{
	const struct unwind_file no_rows = { 0 };

	log__debug("unwind rows begin anew, after %u files", HASH_COUNT(files->all));
	for (uint32_t i = 0; i < HASH_COUNT(files->all); i++)
		bpf_map_update_elem(files->files_map, &i, &no_rows, 0);
	chunks__begin_anew(files->chunks);
	code_files__free(files);
	files->rule_count = 0;
	files->is_full = files->memory.is_full = false;
}
