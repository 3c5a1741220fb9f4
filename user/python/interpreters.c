// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two things can make a layout wrong although the version is known.
 *
 * A build with Py_TRACE_REFS has two more pointers in front of each object, so all fields
 * behind them move.  Up to 3.7 every debug build is one, and those have their own tables.
 * From 3.8 to 3.12 it is a separate option.  (From 3.13 on it adds no pointers, and
 * Py_DEBUG moves nothing that is read here.)  An object of known type that every process
 * has shows whether the table is right: PyCode_Type is a type, so it must point to
 * PyType_Type.  The same check finds a free-threaded build that was mistaken for another.
 *
 * A version newer than this build is read with the form of the newest known version
 * (offsets/offsets.c).  It is accepted if the whole stack of a thread, read while it
 * runs, is valid: the thread has a pthread_self(), each frame has a code object of the
 * right type with valid names and a valid line table, and the current instruction is
 * one of that code object.  A stack that changes while it is read fails, so there are
 * several attempts.  A stack that is valid by chance is practically impossible.
 *
 * The experimental JIT and the tail-calling interpreter change nothing in these structs.
 * While code of the JIT runs, the instruction of the innermost frame may be outdated
 * (bpf/python.bpf.h), but it is one of its function.
 */
#include <errno.h>
#include <stdbool.h>
#include <time.h>

#include "architecture/architecture.h"
#include "base/now.h"
#include "python/code.h"
#include "python/interpreters.h"
#include "python/runtime.h"
#include "reading/target_memory.h"

#define ATTEMPTS    20
#define ATTEMPT_NS  (5 * 1000 * 1000)
#define PATIENCE_NS (1000 * 1000 * 1000LL)
#define INTERPS_MAX 16
#define THREADS_MAX 64
#define FRAMES_MAX  64
#define CODE_UNIT   2
#define TAGS	    3
#define OWNER_SHOWN 3 /* from this one on, a frame is the interpreter's own */

enum verdict {
	UNSOUND,
	NOTHING, /* there is no frame */
	SOUND,
};

/* A process under examination. */
struct subject {
	pid_t pid;
	const struct offsets *offsets;
	const struct known_types *types;
	uint64_t interpreters;
	int64_t end_ns; /* of the examination, as stacks of a process may be arbitrarily long */
};

int interpreters__read(pid_t pid, const struct offsets *offsets, uint64_t head,
		       struct interpreters *result)
{
	uint64_t interpreter = 0;
	int error = target_memory__read_pointer(pid, head, &interpreter);

	result->count = 0;
	while (!error && interpreter && result->count < INTERPRETERS_MAX) {
		result->addresses[result->count++] = interpreter;
		error = target_memory__read_pointer(pid, interpreter + offsets->interp_next,
						    &interpreter);
	}
	result->cut = !error && interpreter;
	return error;
}

static bool is_late(const struct subject *subject)
{
	return now_ns() > subject->end_ns;
}

static bool has_type(const struct subject *subject, uint64_t object, uint64_t type)
{
	uint64_t found;

	return !target_memory__read_pointer(subject->pid, object + subject->offsets->object_type,
					    &found) &&
	       found == type;
}

/* Whether the pointer at OFFSET of a code object refers to an object of TYPE. */
static bool refers_to(const struct subject *subject, uint64_t code, uint32_t offset, uint64_t type)
{
	uint64_t object;

	return !target_memory__read_pointer(subject->pid, code + offset, &object) &&
	       has_type(subject, object, type);
}

static bool is_code_sound(const struct subject *subject, const struct frame *frame)
{
	const struct offsets *offsets = subject->offsets;
	const struct known_types *types = subject->types;
	struct code code;
	int32_t position;
	bool sound;

	if (!refers_to(subject, frame->address, offsets->code_name, types->str) ||
	    !refers_to(subject, frame->address, offsets->code_qualname, types->str) ||
	    !refers_to(subject, frame->address, offsets->code_filename, types->str) ||
	    !refers_to(subject, frame->address, offsets->code_linetable, types->bytes) ||
	    code__read(subject->pid, offsets, types->code, frame->address, &code))
		return false;
	sound = !code.hidden && *code.name && *code.filename &&
		code__position(subject->pid, offsets, frame->address, &code, frame, &position) &&
		position >= 0 && (uint64_t)position < code.instructions;
	code__free(&code);
	return sound;
}

/* Checks the frame at *ADDRESS, and moves on to its caller. */
static enum verdict judge_frame(const struct subject *subject, uint64_t *address)
{
	const struct offsets *offsets = subject->offsets;
	uint64_t start = *address, code, instruction;
	struct frame frame = { .kind = FRAME_PYTHON };
	uint32_t index = 0;
	uint8_t owner;

	if (target_memory__read_pointer(subject->pid, start + offsets->frame_previous, address) ||
	    target_memory__read_pointer(subject->pid, start + offsets->frame_code, &code) ||
	    target_memory__read_pointer(subject->pid, start + offsets->frame_lasti, &instruction) ||
	    target_memory__read(subject->pid, start + offsets->frame_owner, &owner, sizeof(owner)))
		return UNSOUND;
	if (offsets->frame_tlbc_index != OFFSET_ABSENT &&
	    target_memory__read(subject->pid, start + offsets->frame_tlbc_index, &index,
				sizeof(index)))
		return UNSOUND;
	if (is_late(subject))
		return UNSOUND;
	if (owner >= OWNER_SHOWN)
		return NOTHING;
	frame.address = code & ~(uint64_t)TAGS;
	frame.position = (instruction - frame.address - offsets->code_code_adaptive) / CODE_UNIT;
	frame.detail = index < TLBC_INDEX_MAX ? index : TLBC_INDEX_MAX;
	return is_code_sound(subject, &frame) ? SOUND : UNSOUND;
}

bool interpreters__is_thread(pid_t pid, uint64_t ident)
{
	uint64_t first;

	return !target_memory__read_pointer(pid, ident, &first) &&
	       (!ARCHITECTURE.points_to_itself || first == ident);
}

static enum verdict judge_thread(const struct subject *subject, uint64_t tstate)
{
	const struct offsets *offsets = subject->offsets;
	enum verdict verdict = NOTHING, found;
	uint64_t frame, ident;

	if (target_memory__read_pointer(subject->pid, tstate + offsets->tstate_current_frame,
					&frame) ||
	    target_memory__read_pointer(subject->pid, tstate + offsets->tstate_thread_id, &ident))
		return UNSOUND;
	for (int i = 0; frame && i < FRAMES_MAX; i++) {
		found = judge_frame(subject, &frame);
		if (found == UNSOUND)
			return UNSOUND;
		if (found == SOUND)
			verdict = SOUND;
	}
	return verdict == NOTHING || interpreters__is_thread(subject->pid, ident) ? verdict
										  : UNSOUND;
}

/* SOUND if one thread is sound; UNSOUND if threads have frames, but none is sound. */
static enum verdict judge_threads(const struct subject *subject, uint64_t interp)
{
	const struct offsets *offsets = subject->offsets;
	enum verdict verdict = NOTHING, found;
	uint64_t tstate;

	if (target_memory__read_pointer(subject->pid, interp + offsets->interp_tstate_head,
					&tstate))
		return UNSOUND;
	for (int i = 0; tstate && i < THREADS_MAX; i++) {
		found = judge_thread(subject, tstate);
		if (found == SOUND)
			return SOUND;
		if (found == UNSOUND)
			verdict = UNSOUND;
		if (target_memory__read_pointer(subject->pid, tstate + offsets->tstate_next,
						&tstate))
			return UNSOUND;
	}
	return verdict;
}

static enum verdict judge(const struct subject *subject)
{
	struct interpreters all;
	int error = interpreters__read(subject->pid, subject->offsets, subject->interpreters, &all);
	enum verdict verdict = error ? UNSOUND : NOTHING, found;

	for (size_t i = 0; i < all.count && i < INTERPS_MAX; i++) {
		found = judge_threads(subject, all.addresses[i]);
		if (found == SOUND)
			return SOUND;
		if (found == UNSOUND)
			verdict = UNSOUND;
	}
	return verdict;
}

static int check_newer(const struct subject *subject)
{
	const struct timespec pause = { .tv_nsec = ATTEMPT_NS };
	enum verdict verdict = NOTHING;

	for (int i = 0; i < ATTEMPTS && !is_late(subject); i++) {
		verdict = judge(subject);
		if (verdict == SOUND)
			return 0;
		nanosleep(&pause, NULL);
	}
	return verdict == NOTHING ? -EAGAIN : -ENOTSUP;
}

int interpreters__check(pid_t pid, struct runtime *runtime, const struct known_types *types)
{
	const struct subject subject = { pid, &runtime->offsets, types, runtime->interpreters,
					 now_ns() + PATIENCE_NS };
	int error;

	if (types->code && types->type && !has_type(&subject, types->code, types->type)) {
		runtime->objection = "its objects do not have the layout of any known build (a "
				     "debug build that traces references?)";
		return -ENOTSUP;
	}
	if (!offsets__is_newer(&runtime->offsets))
		return 0;
	error = types->code && types->type && types->str && types->bytes ? check_newer(&subject)
									 : -ENOTSUP;
	if (error == -ENOTSUP)
		runtime->objection =
			"its layout is unknown to this pybpfprof, and its _Py_DebugOffsets lead to "
			"no valid stack";
	return error;
}
