// SPDX-License-Identifier: BSD-2-Clause
/*
 * Up to 3.6 the list of interpreters begins in a static variable, interp_head, which a
 * stripped file does not name.  The function PyInterpreterState_Head is always named,
 * and only returns that variable.  Its machine code is one load relative to the code, a
 * return, and perhaps instructions that make and remove a stack frame or mark the
 * targets of calls.  Any other code is not understood, and then the list is not found.
 */
#include <errno.h>
#include <string.h>

#include "architecture/architecture.h"
#include "python/python_image.h"
#include "python/soundness.h"
#include "python/unnamed.h"
#include "reading/process.h"
#include "reading/target_memory.h"

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
		return soundness__check(pid, runtime, &types);
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
	bool found = python_version__find_runtime(image, &address);
	uint32_t version = python_version__detect(pid, image, bias);
	int error;

	memset(runtime, 0, sizeof(*runtime));
	runtime->kind = python_kind__of(image);
	runtime->stripped = !python_version__is_named(image);
	if (version || runtime->kind)
		python_version__format(version, runtime->version);
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
