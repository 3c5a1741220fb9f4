// SPDX-License-Identifier: BSD-2-Clause
/*
 * Up to 3.6 the list of interpreters begins in a static variable, interp_head,
 * which a stripped file does not name.  PyInterpreterState_Head is named in each,
 * and does nothing but return that variable.  What compilers make of it is one
 * load from an address relative to the code, a return, and perhaps what makes and
 * removes a stack frame or marks where calls may lead to.  Code that does anything
 * else is not understood, and says nothing.
 */
#include <errno.h>
#include <string.h>

#include "architecture/architecture.h"
#include "python/python_image.h"
#include "python/soundness.h"
#include "python/unnamed.h"
#include "reading/process.h"
#include "reading/target_memory.h"

/* More than CPython publishes in any version (3.15: 888). */
#define DEBUG_OFFSETS_BYTES 1024
#define DEBUG_OFFSETS_SINCE 0x030d0000
#define ENTRY_GAP_SINCE	    0x030d0000
#define RUNTIME_SINCE	    0x03070000
#define JIT_SINCE	    0x030d0000
#define DEBUG_ALONE_SINCE   0x03080000 /* before it, a debug build traces references */

/* Of the eval loop, within which it has entered. */
#define ENTRY_CODE_BYTES 512

/* Of PyInterpreterState_Head: what the longest takes, rounded up. */
#define LIST_CODE_BYTES 32

/* Whether the LENGTH bytes at ADDRESS of IMAGE are in memory as they are in the file. */
static bool is_as_in_file(struct elf_image *image, uint64_t address, const uint8_t *bytes,
			  size_t length)
{
	uint8_t initial[DEBUG_OFFSETS_BYTES];

	return length <= sizeof(initial) &&
	       elf_image__initial_bytes(image, address, initial, length) &&
	       memcmp(initial, bytes, length) == 0;
}

/* Reads what _Py_DebugOffsets at ADDRESS of IMAGE says into *OFFSETS.  They are constants, so that
 * what the process has has to be what the file has. */
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

/* With Py_TRACE_REFS there is a function more, for each new object to be told to. */
static enum build find_build(struct elf_image *image, uint32_t version)
{
	uint64_t address;

	return version < DEBUG_ALONE_SINCE &&
			       elf_image__symbol(image, "_Py_AddToAllObjects", &address)
		       ? BUILD_TRACING
		       : BUILD_WITH_GIL;
}

/* Whether the interpreter in IMAGE was built with the JIT, without which there is no
 * Python/optimizer.c, and has nothing that is known to tell what that runs. */
static bool has_untold_jit(struct elf_image *image, const struct offsets *offsets)
{
	uint64_t address;

	return offsets->version >= JIT_SINCE && offsets->tstate_current_executor == OFFSET_ABSENT &&
	       elf_image__symbol(image, "_Py_Executors_InvalidateDependency", &address);
}

/* Only a process that was forked has thread states of threads that it does not have: any other one
 * of 2.7 is like one of a later version (bpf/thread.bpf.h). */
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

/* Finds the variable that points to the newest interpreter, up to 3.6.  0; -ENODATA where the image
 * does not tell; -errno where its code could not be read. */
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

/* Finds the layout and the list of interpreters; RUNTIME_ADDRESS is that of _PyRuntime, or 0. */
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

/* Until 3.12 what the eval loop enters can be proved. */
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

/* Checks that the interpreter in IMAGE, if it has begun, is what it is taken for. */
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

/* Finds out whether there is an interpreter, and a thread that can run in it. */
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
