/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The types that BPF (bpf/) and user space (user/) share.  They are declared only here.
 *
 * Each CPU owns its `struct cpu_counters` and its buckets of slots.  They are in arrays that user
 * space maps.  Only the CPU counts samples there.  User space has further buckets, for threads that
 * wait already when they are found.  The end of a wait adds its time to any slot, atomically. Every
 * counter only grows: user space takes differences and never resets anything.
 */
#ifndef PYBPFPROF_H
#define PYBPFPROF_H

#ifndef __bpf__
#include <linux/types.h>
#include <stdbool.h>
#endif

#include "unwind.h"

/* CPython's default recursion limit allows 1,000 Python frames.  The rest is room for frames of the
 * interpreter itself and for later kinds of frame. */
#define STACK_FRAMES_MAX 1024

/* The most frames of the kernel's own stack; perf walks no more by default. */
#define KERNEL_FRAMES_MAX 127

/* The most frames of a stack in a profile: one more is what a thread waits for. */
#define STACK_DEPTH_MAX (1 + STACK_FRAMES_MAX + NATIVE_FRAMES_MAX + KERNEL_FRAMES_MAX)

/* The size of one read from the target: the largest that costs hardly more than a small one. */
#define BLOCK_BYTES 4096

/* The fields of a thread state that the walker reads end below this (3.11: 312). */
#define THREAD_STATE_BYTES 320

/* The fields that identify a code object span no more bytes than this (3.8: 40 to 128). */
#define CODE_IDENTITY_BYTES 128

/* To tell one str from another, the walker reads this many bytes at its end; a power of two. */
#define TEXT_END_BYTES 128
#define TEXT_END_WORDS (TEXT_END_BYTES / 8)

/* And this many words from its length on: the length, the hash and, except in 2.7, the state.  The
 * same for a bytes object. */
#define TEXT_HEAD_WORDS 3

/* To tell one line table from another, the walker reads this many bytes.  Of a longer table it
 * reads half of them at the beginning and half at the end.  A power of two. */
#define LINE_TABLE_BYTES 256
#define LINE_TABLE_WORDS (LINE_TABLE_BYTES / 8)

/* The most bytes that are copied of a code object, of each object that it points to, and of all of
 * these together; powers of two. */
#define CODE_HEAD_BYTES	  256
#define CODE_PIECE_BYTES  (16 * 1024)
#define CODE_RECORD_BYTES (32 * 1024)

/* The most bytes that are copied for one stack, and the size of a CPU's memory of what it has
 * copied; powers of two. */
#define CODES_BYTES_A_STACK (128 * 1024)
#define COPIED_CODES	    1024

/* The fields of a frame that the walker reads end below this (2.7, debug build: 140); a power of
 * two. */
#define FRAME_FIELD_MAX 256

/* A search through the interpreters' lists reads at most this many thread states: at 85 ns each, 90
 * us in the worst interrupt. */
#define THREAD_STATES_MAX 1024

/* For processes with more thread states, user space passes up to this many to the kernel. */
#define TOLD_STATES_MAX 16384

/* The threads that a CPU has seen recently, direct-mapped by TID; a power of two. */
#define THREAD_CACHE_ENTRIES 512

/* The stacks of a CPU, in buckets of one and a half cache lines each; powers of two. */
#define STACK_BUCKETS	 2048
#define SLOTS_PER_BUCKET 4
#define STACK_SLOTS	 (STACK_BUCKETS * SLOTS_PER_BUCKET)

#define RING_BYTES	 (8 * 1024 * 1024)
#define HERALDS_BYTES	 (64 * 1024) /* the largest page size */
#define TARGETS_MAX	 4096	     /* by default; an option */
#define LAYOUTS_MAX	 64
#define KNOWN_FILES_MAX	 16384
#define COMMAND_NAME_MAX 16

/* The largest copy index that a frame record can hold. */
#define TLBC_INDEX_MAX 0xffff

/* The offset of a member that this Python version does not have. */
#define OFFSET_ABSENT 0xffff

/* Stands for an unknown position: below the position of any instruction. */
#define POSITION_UNKNOWN (-0x7fffffff - 1)

/*
 * What happened to a sample.  The name is used in the ledger (--stats), the text is the frame in
 * the profile.  Everything from OUTCOME_FIRST_ERROR on is an error.
 */
#define OUTCOMES(X)                                                                           \
	X(PYTHON, "python", "whole Python stack")                                             \
	X(TRUNCATED, "truncated", "[deeper frames cut]")                                      \
	X(LINE_UNKNOWN, "line_unknown", "[line unknown]")                                     \
	X(NAME_UNKNOWN, "name_unknown", "[name unknown]")                                     \
	X(NO_PYTHON, "no_python", "[no Python on this thread]")                               \
	X(NO_LAYOUT, "no_layout", "[unknown Python layout]")                                  \
	X(NO_INTERPRETER, "no_interpreter", "[Python is starting or has ended]")              \
	X(INTERPRETER_FAULT, "interpreter_fault", "[interpreter state not readable]")         \
	X(THREAD_FAULT, "thread_fault", "[thread state not readable]")                        \
	X(TOO_MANY_THREADS, "too_many_threads", "[thread state not found: too many threads]") \
	X(THREAD_UNCLEAR, "thread_unclear", "[thread is in one of several interpreters]")     \
	X(CALLER_UNCLEAR, "caller_unclear", "[called from another interpreter]")              \
	X(FRAME_FAULT, "frame_fault", "[caller frames not readable]")                         \
	X(FRAME_ADDRESS, "frame_address", "[caller frames at a bad address]")                 \
	X(FRAME_UNLINKED, "frame_unlinked", "[generator not linked to its caller]")           \
	X(FRAME_ENTERING, "frame_entering", "[call not begun yet]")                           \
	X(GREENLET_STARTING, "greenlet_starting", "[a greenlet is starting]")                 \
	X(NOT_SUPPORTED, "not_supported", "[Python not supported]")                           \
	X(UNREADABLE, "unreadable", "[process not readable, perhaps Python]")                 \
	X(NOT_KNOWN_YET, "not_known_yet", "[process not identified yet]")                     \
	X(CODE_REPLACED, "code_replaced", "[code object replaced during sampling]")           \
	X(GIL_UNTOLD, "gil_untold", "[Python does not tell who holds the GIL]")               \
	X(IN_INTERRUPT, "in_interrupt", "[in an interrupt]")

enum outcome {
#define X(id, name, text) OUTCOME_##id,
	OUTCOMES(X)
#undef X
		OUTCOME_COUNT,
	OUTCOME_FIRST_ERROR = OUTCOME_NO_LAYOUT,
};

/* Room for all outcomes in an array whose index the verifier can follow; a power of two. */
#define OUTCOME_SLOTS 32

_Static_assert((int)OUTCOME_COUNT <= OUTCOME_SLOTS, "every outcome has a counter");

/* What a frame record describes. */
enum frame_kind {
	FRAME_PYTHON = 1, /* address: code object; position: see `position` */
	FRAME_NATIVE,	  /* address: program counter */
	FRAME_KERNEL,	  /* address: program counter */
	FRAME_JIT,	  /* address: program counter; of CPython's JIT */
	FRAME_REASON,	  /* why the stack ends here; address: what was not readable, or 0 */
};

/* One frame of a stack.  Stacks are stored innermost frame first. */
struct frame {
	__u64 address;
	/* Python: code_identity() of the code object at `address`, up to 3.11 with
	 * code_identity_with(); 0 where it was not read. */
	__u64 identity;
	/* Python: the current instruction, counted as the version counts: in bytes up to 3.9, in
	 * code units from 3.10 on.  Negative before the first instruction.  Where threads have
	 * their own copies of the instructions (3.14t+), the distance of the copy is included,
	 * modulo 2^32.  POSITION_UNKNOWN where the frame does not tell.  Native: how many of the
	 * stack's Python frames it called. */
	__s32 position;
	__u16 kind;
	__u16 detail; /* Python: the index of that copy, 0: none; a reason: an outcome; machine
		       * code: 1 for a return address, which is behind the call */
};

_Static_assert(sizeof(struct frame) == 24, "no padding: frames are compared as bytes");

/*
 * Where the walker finds the members of CPython's structs in one version: byte offsets, or
 * OFFSET_ABSENT.  The names are CPython's own.
 */
struct layout {
	__u16 interp_next;
	__u16 interp_tstate_head;
	__u16 tstate_next;
	__u16 tstate_interp; /* 2.7-3.12 */
	__u16 tstate_thread_id;
	/* 2.7, an int: 0 until the thread has taken its state.  Absent also where the process was
	 * not forked. */
	__u16 tstate_gilstate_counter;
	__u16 tstate_frame;	       /* 2.7-3.10: PyFrameObject *; 3.13+: current_frame */
	__u16 tstate_cframe;	       /* 3.10-3.12 */
	__u16 tstate_root_cframe;      /* 3.10-3.12 */
	__u16 tstate_datastack_chunk;  /* 3.11+ */
	__u16 tstate_datastack_top;    /* 3.11, 3.12 */
	__u16 tstate_base_frame;       /* 3.15: below all calls */
	__u16 tstate_status;	       /* 3.12+ */
	__u16 tstate_whence;	       /* 3.13+ */
	__u16 tstate_calls_left;       /* 3.12+, an int: how many more calls the limit allows ... */
	__u16 tstate_calls_limit;      /* ... and the limit */
	__u16 tstate_current_executor; /* 3.14+: not 0 while the JIT's code runs */
	__u16 jit_untold;	    /* 1: it has a JIT and does not tell when the JIT's code runs */
	__u16 tstate_bytes;	    /* how much of a thread state is read */
	__u16 cframe_current_frame; /* 3.11, 3.12 */
	__u16 cframe_previous;	    /* 3.10-3.12 */
	__u16 frame_previous;
	__u16 frame_code;
	__u16 frame_instruction; /* f_lasti, an int; a pointer if code_adaptive is there */
	__u16 frame_owner;	 /* 3.11+ */
	__u16 frame_is_entry;	 /* 3.11 */
	__u16 frame_tlbc_index;	 /* 3.14t+: which copy of the instructions */
	__u16 frame_stacktop;	 /* 3.12, an int: values on its stack; -1 while it runs */
	__u16 frame_localsplus;	 /* 3.12: its variables, followed by its stack */
	__u16 generator_state;	 /* 3.12, a byte: negative while it does not run */
	__u16 generator_frame;	 /* 3.12: in the generator object */
	__u16 frame_bytes;	 /* how much of a frame is read, from its beginning */
	__u16 object_type;
	__u16 code_flags; /* 3.9, 3.10: read at the end of a walk */
	/* 3.13+, an int: in the interpreter's own code, the number of instructions. */
	__u16 code_first_traceable;
	__u16 code_bytes;      /* how much of a code object is copied, from its beginning */
	__u16 code_shown_name; /* co_qualname from 3.11 on, co_name before */
	__u16 code_name;
	__u16 code_filename;
	__u16 code_line_table;
	__u16 code_first_line;
	__u16 code_version;	   /* 3.12+ */
	__u16 code_identity_start; /* where these five fields are in a code object */
	__u16 code_identity_bytes;
	__u16 code_adaptive;  /* 3.11+: the beginning of the code object's instructions */
	__u16 object_size;    /* of a str or bytes object: its length */
	__u16 text_state;     /* 3.3+, of a str: the word with the width of its characters ... */
	__u16 text_width_bit; /* ... from this bit on */
	__u16 text_ascii;     /* where the characters of a str begin if they are ASCII ... */
	__u16 text_wide;      /* ... and if they are not */
	__u16 bytes_data;     /* where the bytes of a bytes object begin */
	__u16 tag_mask;	      /* 3.14+: tag bits of a frame's code pointer */
	__u16 in_blocks;      /* 3.11+: callers are below their callees in one data stack */
	__u16 runtime_gil; /* 3.7-3.11: the distance to the GIL from the target's `interpreters` */
	__u16 interp_gil;  /* 3.12+: a pointer to it */
	/* How a thread state tells that its thread holds the GIL.  From 3.13 on: the number of a
	 * bit in it.  3.7-3.12: the GIL's last holder, followed by a word that is not 0 while the
	 * GIL is locked. */
	__u16 tstate_gil_bit;
	__u16 gil_last_holder;
	__u16 tstate_state; /* free-threaded builds, an int: attached, suspended, ... */
};

_Static_assert(sizeof(struct layout) == 116, "no padding: a layout is compared as bytes");

/* Whether interpreters of LAYOUT tell which thread holds the GIL. */
static inline bool layout_tells_holder(const struct layout *layout)
{
	return layout->tstate_gil_bit != OFFSET_ABSENT || layout->gil_last_holder != OFFSET_ABSENT;
}

/*
 * The first instructions of the eval loop.  The thread state already points to the new call's
 * frame, but the interpreter's own frame below it is not written yet (entry_gap.bpf.h).
 */
struct entry_gap {
	__u64 start;	/* address of the first */
	__u32 length;	/* bytes of all of them; 0: none, or not known */
	__u16 unlinked; /* bytes from `start` in which the caller's frame is only ... */
	__u16 caller;	/* ... in the register with this number */
};

/* The state of a process in the map `targets`. */
enum target_state {
	TARGET_PYTHON,	 /* it is walked */
	TARGET_LOADING,	 /* it is walked once its exec is complete */
	TARGET_WAITING,	 /* user space is to find out what it runs; its samples are counted */
	TARGET_UNTOLD,	 /* the same, but it could not be reported: user space must find it */
	TARGET_REFUSED,	 /* a Python that cannot be walked; `refusal` says why */
	TARGET_OTHER,	 /* no Python; followed for the processes that it starts */
	TARGET_UNWANTED, /* a Python that is not wanted; followed for its children */
};

/* Which processes are followed besides those that user space puts into `targets`. */
enum following {
	FOLLOW_NONE,
	FOLLOW_CHILDREN, /* children of those */
	FOLLOW_ALL,	 /* and every process that maps a file with a Python */
};

/* What tells a code object from an earlier one at the same address. */
enum identification {
	IDENTIFIED_NOT, /* not at all */
	/* by its own fields: the addresses of its names and line table, its first line and, from
	 * 3.12 on, its version */
	IDENTIFIED_BY_WORDS,
	IDENTIFIED_WHOLLY, /* by the contents of its objects, too, unless the version is enough */
};

/* The serial numbers that user space gives fit into these bits.  Those that BPF gives do not,
 * except just after a boot. */
#define USER_SERIAL_BITS 32

/* A process to sample: the value of the map `targets`, whose key is the kernel's tgid. */
struct target {
	/* Identifies this process as long as it runs this program.  PIDs are used again; serial
	 * numbers are not. */
	__u64 serial;
	__u64 before;	    /* the serial of the program that it ran before; 0: not known */
	__u64 memory;	    /* its mm_struct; 0: the next sample fills it in */
	__u64 waiting;	    /* samples in TARGET_WAITING and TARGET_UNTOLD */
	__u64 interpreters; /* address of the pointer to the newest interpreter */
	__u64 code_type;    /* address of PyCode_Type */
	__u64 lent; /* address of a thread state that ran in a thread other than its own; or 0 */
	__u64 thread_area; /* the distance from pthread_self() up to the thread pointer */
	__u64 gil_queue;   /* how many threads wait for the GIL (blame.bpf.h) */
	struct entry_gap entry_gap;
	__u32 layout;	  /* index into the map `layouts` */
	__u16 identify;	  /* enum identification, of the code objects in each sample */
	__u16 rate_shift; /* how often its rate is halved */
	__u32 state;	  /* enum target_state */
	__u32 refusal;	  /* enum outcome */
	__u64 bias;	  /* the address of the beginning of ... */
	__u32 image; /* ... the file with this number in user space; 0: user space was not asked */
	__u16 several; /* not 0: a sample has found several interpreters */
	__u16 begins;  /* not 0: no interpreter was found in it yet */
	__u32 repeats; /* not 0: user space has found that code objects share a version */
	__u32 padding;
};

/* How the kernel identifies a mapped file.  The inode number alone is not enough: it is used again,
 * and the same inode may get other contents. */
struct file_key {
	__u64 inode, size;
	__u64 changed; /* time of the last change in nanoseconds; no user can set it back */
	__u32 device, generation;
};

/* A file, as user space found it: the value of the map `known_files`.  Only user space writes
 * it. */
struct known_file {
	__u64 text_offset;  /* where in the file the mapping with its code begins ... */
	__u64 text_address; /* ... and the address of that by the file */
	/* TARGET_PYTHON: the target of a process that has the file mapped, with the file's
	 * addresses.  TARGET_OTHER: the file holds no Python.  TARGET_WAITING: the same, but a
	 * program that begins with it may load a Python. */
	struct target target;
};

/* A thread of a target: the key of the map `told_states`.  Only user space writes it. */
struct thread_key {
	__u64 thread_id;
	__u32 tgid;
	__u32 padding;
};

/* The samples of a stack. */
struct amount {
	__u64 count;
	__u64 value; /* what the samples stand for: nanoseconds of CPU time, page faults */
};

/* The most kinds of events that are sampled at a time; a power of two. */
#define EVENTS_MAX 4

/* The hash in a slot contains the number of the event.  So the event is known even if the stack is
 * never defined. */
#define SLOT_EVENT_SHIFT 60
#define SLOT_EVENT(hash) ((hash) >> SLOT_EVENT_SHIFT & (EVENTS_MAX - 1))

/* One stack of one event on this CPU, and its samples. */
struct slot {
	__u64 hash;	      /* 0: never used */
	struct amount amount; /* only grows, even when the slot changes owners */
	__u64 defined;	      /* the owner's base + 1; 0 until its definition is in the ring */
};

struct bucket {
	struct slot slots[SLOTS_PER_BUCKET];
};

#include "waits.h" /* uses the constants above */

/* What happened to a CPU's samples of an event.  Every counter but `working` only grows. */
struct event_counters {
	__u64 arrived; /* runs of the program, in targets or not; only where they are compared */
	__u64 events;  /* samples; counted on entry, before anything else is known */
	__u64 working; /* 1: a sample is being counted, here and in a slot */
	__u64 passed;  /* runs that a lowered rate passes over; they are not in `events` */
	__u64 without_gil; /* samples of threads that did not hold the GIL, or while none waited for
			    * it; they are in `events`, and have no outcome */
	__u64 lost; /* not counted under any stack: no free slot, and the ring buffer was full */
	__u64 outcomes[OUTCOME_SLOTS];	    /* the outcome of every sample, lost or not */
	__u64 native[NATIVE_OUTCOME_SLOTS]; /* its native part's, with native frames */
	__u64 resumptions;		    /* of native parts, in all */
	__u64 unmatched; /* time of waits whose stack lost its slot, or whose end was not seen */
	__u64 brief;	 /* the time of waits shorter than off_cpu_min */
	__u64 busy;	 /* lost, too: another program worked with the CPU's scratch.  Atomic */
};

/* What a CPU has counted.  Every counter only grows. */
struct cpu_counters {
	__u64 ring_full; /* definitions for which there was no room; each is sent again later */
	__u64 untold;	 /* events of processes that did not fit; such a process is not sampled */
	__u64 crowded;	 /* processes for which there was no room among the targets */
	struct event_counters of[EVENTS_MAX];
};

/* The records in the ring buffer.  The first word of a record is its kind. */
enum record_kind { RECORD_DEFINITION, RECORD_CODE, RECORD_PROCESS };

/*
 * A stack, sent once when a slot gets a new owner.  `base` is the slot's amount at that moment: it
 * belongs to the previous owners.
 */
struct definition {
	__u32 kind; /* RECORD_DEFINITION */
	__u32 cpu;
	__u64 hash;
	struct amount base;
	__u64 serial;	    /* of the target */
	__u64 thread_id;    /* pthread_self(), Python's ident of the thread; 0: it had ended */
	__u64 thread_start; /* in the kernel's time; with the TID, identifies the thread */
	__u32 slot;
	__u32 tgid; /* in user space's PID namespace, as `tid` */
	__u32 tid;
	__u8 outcome;
	__u8 several; /* as in the target */
	__u16 depth;  /* the number of frames that follow, and then ... */
	char thread_name[COMMAND_NAME_MAX];
	__u32 native_depth; /* ... of native frames, and then ... */
	__u32 kernel_depth; /* ... of kernel frames; all innermost first */
	__s32 native_shift; /* to be added to the positions of native frames that are not 0 */
	__u32 wait;	    /* enum wait_reason */
	__u64 lacks_rows;   /* an address for which the native walk found no rows yet; 0: none */
	struct frame frames[STACK_DEPTH_MAX];
};

#define DEFINITION_HEADER_BYTES 112
_Static_assert(__builtin_offsetof(struct definition, frames) == DEFINITION_HEADER_BYTES,
	       "the header is hashed and sent without padding");

/* What is copied of a code object: itself, and three objects that it points to. */
enum code_piece { PIECE_CODE, PIECE_NAME, PIECE_FILENAME, PIECE_LINE_TABLE, CODE_PIECES };

/*
 * A code object as it was while it ran.  It is sent before the definition of the first stack with
 * it on this CPU: it may be gone before user space reads it.
 */
struct code_record {
	__u32 kind; /* RECORD_CODE */
	__u32 padding;
	__u64 serial; /* of the target */
	__u64 address;
	__u64 identity;
	__u16 bytes[CODE_PIECES]; /* the size of each piece; each begins at a multiple of 8 */
	__u64 words[(CODE_RECORD_BYTES + CODE_PIECE_BYTES) / 8]; /* at most CODE_RECORD_BYTES */
};

#define CODE_RECORD_HEADER_BYTES 40
_Static_assert(__builtin_offsetof(struct code_record, words) == CODE_RECORD_HEADER_BYTES,
	       "the header is sent without padding");

/* What happened to a process. */
enum process_event {
	PROCESS_FORKED,	  /* its parent, `before`, is a target */
	PROCESS_EXECUTED, /* it runs another program, from `file`; `before` ran before */
	PROCESS_MAPPED,	  /* it mapped a file that holds a Python, or may hold one */
	PROCESS_ENDED,
};

#define ARGUMENT_BYTES_MAX 1024

/* Such an event, sent before any definition that follows from it. */
struct process_record {
	__u32 kind; /* RECORD_PROCESS */
	__u32 event;
	__u32 pid; /* in user space's PID namespace */
	__u32 kernel_pid;
	__u64 serial, before;
	__u64 waiting;	 /* as in the target after this event */
	__u64 abandoned; /* samples of `before`, if user space had not told what that was */
	__u64 start;	 /* address of the mapping of the code of ... */
	struct file_key file;
	__u64 bias; /* as in the target */
	__u32 image;
	__u32 state; /* the target's, from now on */
	__u32 argument_bytes;
	char arguments[ARGUMENT_BYTES_MAX]; /* the program's, each with a NUL; at the end of a
					     * process, its last title */
};

_Static_assert(sizeof(struct process_record) % 8 == 0, "no padding: it is sent as it is");

/* The size of a record without arguments. */
#define PROCESS_RECORD_HEADER_BYTES __builtin_offsetof(struct process_record, arguments)

/* A number among what the kernel passes to a tracepoint: an argument, or a member of the struct
 * that the argument points to. */
struct tracepoint_field {
	__u32 argument;
	__u32 is_member;
	__u32 offset;	   /* of the member */
	__u32 bytes;	   /* that are read of it, at most 8; 0: there is no such number */
	__u32 left, right; /* shifts that leave the number of what was read */
	__u32 is_signed;
	__u32 padding;
};

struct tracepoint {
	struct tracepoint_field value;	/* of a sample; none: it is 1 */
	struct tracepoint_field filter; /* none: each call counts, otherwise those with ... */
	__u64 filtered;			/* ... this number there */
	__u64 may_interrupt;		/* the thread may be one that was interrupted */
};

/* The kernel's code that handles interrupts lies in as many pieces. */
#define INTERRUPT_CODES 3

struct kernel_code {
	__u64 start, bytes;
};

/* Set by user space before the program is loaded. */
struct config {
	__u64 hash_seed;       /* secret, so that a target cannot prepare collisions */
	__u64 kernel;	       /* record the kernel's frames */
	__u64 native;	       /* record native frames ... */
	__u64 native_all;      /* ... all of them */
	__u64 compared;	       /* a bit for each event whose runs are counted */
	__u64 off_cpu;	       /* the number of the event that is time off the CPU */
	__u64 off_cpu_min;     /* shorter waits are left out; ns */
	__u64 split_run_queue; /* the time from wake-up to the CPU is apart */
	__u64 held;   /* a bit for each event whose samples are only the GIL's holder's ... */
	__u64 blamed; /* ... and for those that count once for each thread that waits for it */
	struct tracepoint tracepoints[EVENTS_MAX]; /* of the events that are one */
	struct kernel_code interrupts[INTERRUPT_CODES];
};

/* A search for the kernel's number of a process, where user space is in its own PID namespace. */
struct pid_search {
	__u32 pid;	  /* wanted: a number in that namespace */
	__u32 kernel_pid; /* found: the kernel's number of the same process; 0: there is none */
	__u32 namesake; /* found: the namespace's number of the process that is `pid` to the kernel;
			 * 0: none */
};

#include "code_identity.h" /* uses the types above */

#endif
