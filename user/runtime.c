// SPDX-License-Identifier: BSD-2-Clause
/*
 * Every executable mapping of a file is a candidate, whatever its name: an
 * interpreter may be static, in libpython, embedded in a server or renamed.  What
 * holds a CPython defines _PyRuntime (3.7 and later; in .dynsym also when
 * stripped) or PyInterpreterState_Head (all).  Several files may: a small program
 * and its libpython, or a plug-in that brings its own; the one that lives is
 * where the list of interpreters is not empty.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf_image.h"
#include "process.h"
#include "runtime.h"
#include "target_memory.h"

/* More than CPython publishes in any version (3.15: 888). */
#define DEBUG_OFFSETS_BYTES 1024

#define DEBUG_OFFSETS_SINCE 0x030d0000

/* Reads the layout of the interpreter whose _PyRuntime is at ADDRESS. */
static int read_layout(pid_t pid, struct runtime *runtime, uint32_t version, uint64_t address)
{
	uint8_t published[DEBUG_OFFSETS_BYTES];
	int error = offsets__lookup(version, false, &runtime->offsets);

	if (!error && version >= DEBUG_OFFSETS_SINCE) {
		error = target_memory__read(pid, address, published, sizeof(published));
		if (!error)
			error = debug_offsets__apply(published, sizeof(published),
						     &runtime->offsets);
	}
	return error ? error : offsets__layout(&runtime->offsets, &runtime->layout);
}

/* Tells whether IMAGE holds a Python, and which. */
static int examine(pid_t pid, struct elf_image *image, uint64_t bias, struct runtime *runtime)
{
	uint64_t address, head, type;
	uint32_t version;
	int error;

	memset(runtime, 0, sizeof(*runtime));
	if (!elf_image__symbol(image, "_PyRuntime", &address)) {
		if (!elf_image__symbol(image, "PyInterpreterState_Head", &address))
			return -ENOEXEC;
		version = python_version__detect(pid, image, bias);
		python_version__format(version, runtime->version);
		return -ENOTSUP;
	}
	version = python_version__detect(pid, image, bias);
	if (!version)
		return -ENOTSUP;
	python_version__format(version, runtime->version);
	error = read_layout(pid, runtime, version, address + bias);
	if (error)
		return error == -EINVAL ? -ENOTSUP : error;
	runtime->interpreters = address + bias + runtime->offsets.runtime_interpreters_head;
	if (elf_image__symbol(image, "PyCode_Type", &type))
		runtime->code_type = type + bias;
	error = target_memory__read_pointer(pid, runtime->interpreters, &head);
	runtime->initialized = !error && head;
	return error;
}

static int examine_mapping(pid_t pid, const struct mapping *mapping, struct runtime *runtime)
{
	int fd = process__open_mapping(pid, mapping);
	struct elf_image *image;
	int error = -ENOEXEC;
	uint64_t bias;

	if (fd < 0)
		return fd == -EPERM || fd == -EACCES ? fd : -ENOEXEC;
	image = elf_image__open(fd);
	if (image && elf_image__bias(image, mapping->start, mapping->offset, &bias))
		error = examine(pid, image, bias, runtime);
	elf_image__close(image);
	return error;
}

/* Whether the file of mapping I was seen before it. */
static bool is_repeated(const struct mapping *mappings, ssize_t i)
{
	for (ssize_t j = 0; j < i; j++)
		if (mappings[j].inode == mappings[i].inode &&
		    mappings[j].device == mappings[i].device)
			return true;
	return false;
}

int runtime__find(pid_t pid, struct runtime *runtime)
{
	struct mapping *mappings;
	pid_t reader = process__reader(pid);
	ssize_t count = process__code_mappings(reader, &mappings);
	struct runtime candidate;
	int result = -ENOEXEC, error;

	memset(runtime, 0, sizeof(*runtime));
	for (ssize_t i = 0; i < count; i++) {
		if (is_repeated(mappings, i))
			continue;
		error = examine_mapping(reader, &mappings[i], &candidate);
		/* A Python that lives, before one that may yet, before one that we cannot walk. */
		if (error == -ENOEXEC || (result == 0 && (error || !candidate.initialized)))
			continue;
		*runtime = candidate;
		result = error;
		if (!error && candidate.initialized)
			break;
	}
	free(mappings);
	return count < 0 ? count : result;
}
