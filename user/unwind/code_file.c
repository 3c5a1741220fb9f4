// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sorted.h"
#include "base/xalloc.h"
#include "unwind/code_file.h"
#include "unwind/elf_frames.h"
#include "unwind/file_rows.h"
#include "unwind/plumbing.h"

/* What is read of one file, with its symbols. */
#define BYTES_MAX (256ULL * 1024 * 1024)

/* How the kernel marks the path of a file that was removed. */
#define DELETED_TEXT " (deleted)"

/* Its start-up functions are in no other. */
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

static void take_parts(struct code_file *file)
{
	size_t count;
	const Elf64_Phdr *segments = elf_image__segments(file->image, &count);

	for (size_t i = 0; i < count && file->part_count < CODE_PARTS_MAX; i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_X)
			file->parts[file->part_count++] = segments[i];
}

struct code_file *code_file__new(int fd, pid_t pid, const struct file_identity *identity,
				 struct code_memory *memory)
{
	struct code_file *file = xcalloc(1, sizeof(*file));

	file->identity = *identity;
	file->memory = memory;
	file->path = read_path(fd);
	file->budget = (struct elf_budget){ .pid = pid, .bytes = BYTES_MAX };
	file->image = elf_image__open(fd, &file->budget);
	if (file->image && !elf_image__is_native(file->image)) {
		elf_image__close(file->image);
		file->image = NULL;
	}
	if (file->image) {
		take_parts(file);
		elf_image__build_id(file->image, file->build_id);
	}
	return file;
}

static uint64_t function_bytes(const struct code_file *file)
{
	return file->function_count * sizeof(*file->functions);
}

void code_file__free(struct code_file *file)
{
	if (!file)
		return;
	elf_image__close(file->image);
	file->memory->used -= symbols__bytes(file->symbols) + function_bytes(file);
	symbols__free(file->symbols);
	free(file->functions);
	free(file->path);
	free(file);
}

const char *code_file__name(const struct code_file *file)
{
	const char *slash = strrchr(file->path, '/');

	return slash && slash[1] ? slash + 1 : file->path;
}

bool code_file__bias(const struct code_file *file, uint64_t start, uint64_t offset, uint64_t *bias)
{
	return elf_segments__bias(file->parts, file->part_count, start, offset, true, bias);
}

/* Closes it once all is read. */
static void close_read(struct code_file *file)
{
	if (!file->has_rows || !file->has_symbols)
		return;
	elf_image__close(file->image);
	file->image = NULL;
}

void code_file__read_symbols(struct code_file *file)
{
	if (file->has_symbols)
		return;
	file->has_symbols = true;
	if (file->memory->used >= file->memory->limit)
		file->memory->is_full = true;
	else if (file->image)
		file->symbols = symbols__read(file->image, file->memory->limit);
	file->memory->used += symbols__bytes(file->symbols);
	close_read(file);
}

bool code_file__is_c_library(const struct code_file *file)
{
	const char *name = code_file__name(file);

	for (size_t i = 0; i < sizeof(c_libraries) / sizeof(c_libraries[0]); i++)
		if (strncmp(name, c_libraries[i], strlen(c_libraries[i])) == 0)
			return true;
	return false;
}

/* Whether some of its functions are plumbing: CPython's own, or what a thread begins with. */
static bool has_plumbing(const struct code_file *file)
{
	return file->is_interpreter || code_file__is_c_library(file) ||
	       strncmp(code_file__name(file), "python", strlen("python")) == 0;
}

/* Whether it is the greenlet module: "_greenlet.cpython-311-x86_64-linux-gnu.so". */
static bool is_of_greenlet(const struct code_file *file)
{
	const char *name = code_file__name(file);

	return strncmp(name + (name[0] == '_'), "greenlet.", strlen("greenlet.")) == 0;
}

int code_file__read_rows(struct code_file *file, struct cfi_rows *rows)
{
	bool plumbing = has_plumbing(file);
	struct cfi_section section;
	void *bytes = NULL;
	int error;

	file->has_rows = true;
	if (file->image)
		bytes = elf_frames__load(file->image, &section);
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
	if (plumbing || is_of_greenlet(file)) {
		code_file__read_symbols(file);
		file_rows__mark(rows, file->symbols, !plumbing);
	}
	return 0;
}

/* The same by its unwind data. */
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
		return xasprintf("%s+0x%" PRIx64, code_file__name(file),
				 frame_start(file, address));
	readable = symbols__demangle(symbol);
	text = xasprintf("%s (%s)", readable, code_file__name(file));
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
