// SPDX-License-Identifier: BSD-2-Clause
/*
 * Up to 3.6 the list of interpreters begins in a static variable, interp_head, which a
 * stripped file does not name.  The function PyInterpreterState_Head is always named,
 * and only returns that variable.  Its machine code is one load relative to the code, a
 * return, and perhaps instructions that make and remove a stack frame or mark the
 * targets of calls.  Any other code is not understood, and then the list is not found.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "architecture/architecture.h"
#include "python/interpreters.h"
#include "python/python_image.h"
#include "python/unnamed.h"
#include "reading/process.h"
#include "reading/target_memory.h"

/* _Py_DebugOffsets begins with this and PY_VERSION_HEX (Include/internal/pycore_debug_offsets.h).
 */
#define DEBUG_COOKIE "xdebugpy"

/* The cache tag of the import system (Python/sysmodule.c); "cpython-38" for 3.8. */
#define CACHE_TAG "cpython-"

/* Every CPython prints this before it aborts (Python/pythonrun.c, pylifecycle.c). */
#define LAST_WORDS "Fatal Python error: "

/* The first version with a section .PyRuntime. */
#define SECTION_SINCE 0x030a0000

/* PyPy's own version in sys.version, "[PyPy 7.3.11 with GCC 12.2.0]".  It is in writable data. */
#define PYPY_VERSION	   "[PyPy "
#define PYPY_VERSION_BYTES 16

/* A program with more constants is not searched for a Python without symbols. */
#define CONSTANTS_BYTES_MAX (256 * 1024 * 1024)

/* The note of an image without a Python's constants.  Otherwise the note is the version. */
#define NO_PYTHON 1

#define RELEASE_LEVEL_FINAL 0xf

static const struct python_kind pypy = { "PyPy", "CPython" };
static const struct python_kind narrow = { "a 32-bit Python", "64-bit Python" };

/* Programs for other architectures, which run in an emulator.  It maps them as the kernel would. */
static const struct {
	uint16_t machine;
	struct python_kind kind;
} foreign[] = {
	{ EM_X86_64, { "an x86-64 Python", NULL } }, { EM_AARCH64, { "an aarch64 Python", NULL } },
	{ EM_386, { "a 32-bit x86 Python", NULL } }, { EM_ARM, { "a 32-bit Arm Python", NULL } },
	{ EM_RISCV, { "a RISC-V Python", NULL } },   { EM_PPC64, { "a POWER Python", NULL } },
	{ EM_MIPS, { "a MIPS Python", NULL } },
};

static const struct python_kind other = { "another architecture's Python", NULL };

/* The address of _PyRuntime in IMAGE, from 3.7 on: by its symbol, or from 3.10 on by its section,
 * which remains if a program that exports no symbols is stripped. */
static bool find_runtime(struct elf_image *image, uint64_t *address)
{
	return elf_image__symbol(image, "_PyRuntime", address) ||
	       elf_image__section(image, ".PyRuntime", address);
}

static uint32_t version_hex(unsigned int major, unsigned int minor, unsigned int micro)
{
	return major << 24 | minor << 16 | (micro & 0xff) << 8 | RELEASE_LEVEL_FINAL << 4;
}

static uint32_t from_debug_offsets(pid_t pid, struct elf_image *image, uint64_t bias)
{
	uint64_t address, head[2];

	if (!find_runtime(image, &address) ||
	    target_memory__read(pid, address + bias, head, sizeof(head)) ||
	    memcmp(head, DEBUG_COOKIE, sizeof(head[0])) != 0)
		return 0;
	return head[1];
}

static uint32_t from_symbol(pid_t pid, struct elf_image *image, uint64_t bias)
{
	uint64_t address, version;

	if (!elf_image__symbol(image, "Py_Version", &address) ||
	    target_memory__read(pid, address + bias, &version, sizeof(version)))
		return 0;
	return version;
}

/* Searches for a NUL-terminated constant of PREFIX and digits. */
struct digits_search {
	const char *prefix;
	char digits[8];
};

static bool find_digits(const uint8_t *bytes, size_t length, uint64_t place, void *context)
{
	struct digits_search *search = context;
	size_t prefix_length = strlen(search->prefix);
	const uint8_t *at = bytes, *end = bytes + length;

	(void)place;
	while ((at = memmem(at, end - at, search->prefix, prefix_length))) {
		const uint8_t *digits = at + prefix_length;
		size_t count = 0;

		while (digits + count < end && isdigit(digits[count]))
			count++;
		if (count && count < sizeof(search->digits) && digits + count < end &&
		    (digits[count] == '\0' || digits[count] == '+') && !isdigit(at[-1]) &&
		    at[-1] != '.') {
			memcpy(search->digits, digits, count);
			search->digits[count] = '\0';
			return true;
		}
		at++;
	}
	return false;
}

/* PY_VERSION, "3.8.18", is a constant, or the end of a longer one. */
static uint32_t with_micro(struct elf_image *image, unsigned int major, unsigned int minor)
{
	char prefix[16];
	struct digits_search search = { .prefix = prefix };

	snprintf(prefix, sizeof(prefix), "%u.%u.", major, minor);
	if (!elf_image__search(image, false, find_digits, &search))
		return 0;
	return version_hex(major, minor, atoi(search.digits));
}

static uint32_t from_constants(struct elf_image *image)
{
	struct digits_search tag = { .prefix = CACHE_TAG };
	uint32_t version;

	if (!elf_image__search(image, false, find_digits, &tag))
		return with_micro(image, 2, 7);
	version = with_micro(image, tag.digits[0] - '0', atoi(tag.digits + 1));
	return version ? version : version_hex(tag.digits[0] - '0', atoi(tag.digits + 1), 0);
}

/* VERSION; 0 if it cannot be the version of a CPython. */
static uint32_t only_possible(uint32_t version)
{
	uint32_t major = version >> 24;

	return major >= 2 && major <= 4 ? version : 0;
}

static bool find_last_words(const uint8_t *bytes, size_t length, uint64_t place, void *context)
{
	(void)place;
	(void)context;
	return memmem(bytes, length, LAST_WORDS, strlen(LAST_WORDS));
}

static bool has_many_constants(const struct elf_image *image)
{
	const Elf64_Phdr *segments = image->segments;
	uint64_t left = CONSTANTS_BYTES_MAX;

	for (size_t i = 0; i < image->header.e_phnum; i++) {
		if (segments[i].p_type != PT_LOAD || segments[i].p_flags & PF_W)
			continue;
		if (segments[i].p_filesz > left)
			return true;
		left -= segments[i].p_filesz;
	}
	return false;
}

static uint32_t look_for_unnamed(struct elf_image *image)
{
	uint32_t version = 0;

	if (elf_image__is_program(image) && !has_many_constants(image) &&
	    elf_image__search(image, false, find_last_words, NULL))
		version = only_possible(from_constants(image));
	return version && version < SECTION_SINCE ? version : NO_PYTHON;
}

static bool find_pypy_version(const uint8_t *bytes, size_t length, uint64_t place, void *context)
{
	const uint8_t *at = memmem(bytes, length, PYPY_VERSION, strlen(PYPY_VERSION));
	unsigned int major, minor, micro;
	char text[PYPY_VERSION_BYTES + 1] = "";
	size_t left;

	(void)place;
	if (!at)
		return false;
	at += strlen(PYPY_VERSION);
	left = bytes + length - at;
	memcpy(text, at, left < PYPY_VERSION_BYTES ? left : PYPY_VERSION_BYTES);
	if (sscanf(text, "%3u.%3u.%3u", &major, &minor, &micro) != 3)
		return false;
	*(uint32_t *)context = version_hex(major & 0xff, minor & 0xff, micro);
	return true;
}

/* Whether symbols or sections show that IMAGE holds a CPython. */
static bool is_named(struct elf_image *image)
{
	uint64_t address;

	return find_runtime(image, &address) ||
	       elf_image__symbol(image, "PyInterpreterState_Head", &address);
}

/* Whether IMAGE is a stripped program with a CPython older than 3.10, shown only by its constants.
 */
static bool is_unnamed(struct elf_image *image)
{
	uint32_t *known = &image->note;

	/* The result is cached, as the search reads megabytes of the file. */
	if (!*known)
		*known = look_for_unnamed(image);
	return *known != NO_PYTHON;
}

static bool is_pypy(struct elf_image *image)
{
	uint64_t address;

	return elf_image__exported_symbol(image, "pypy_execute_source", &address);
}

bool python_image__is_any(struct elf_image *image)
{
	return is_named(image) || is_pypy(image) || is_unnamed(image);
}

uint32_t python_image__version(pid_t pid, struct elf_image *image, uint64_t bias)
{
	uint32_t version = only_possible(from_debug_offsets(pid, image, bias));
	uint32_t *known = &image->note;

	if (!version)
		version = only_possible(from_symbol(pid, image, bias));
	if (version)
		return version;
	/* Cached too: it depends on the file alone. */
	if (!*known && is_pypy(image))
		elf_image__search(image, true, find_pypy_version, known);
	else if (!*known)
		*known = only_possible(from_constants(image));
	return *known;
}

void python_image__format_version(uint32_t version, char text[PYTHON_VERSION_TEXT_MAX])
{
	static const char *const levels[16] = { [0xa] = "a", [0xb] = "b", [0xc] = "rc" };
	const char *level = levels[version >> 4 & 0xf];
	int length;

	if (!version) {
		snprintf(text, PYTHON_VERSION_TEXT_MAX, "(unknown)");
		return;
	}
	length = snprintf(text, PYTHON_VERSION_TEXT_MAX, "%u.%u.%u", version >> 24,
			  version >> 16 & 0xff, version >> 8 & 0xff);

	if (level)
		snprintf(text + length, PYTHON_VERSION_TEXT_MAX - length, "%s%u", level,
			 version & 0xf);
}

/* The kind of the Python in IMAGE; NULL if it may be walked. */
static const struct python_kind *kind_of(struct elf_image *image)
{
	uint16_t machine = image->header.e_machine;

	if (is_pypy(image))
		return &pypy;
	if (elf_image__is_native(image))
		return NULL;
	if (machine == ARCHITECTURE.machine || machine == ARCHITECTURE.narrow_machine)
		return &narrow;
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		if (foreign[i].machine == machine)
			return &foreign[i].kind;
	return &other;
}

/* CPython publishes less than this in every version (3.15: 888). */
#define DEBUG_OFFSETS_BYTES 1024
#define DEBUG_OFFSETS_SINCE 0x030d0000
#define ENTRY_GAP_SINCE	    0x030d0000
#define RUNTIME_SINCE	    0x03070000
#define JIT_SINCE	    0x030d0000
#define DEBUG_ALONE_SINCE   0x03080000 /* older debug builds trace references */

/* The part of the eval loop in which it makes its own frame. */
#define ENTRY_CODE_BYTES 512

/* The longest PyInterpreterState_Head, rounded up. */
#define LIST_CODE_BYTES 32

/* Whether the file of IMAGE has the LENGTH bytes BYTES at ADDRESS. */
static bool is_as_in_file(struct elf_image *image, uint64_t address, const uint8_t *bytes,
			  size_t length)
{
	uint8_t initial[DEBUG_OFFSETS_BYTES];

	return length <= sizeof(initial) &&
	       elf_image__initial_bytes(image, address, initial, length) &&
	       memcmp(initial, bytes, length) == 0;
}

/* Sets RUNTIME->offsets from _Py_DebugOffsets at ADDRESS of IMAGE.  They are constants, so memory
 * and file must agree. */
static int read_debug_offsets(pid_t pid, struct elf_image *image, uint64_t bias, uint64_t address,
			      uint32_t version, struct runtime *runtime)
{
	uint8_t published[DEBUG_OFFSETS_BYTES];
	int error = target_memory__read(pid, address + bias, published, sizeof(published));
	int free_threaded;

	if (error)
		return error;
	free_threaded = debug_offsets__free_threaded(published, sizeof(published));
	if (free_threaded < 0)
		return free_threaded;
	error = offsets__lookup(version, free_threaded ? BUILD_FREE_THREADED : BUILD_WITH_GIL,
				&runtime->offsets);
	if (error && error != -ENODATA)
		return error;
	if (!is_as_in_file(image, address, published, debug_offsets__length(&runtime->offsets))) {
		runtime->objection = "its _Py_DebugOffsets in memory differ from those in its "
				     "file";
		return -ENOTSUP;
	}
	return debug_offsets__apply(published, sizeof(published), &runtime->offsets);
}

/* Only builds with Py_TRACE_REFS have the function that registers new objects. */
static enum build find_build(struct elf_image *image, uint32_t version)
{
	uint64_t address;

	return version < DEBUG_ALONE_SINCE &&
			       elf_image__symbol(image, "_Py_AddToAllObjects", &address)
		       ? BUILD_TRACING
		       : BUILD_WITH_GIL;
}

/* Whether the interpreter in IMAGE has a JIT and does not show when its code runs.  Only builds
 * with a JIT have Python/optimizer.c, which defines this symbol. */
static bool has_untold_jit(struct elf_image *image, const struct offsets *offsets)
{
	uint64_t address;

	return offsets->version >= JIT_SINCE && offsets->tstate_current_executor == OFFSET_ABSENT &&
	       elf_image__symbol(image, "_Py_Executors_InvalidateDependency", &address);
}

/* Only a forked 2.7 process has states of threads that it does not have.  In any other, threads are
 * found as in later versions (bpf/thread.bpf.h). */
static void rule_out_leftovers(pid_t pid, struct layout *layout)
{
	struct process process;

	if (layout->tstate_gilstate_counter == OFFSET_ABSENT)
		return;
	if (!process__inspect(pid, &process) && !process.forked)
		layout->tstate_gilstate_counter = OFFSET_ABSENT;
}

/* Reads the layout of the interpreter in IMAGE, whose _PyRuntime is at ADDRESS. */
static int read_layout(pid_t pid, struct elf_image *image, uint64_t bias, uint64_t address,
		       uint32_t version, struct runtime *runtime)
{
	int error;

	if (version >= DEBUG_OFFSETS_SINCE)
		error = read_debug_offsets(pid, image, bias, address, version, runtime);
	else if (runtime->stripped)
		error = unnamed__find(pid, image, bias, version, runtime);
	else
		error = offsets__lookup(version, find_build(image, version), &runtime->offsets);
	if (!error)
		error = offsets__layout(&runtime->offsets, &runtime->layout);
	if (!error) {
		rule_out_leftovers(pid, &runtime->layout);
		runtime->layout.jit_untold = has_untold_jit(image, &runtime->offsets);
	}
	if (error == -EINVAL || error == -EFAULT) {
		runtime->objection = "its _Py_DebugOffsets are invalid or out of range";
		error = -ENOTSUP;
	}
	return error;
}

/* Finds the variable that points to the newest interpreter, up to 3.6.  0; -ENODATA if the image
 * does not show it; another error if its code could not be read. */
static int find_list(pid_t pid, struct elf_image *image, uint64_t bias, uint64_t *address)
{
	uint8_t code[LIST_CODE_BYTES];
	uint64_t symbol;
	int error;

	if (elf_image__symbol(image, "interp_head", &symbol)) {
		*address = symbol + bias;
		return 0;
	}
	if (!elf_image__symbol(image, "PyInterpreterState_Head", &symbol))
		return -ENODATA;
	error = target_memory__read(pid, symbol + bias, code, sizeof(code));
	if (error)
		return error;
	return ARCHITECTURE.decode_variable(code, sizeof(code), symbol + bias, address) ? 0
											: -ENODATA;
}

/* Finds the layout and the list of interpreters.  RUNTIME_ADDRESS is the address of _PyRuntime, or
 * 0. */
static int find_interpreters(pid_t pid, struct elf_image *image, uint64_t bias, uint32_t version,
			     uint64_t runtime_address, struct runtime *runtime)
{
	int error;

	if (!runtime_address && version >= RUNTIME_SINCE && !runtime->stripped)
		return -ENOTSUP;
	error = read_layout(pid, image, bias, runtime_address - bias, version, runtime);
	if (error || runtime->stripped)
		return error;
	if (version >= RUNTIME_SINCE) {
		runtime->interpreters =
			runtime_address + runtime->offsets.runtime_interpreters_head;
		return 0;
	}
	error = find_list(pid, image, bias, &runtime->interpreters);
	if (error != -ENODATA)
		return error;
	runtime->objection = "neither the symbols nor the code of this build show where its "
			     "interpreters are";
	return -ENOTSUP;
}

static uint64_t find_address(struct elf_image *image, uint64_t bias, const char *name)
{
	uint64_t address;

	return elf_image__symbol(image, name, &address) ? address + bias : 0;
}

/* Finds the entry gap.  Up to 3.12 BPF proves otherwise what the eval loop has entered
 * (bpf/activation.bpf.h). */
static void find_entry_gap(pid_t pid, struct elf_image *image, uint64_t bias,
			   struct runtime *runtime)
{
	uint64_t address = find_address(image, bias, "_PyEval_EvalFrameDefault");
	uint8_t code[ENTRY_CODE_BYTES];

	if (ARCHITECTURE.decode_entry_gap && address &&
	    runtime->offsets.version >= ENTRY_GAP_SINCE &&
	    !target_memory__read(pid, address, code, sizeof(code)) &&
	    ARCHITECTURE.decode_entry_gap(code, sizeof(code), &runtime->layout,
					  &runtime->entry_gap))
		runtime->entry_gap.start += address;
}

/* Checks the memory of an initialized interpreter against its layout. */
static int check(pid_t pid, struct elf_image *image, uint64_t bias, struct runtime *runtime)
{
	const struct known_types types = {
		.code = runtime->code_type,
		.type = find_address(image, bias, "PyType_Type"),
		.str = find_address(image, bias, "PyUnicode_Type"),
		.bytes = find_address(image, bias, "PyBytes_Type"),
	};

	if (runtime->initialized)
		return interpreters__check(pid, runtime, &types);
	return offsets__is_newer(&runtime->offsets) ? -EAGAIN : 0;
}

/* Finds out whether there is an interpreter, and whether it has a thread. */
static void look_for_life(pid_t pid, struct runtime *runtime)
{
	const struct offsets *offsets = &runtime->offsets;
	uint64_t interpreter, state, thread_id;

	if (target_memory__read_pointer(pid, runtime->interpreters, &interpreter))
		return;
	runtime->begins = !interpreter;
	runtime->initialized =
		interpreter &&
		!target_memory__read_pointer(pid, interpreter + offsets->interp_tstate_head,
					     &state) &&
		state &&
		!target_memory__read_pointer(pid, state + offsets->tstate_thread_id, &thread_id) &&
		thread_id;
}

int python_image__examine(pid_t pid, struct elf_image *image, uint64_t bias,
			  struct runtime *runtime)
{
	uint64_t address;
	bool found = find_runtime(image, &address);
	uint32_t version = python_image__version(pid, image, bias);
	int error;

	memset(runtime, 0, sizeof(*runtime));
	runtime->kind = kind_of(image);
	runtime->stripped = !is_named(image);
	if (version || runtime->kind)
		python_image__format_version(version, runtime->version);
	if (!version || runtime->kind)
		return -ENOTSUP;
	error = find_interpreters(pid, image, bias, version, found ? address + bias : 0, runtime);
	if (error)
		return error;
	runtime->code_type = find_address(image, bias, "PyCode_Type");
	find_entry_gap(pid, image, bias, runtime);
	look_for_life(pid, runtime);
	return check(pid, image, bias, runtime);
}
