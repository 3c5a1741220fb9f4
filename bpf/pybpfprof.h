/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The types that the kernel side (bpf/) and the user side (user/) share, and
 * the only place where they are declared.
 *
 * Each CPU owns its `struct cpu_counters` and its buckets of slots, in arrays that
 * both sides see.  The CPU is their only writer; every counter only grows, so user
 * space takes differences and never resets anything.
 */
#ifndef PYBPFPROF_H
#define PYBPFPROF_H

#ifndef __bpf__
#include <linux/types.h>
#include <stdbool.h>
#endif

#include "unwind.h"

/* 1,000 Python frames is what CPython's default recursion limit allows; the
 * room above it is for the interpreter's own and for later kinds of frame. */
#define STACK_FRAMES_MAX 1024

/* Frames of the kernel's own stack; perf walks no more by default. */
#define KERNEL_FRAMES_MAX 127

/* All that a profile's stack may have. */
/* One more is what a thread waits for. */
#define STACK_DEPTH_MAX (1 + STACK_FRAMES_MAX + NATIVE_FRAMES_MAX + KERNEL_FRAMES_MAX)

/* One read from the target: the longest that costs hardly more than a short one. */
#define BLOCK_BYTES 4096

/* The walker's fields of a thread state end below this (3.11: 312). */
#define THREAD_STATE_BYTES 320

/* What identifies a code object lies within so many bytes of it (3.8: 40 to 128). */
#define CODE_IDENTITY_BYTES 128

/* What of a str is looked at to tell it from another: so many bytes at its end; a power of two. */
#define TEXT_END_BYTES 128
#define TEXT_END_WORDS (TEXT_END_BYTES / 8)

/* And so many words from its length on: the length, the hash, its state (not in 2.7).  Of a bytes
 * object, too. */
#define TEXT_HEAD_WORDS 3

/* What of a line table is looked at to tell it from another: of a longer one half of it at its
 * beginning, half at its end; a power of two. */
#define LINE_TABLE_BYTES 256
#define LINE_TABLE_WORDS (LINE_TABLE_BYTES / 8)

/* What of a code object is copied, each of the objects that it leads to, and all of these together;
 * a power of two. */
#define CODE_HEAD_BYTES	  256
#define CODE_PIECE_BYTES  (16 * 1024)
#define CODE_RECORD_BYTES (32 * 1024)

/* What is copied for one stack at most, and this CPU's memory of what it has copied; a power of
 * two. */
#define CODES_BYTES_A_STACK (128 * 1024)
#define COPIED_CODES	    1024

/* The walker's fields of a frame end below this (a debug build's, 2.7: 140); a power of two. */
#define FRAME_FIELD_MAX 256

/* A walk over the interpreters' thread lists looks at so many states at most:
 * at 85 ns each, 90 us in the worst interrupt. */
#define THREAD_STATES_MAX 1024

/* Of processes with more, so many states are told to the kernel. */
#define TOLD_STATES_MAX 16384

/* This CPU's recently seen threads.  Direct-mapped by tid; a power of two. */
#define THREAD_CACHE_ENTRIES 512

/* This CPU's stacks: buckets of a cache line and a half each; powers of two. */
#define STACK_BUCKETS	 2048
#define SLOTS_PER_BUCKET 4
#define STACK_SLOTS	 (STACK_BUCKETS * SLOTS_PER_BUCKET)

#define RING_BYTES	 (8 * 1024 * 1024)
#define HERALDS_BYTES	 (64 * 1024) /* the largest page that there is */
#define TARGETS_MAX	 4096	     /* unless the user wants another number */
#define LAYOUTS_MAX	 64
#define KNOWN_FILES_MAX	 16384
#define COMMAND_NAME_MAX 16

/* A copy whose index is beyond what a frame record holds. */
#define TLBC_INDEX_MAX 0xffff

/* An offset that this Python version does not have. */
#define OFFSET_ABSENT 0xffff

/* No position: less than any that an instruction has. */
#define POSITION_UNKNOWN (-0x7fffffff - 1)

/*
 * What became of a sample.  The name is the one in the ledger (--stats), the
 * text is the frame that stands in the profile.  Everything from the first
 * error on is an error.
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
	X(CODE_REPLACED, "code_replaced", "[code object replaced during sampling]")

enum outcome {
#define X(id, name, text) OUTCOME_##id,
	OUTCOMES(X)
#undef X
		OUTCOME_COUNT,
	OUTCOME_FIRST_ERROR = OUTCOME_NO_LAYOUT,
};

/* Room for them in an array whose index the verifier can follow; a power of two. */
#define OUTCOME_SLOTS 32

_Static_assert((int)OUTCOME_COUNT <= OUTCOME_SLOTS, "every outcome has a counter");

/* What a frame record describes. */
enum frame_kind {
	FRAME_PYTHON = 1, /* address: code object; position: see `position` */
	FRAME_NATIVE,	  /* address: program counter */
	FRAME_KERNEL,	  /* address: program counter */
	FRAME_JIT,	  /* address: program counter; of CPython's JIT */
	FRAME_REASON,	  /* why the stack ends here, or has no Python; address: what was not
			   * readable, or 0 */
};

/* One frame of a stack, leaf first. */
struct frame {
	__u64 address;
	/* Python: code_identity() of what is at `address`, up to 3.11 code_identity_with(); 0 where
	 * it was not read. */
	__u64 identity;
	/* Python: the current instruction as its version counts it: bytes up to 3.9, code units
	 * from 3.10 on.  Negative before the first instruction.  Where a thread may have its own
	 * copy of the instructions (3.14t+) the copy's distance is in it, modulo 2^32.
	 * POSITION_UNKNOWN where the frame does not tell.  Native: how many of the stack's Python
	 * frames it called. */
	__s32 position;
	__u16 kind;
	__u16 detail; /* Python: the index of that copy, 0: none; a reason: an outcome; machine
		       * code: 1 where the address is a return address, behind the call */
};

_Static_assert(sizeof(struct frame) == 24, "no padding: frames are compared as bytes");

/*
 * Where the walker finds what in one version of CPython: byte offsets, or
 * OFFSET_ABSENT.  The names are those of CPython's own structs.
 */
struct layout {
	__u16 interp_next;
	__u16 interp_tstate_head;
	__u16 tstate_next;
	__u16 tstate_interp; /* 2.7-3.11 */
	__u16 tstate_thread_id;
	__u16 tstate_gilstate_counter; /* 2.7, an int: not 0 once the thread has taken its state;
					* absent also where the process was not forked */
	__u16 tstate_frame;	       /* 2.7-3.10: PyFrameObject *; 3.13+: current_frame */
	__u16 tstate_cframe;	       /* 3.10-3.12 */
	__u16 tstate_root_cframe;      /* 3.10-3.12 */
	__u16 tstate_datastack_chunk;  /* 3.11+ */
	__u16 tstate_datastack_top;    /* 3.11, 3.12 */
	__u16 tstate_base_frame;       /* 3.15: below all calls */
	__u16 tstate_status;	       /* 3.12+ */
	__u16 tstate_whence;	       /* 3.13+ */
	__u16 tstate_calls_left;  /* 3.12+, an int: how much deeper Python's calls may go, ... */
	__u16 tstate_calls_limit; /* ... and how deep from the first one on */
	__u16 tstate_current_executor; /* 3.14+: not 0 while the JIT's code runs */
	__u16 jit_untold;   /* 1: it has a JIT and does not tell when the code of that runs */
	__u16 tstate_bytes; /* the part of a thread state that is read */
	__u16 cframe_current_frame; /* 3.11, 3.12 */
	__u16 cframe_previous;	    /* 3.10-3.12 */
	__u16 frame_previous;
	__u16 frame_code;
	__u16 frame_instruction; /* f_lasti (an int) where code_adaptive is absent, else a pointer
				  */
	__u16 frame_owner;	 /* 3.11+ */
	__u16 frame_is_entry;	 /* 3.11 */
	__u16 frame_tlbc_index;	 /* 3.14t+: which copy of the instructions */
	__u16 frame_stacktop;	 /* 3.12, an int: the values on its stack, -1 while it runs */
	__u16 frame_localsplus;	 /* 3.12: its variables, and then its stack */
	__u16 generator_state;	 /* 3.12, a byte: negative while it does not run */
	__u16 generator_frame;	 /* 3.12: in the object */
	__u16 frame_bytes;	 /* the part of a frame that is read, from its beginning */
	__u16 object_type;
	__u16 code_flags;	    /* 3.9, 3.10: where a root's are looked at */
	__u16 code_first_traceable; /* 3.13+, an int: of the interpreter's own code, as many as
				     * there are instructions */
	__u16 code_bytes;      /* the part of a code object that is copied, from its beginning */
	__u16 code_shown_name; /* co_qualname from 3.11 on, else co_name */
	__u16 code_name;
	__u16 code_filename;
	__u16 code_line_table;
	__u16 code_first_line;
	__u16 code_version;	   /* 3.12+ */
	__u16 code_identity_start; /* the part of a code object that has these five */
	__u16 code_identity_bytes;
	__u16 code_adaptive;  /* 3.11+: where the code object's instructions begin */
	__u16 object_size;    /* of a str or bytes object: its length */
	__u16 text_state;     /* 3.3+, of a str object: has its characters' width ... */
	__u16 text_width_bit; /* ... from this bit on */
	__u16 text_ascii;     /* where a str object's characters begin, if they are ASCII ... */
	__u16 text_wide;      /* ... and if they are not */
	__u16 bytes_data;     /* where a bytes object's bytes begin */
	__u16 tag_mask;	      /* 3.14+: bits of a frame's code pointer that are not address */
	__u16 in_blocks;      /* 3.11+: callers lie below their callees in one data stack */
};

_Static_assert(sizeof(struct layout) == 106, "no padding: a layout is compared as bytes");

/*
 * The instructions of the eval loop's beginning before which the thread already has
 * the new call's frame, but the interpreter's own frame below that is not written yet
 * (entry_gap.bpf.h).
 */
struct entry_gap {
	__u64 start;	/* address of the first */
	__u32 length;	/* bytes of all of them; 0: there are none, or it is not known */
	__u16 unlinked; /* in the first so many bytes the caller's frame is only ... */
	__u16 caller;	/* ... in the register of this number */
};

/* What is known of a process. */
enum target_state {
	TARGET_PYTHON,	/* it is walked */
	TARGET_LOADING, /* the same, once its exec is complete */
	TARGET_WAITING, /* user space has to tell what it runs; its samples are counted meanwhile */
	TARGET_UNTOLD,	/* the same, but user space was not asked, and has to find it by itself */
	TARGET_REFUSED, /* a Python that cannot be walked; `refusal` says why */
	TARGET_OTHER,	/* no Python: followed for what it starts */
	TARGET_UNWANTED, /* a Python that is not wanted: followed for what it forks may be */
};

/* Which processes are looked at besides those that user space tells. */
enum following {
	FOLLOW_NONE,
	FOLLOW_CHILDREN, /* what those fork */
	FOLLOW_ALL,	 /* and whatever maps a file that holds a Python */
};

/* What tells a code object from another one that was at its address before. */
enum identification {
	IDENTIFIED_NOT,	     /* nothing: it is taken for the same */
	IDENTIFIED_BY_WORDS, /* what it says itself: where its names and its line table are, its
			      * first line, and from 3.12 on its version */
	IDENTIFIED_WHOLLY,   /* and, where it has no version of its own, what these are */
};

/* Serial numbers that user space gives have no more; the kernel side's do, soon after a boot. */
#define USER_SERIAL_BITS 32

/* A process to sample: the value of the map `targets`, keyed by the kernel's tgid. */
struct target {
	/* What tells this process, while it runs this program, from all others of now and before:
	 * numbers are used again. */
	__u64 serial;
	__u64 before;	    /* the serial of the program that it ran before, 0: not known */
	__u64 memory;	    /* its mm_struct; 0: that of the next sample */
	__u64 waiting;	    /* samples in TARGET_WAITING and TARGET_UNTOLD */
	__u64 interpreters; /* address of the pointer to the newest interpreter */
	__u64 code_type;    /* address of PyCode_Type */
	__u64 lent;	    /* address of a thread state that another thread was seen in; or 0 */
	__u64 thread_area;  /* pthread_self() is so many bytes below the thread pointer */
	struct entry_gap entry_gap;
	__u32 layout;	/* index into the map `layouts` */
	__u16 identify; /* enum identification, of the code objects in each sample */
	__u16 halvings; /* how often its rate is halved */
	__u32 state;	/* enum target_state */
	__u32 refusal;	/* enum outcome */
	__u64 bias;	/* where what the file has at 0 is, for ... */
	__u32 image;	/* ... the file that user space knows by this number; 0: it was not asked */
	__u16 several;	/* not 0: a sample has seen that it has several interpreters */
	__u16 begins;	/* not 0: nobody has seen yet that it has any */
	__u32 repeats;	/* not 0: user space has seen that one version is several code objects' */
	__u32 padding;
};

/* What the kernel knows a file by that is mapped: its inode's number may be used again, and another
 * content be written to the same inode. */
struct file_key {
	__u64 inode, size;
	__u64 changed; /* when it was changed last: nanoseconds, which no user can set back */
	__u32 device, generation;
};

/* Such a file, as user space found it: the value of the map `known_files`, written by user space
 * only. */
struct known_file {
	__u64 text_offset;  /* where in the file the part begins that holds its code, and ... */
	__u64 text_address; /* ... the address that the file gives it */
	/* TARGET_PYTHON: what a process is that has it at the file's addresses; TARGET_OTHER: it
	 * holds no Python; TARGET_WAITING: nor does that, but what begins with it may be one. */
	struct target target;
};

/* A thread of a target: the key of the map `told_states`, written by user space only. */
struct thread_key {
	__u64 thread_id;
	__u32 tgid;
	__u32 padding;
};

/* What the samples of a stack come to. */
struct amount {
	__u64 count;
	__u64 value; /* what they stand for: nanoseconds of CPU time, page faults */
};

/* Kinds of events that are sampled at a time; a power of two. */
#define EVENTS_MAX 4

/* A slot's hash has its event's number, also where the stack was never defined. */
#define SLOT_EVENT_SHIFT 60
#define SLOT_EVENT(hash) ((hash) >> SLOT_EVENT_SHIFT & (EVENTS_MAX - 1))

/* One distinct stack of this CPU, of one event, and what was counted of it. */
struct slot {
	__u64 hash;	      /* 0: never used */
	struct amount amount; /* only grows, also from one owner to the next */
	__u64 defined; /* once the owner's definition is in the ring buffer: its base and 1 more */
};

struct bucket {
	struct slot slots[SLOTS_PER_BUCKET];
};

/* What a thread was switched out for; of a system call WAIT_SYSTEM_CALL and its number. */
enum wait_reason { WAIT_NONE, WAIT_RUNNABLE, WAIT_FAULT, WAIT_KERNEL, WAIT_SYSTEM_CALL = 16 };

/* A thread that is, or was, off the CPU, and the slot that its time goes to. */
struct wait {
	__u64 since;	  /* ns, CLOCK_MONOTONIC; 0: it runs */
	__u64 start_time; /* of the thread: its number is used again */
	__u64 hash;	  /* of the stack that it was last walked with; 0: none */
	__u64 period;	  /* the one in which ... */
	__u32 walks;	  /* ... it was walked as often */
	__u32 slot;	  /* cpu * STACK_SLOTS and the slot's number there */
};

#define WAITS_MAX 65536

/* A thread that is switched out more often in WALK_PERIOD_NS is not walked any more in that time:
 * its waits go to the stack that it was walked with last. */
#define WALK_PERIOD_NS	   100000000ULL
#define WALKS_A_PERIOD_MAX 200

/* What a CPU's samples of an event came to; each only grows. */
struct event_counters {
	__u64 arrived; /* runs of the program, of targets or not; where that is compared */
	__u64 events;  /* counted on entry, before anything else is known */
	__u64 passed;  /* runs that a target's lowered rate makes no samples, nor events */
	__u64 lost;    /* not counted under any stack: no free slot and the ring buffer full */
	__u64 outcomes[OUTCOME_SLOTS];	    /* what every sample, lost or not, came to */
	__u64 native[NATIVE_OUTCOME_SLOTS]; /* and its native part, if that is wanted */
	__u64 resumptions;		    /* of native parts, of all together */
	__u64 unmatched;		    /* value of waits whose stack lost its slot meanwhile */
};

/* What a CPU has counted; each only grows. */
struct cpu_counters {
	__u64 ring_full; /* definitions that did not fit; each is sent again later */
	__u64 untold;	 /* what became of processes, and did not fit: these are not sampled */
	__u64 crowded;	 /* processes for which there was no room among the targets */
	struct event_counters of[EVENTS_MAX];
};

/* What the ring buffer holds; each record's first word says which. */
enum record_kind { RECORD_DEFINITION, RECORD_CODE, RECORD_PROCESS };

/*
 * A stack, sent once when a slot gets a new owner.  `base` is what the slot had
 * counted at that moment: all of that belongs to previous owners.
 */
struct definition {
	__u32 kind; /* RECORD_DEFINITION */
	__u32 cpu;
	__u64 hash;
	struct amount base;
	__u64 serial;	    /* of the target */
	__u64 thread_id;    /* pthread_self(), Python's ident of it; 0: it had none any more */
	__u64 thread_start; /* when it began, in the kernel's time: what has its TID later is
			       another */
	__u32 slot;
	__u32 tgid; /* in user space's PID namespace, as the next */
	__u32 tid;
	__u8 outcome;
	__u8 several; /* as in the target */
	__u16 depth;  /* frames that follow, and then ... */
	char thread_name[COMMAND_NAME_MAX];
	__u32 native_depth; /* ... native frames, and then ... */
	__u32 kernel_depth; /* ... those of the kernel; leaf first, too */
	__s32 native_shift; /* to be added to a native frame's position, unless that is 0 */
	__u32 wait;	    /* enum wait_reason */
	__u64 lacks_rows;   /* an address that the native walk met no rows at; 0: there was none */
	struct frame frames[STACK_DEPTH_MAX];
};

#define DEFINITION_HEADER_BYTES 112
_Static_assert(__builtin_offsetof(struct definition, frames) == DEFINITION_HEADER_BYTES,
	       "the header is hashed and sent without padding");

/* What is copied of a code object: of itself, and the objects that it has these in. */
enum code_piece { PIECE_CODE, PIECE_NAME, PIECE_FILENAME, PIECE_LINE_TABLE, CODE_PIECES };

/*
 * A code object as it was while it ran, sent before the definition of the first stack
 * that has it on this CPU: it may be gone before user space comes to read it.
 */
struct code_record {
	__u32 kind; /* RECORD_CODE */
	__u32 padding;
	__u64 serial; /* of the target */
	__u64 address;
	__u64 identity;
	__u16 bytes[CODE_PIECES]; /* of each piece; each begins at a multiple of 8 */
	__u64 words[(CODE_RECORD_BYTES + CODE_PIECE_BYTES) / 8]; /* CODE_RECORD_BYTES at most */
};

#define CODE_RECORD_HEADER_BYTES 40
_Static_assert(__builtin_offsetof(struct code_record, words) == CODE_RECORD_HEADER_BYTES,
	       "the header is sent without padding");

/* What happened to a process. */
enum process_event {
	PROCESS_FORKED,	  /* its parent, `before`, is a target */
	PROCESS_EXECUTED, /* it runs another program, from `file`; `before` ran before */
	PROCESS_MAPPED,	  /* a file that may hold a Python, or is known to */
	PROCESS_ENDED,
};

#define ARGUMENT_BYTES_MAX 1024

/* It, sent before any definition of what it leads to. */
struct process_record {
	__u32 kind; /* RECORD_PROCESS */
	__u32 event;
	__u32 pid; /* in user space's PID namespace */
	__u32 kernel_pid;
	__u64 serial, before;
	__u64 waiting;	 /* as in the target, which ends with this */
	__u64 abandoned; /* of what `before` stands for, if user space has not told yet what that is
			  */
	__u64 start;	 /* address of the mapping of the code of ... */
	struct file_key file;
	__u64 bias; /* as in the target, which has ... */
	__u32 image;
	__u32 state; /* ... this from now on */
	__u32 argument_bytes;
	__u32 halvings;			    /* as in the target */
	char arguments[ARGUMENT_BYTES_MAX]; /* of the program, each with a NUL; of one that
					     * ends, the title that it has then */
};

_Static_assert(sizeof(struct process_record) % 8 == 0, "no padding: it is sent as it is");

/* Where there are no arguments, no more than this is sent. */
#define PROCESS_RECORD_HEADER_BYTES __builtin_offsetof(struct process_record, arguments)

/* Set by user space before the program is loaded. */
struct config {
	__u64 hash_seed;  /* so that a target cannot prepare collisions */
	__u64 kernel;	  /* stacks have kernel frames */
	__u64 native;	  /* and native ones, ... */
	__u64 native_all; /* ... all of them */
	__u64 compared;	  /* a bit for each event whose runs are counted */
	__u64 off_cpu;	  /* the number of the event that is time off the CPU */
};

/* The kernel's number of a process, where user space is in a PID namespace of its own. */
struct pid_search {
	__u32 pid;	  /* what is looked for: a number in that namespace */
	__u32 kernel_pid; /* found: the kernel's of the same process; 0: there is none */
	__u32 namesake;	  /* found: the namespace's of the one that is PID to the kernel; 0: none */
};

#include "code_identity.h" /* of what is above */

#endif
