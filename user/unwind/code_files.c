// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "pybpfprof.h"
#include "reading/target_files.h"
#include "unwind/code_files.h"
#include "unwind/file_rows.h"

/* Files that are kept open until their symbols are needed. */
#define OPEN_FILES_MAX 128

/* The kernel maps this image into each process.  None of its sections is larger. */
#define VDSO_BYTES 8192
#define VDSO_NAME  "[vdso]"

void code_files__free(struct code_files *files)
{
	struct code_file *file, *next;

	HASH_ITER (hh, files->all, file, next) {
		HASH_DEL(files->all, file);
		code_file__free(file);
	}
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

static size_t count_open(const struct code_files *files)
{
	const struct code_file *file;
	size_t count = 0;

	for (file = files->all; file; file = file->hh.next)
		count += file->image != NULL;
	return count;
}

void code_files__want(struct code_files *files, struct code_file *file)
{
	if (file && !file->has_rows)
		file->is_wanted = files->wants_rows = true;
}

struct code_file *code_files__get(struct code_files *files, pid_t pid, pid_t reader,
				  const struct mapping *mapping,
				  const struct file_identity *identity)
{
	struct file_identity found = { 0 };
	struct code_file *file;
	int fd;

	HASH_FIND(hh, files->all, identity, sizeof(*identity), file);
	if (file)
		return file;
	if (files->count == UNWIND_FILES_MAX) {
		files->is_full = true;
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
	file = code_file__new(fd, pid, identity, &files->memory);
	if (!file->part_count) {
		code_file__free(file);
		return NULL;
	}
	if (mapping->is_vdso) {
		free(file->path);
		file->path = xstrdup(VDSO_NAME);
	}
	file->number = files->count++;
	file->serial = ++files->serial;
	HASH_ADD(hh, files->all, identity, sizeof(file->identity), file);
	/* All of it is read then, and it is closed. */
	if (count_open(files) > OPEN_FILES_MAX)
		code_files__want(files, file);
	return file;
}

/* Tells BPF where the rows of FILE are.  A sample may look between: what says that they are there
 * is written last. */
static int tell_file(const struct code_files *files, const struct code_file *file,
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

static int tell_rules(struct code_files *files, const struct cfi_rows *rows, uint32_t *first)
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
	/* None of its addresses is in this page. */
	const struct unwind_file without_rows = { .base = UINT64_MAX, .pages = 1 };
	struct unwind_file told = { 0 };
	struct cfi_rows rows = { 0 };
	int64_t begin_ns = now_ns();
	int error;

	file->is_wanted = false;
	error = code_file__read_rows(file, &rows);
	if (!error)
		error = tell_rules(files, &rows, &told.rules);
	if (!error)
		error = file_rows__store(files->chunks, &rows, &told);
	if (!error)
		error = tell_file(files, file, &told);
	if (!code_files__note_full(files, error) && error)
		tell_file(files, file, &without_rows);
	log__debug("%s: %zu unwind rows, %zu rules, %zu not supported, in %.1f ms%s%s",
		   code_file__name(file), rows.count, rows.rule_count, rows.unsupported,
		   (double)(now_ns() - begin_ns) / 1e6, error ? ": " : "",
		   error ? strerror(-error) : "");
	cfi_rows__free(&rows);
	if (count_open(files) > OPEN_FILES_MAX)
		code_file__read_symbols(file);
}

bool code_files__is_first(const struct code_file *file)
{
	return file && (file->is_interpreter || code_file__is_c_library(file));
}

bool code_files__make(struct code_files *files, int64_t until_ns)
{
	struct code_file *file;
	bool has_made = false;

	for (int first = 1; first >= 0; first--)
		for (file = files->all; file; file = file->hh.next) {
			if (!file->is_wanted || code_files__is_first(file) < first)
				continue;
			if (files->is_full)
				return false;
			if (has_made && now_ns() >= until_ns)
				return true;
			make_rows(files, file);
			has_made = true;
		}
	files->wants_rows = false;
	return false;
}

void code_files__begin_anew(struct code_files *files)
{
	const struct unwind_file no_rows = { 0 };

	log__debug("unwind rows begin anew, after %u files", files->count);
	for (uint32_t i = 0; i < files->count; i++)
		bpf_map_update_elem(files->files_map, &i, &no_rows, 0);
	chunks__begin_anew(files->chunks);
	code_files__free(files);
	files->count = files->rule_count = 0;
	files->is_full = files->memory.is_full = files->wants_rows = false;
}
