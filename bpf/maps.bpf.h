/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All maps, with their writers and readers.
 *
 * A sample may interrupt anything, even a map operation on this CPU.  So the sampling path never
 * inserts into a map or deletes from one: it looks up, writes to what belongs to its own CPU, and
 * outputs to the ring buffer.
 */
#ifndef MAPS_BPF_H
#define MAPS_BPF_H

const volatile struct config config;

#define BLOCK_WORDS (BLOCK_BYTES / sizeof(__u64))

/* The C stack is searched for at most this many thread states; a power of two. */
#define CANDIDATES_MAX 8

/* How a thread of a target was last found (thread.bpf.h). */
struct cached_thread {
	__u64 start_time; /* identifies the thread, with its TID: TIDs are used again */
	__u64 tstate;	  /* 0: it had none */
	/* The newest interpreter; in 2.7, or without a state, the newest thread state. */
	__u64 newest;
	__u32 tid;
	__u32 trusted;	   /* samples that may still assume, without a search, that it has none */
	__u32 several;	   /* there were several interpreters */
	__u32 borrows;	   /* not 0: it was seen in another thread's state */
	__u64 stack_limit; /* its C stack cannot be read from here on; 0: not known */
};

/* The layout of a frame in words, with shifts and masks; the same for a whole round.  Fields that a
 * version does not have are masked out.  A branch would be worse: the verifier follows both sides,
 * in each step of a round. */
struct frame_words {
	__u32 previous, code, instruction, owner, tlbc;
	__u32 instruction_shift, owner_shift, entry_shift, tlbc_shift;
	__u32 tlbc_mask;
	__u64 code_mask, code_adaptive, pointer_mask, own_code_bytes;
	__u64 owner_mask, entry_mask;
	bool internal_is_entry, each_is_entry;
};

/* Where the C frame of an activation ends, as the distance above the activation's entry, and where
 * that frame saves the caller's frame pointer, as M of a row; 0: not known. */
#define ANCHOR(distance, m)	((__u64)(distance) << 8 | (m))
#define ANCHOR_DISTANCE(anchor) ((anchor) >> 8)
#define ANCHOR_M(anchor)	((anchor)&0xff)

/* The interpreter has several such places, so the anchor is of no use. */
#define ANCHOR_SPOILED (~0ULL)

/* What the native walk looks for (greenlet.bpf.h): the base of a greenlet's part of the C stack,
 * then a frame of the eval loop. */
enum {
	SEARCH_NOTHING,
	SEARCH_BASE,
	SEARCH_EVAL_LOOP,
	SEARCH_DONE,
};

/* The walk through the native frames (join.bpf.h). */
struct native_walk {
	__u64 pc, sp, fp;
	__u32 is_return;    /* pc is a return address, behind the call */
	__u32 is_innermost; /* all registers are known */
	__u32 has_fp;
	__u32 kind;    /* enum frame_kind of the frame at pc */
	__u32 outcome; /* enum native_outcome */
	__u32 steps;
	__u32 reads;		 /* of blocks, and by rows other than ROW_SP and ROW_FP */
	__u32 depth, leaf_depth; /* frames that were recorded; those inside all Python frames */
	__u32 matched;		 /* activations whose frame was found, or frames of the eval loop */
	__u32 wanted;		 /* the number of activations in the Python stack */
	__u32 position;		 /* how many Python frames these have */
	__s32 shift;		 /* to be added to all positions but 0 */
	__u32 resumptions;
	__u32 lacks_entries;
	__u32 search;  /* SEARCH_* */
	__u32 cframes; /* how many were listed */
	__u64 cframe;  /* the next one to list */
	struct unwind_table table;
	__u64 mapping_start, mapping_bytes, bias; /* the mapping that was used last */
	__u32 file_number;
	__u32 trampoline_row;
	__u32 anchor_file;
	struct unwind_file file;
	__u64 first_anchor, anchors_differ;
	__u64 lacks_rows; /* the first address without rows yet, or its page; 0: none */
	__u64 stack_limit;
	__u64 hash;
};

/* The scratch memory of one sample.  A CPU never works on two samples at a time. */
struct walk {
	struct target target; /* as it was when the sample began */
	struct layout layout;
	__u32 identify; /* enum identification */
	__u32 defining; /* the hash is complete; identify all for the definition */
	__u64 code_type;
	__u64 thread_id; /* pthread_self() of the thread */
	__u64 thread_start;

	/* The search for the thread state. */
	__u64 interp;
	__u64 tstate;
	__u64 newest_interp;
	__u64 newest_tstate;
	__u32 interps;
	__u32 untaken;	    /* a state that its thread has not taken yet was seen */
	__u32 passed_own;   /* a state of it without frames was seen in this interpreter ... */
	__u32 doubtful;	    /* ... and behind it one that may be left over from before a fork */
	__u32 frameless;    /* a state with its id but no frames was seen, perhaps a new thread's */
	__u32 greenlet;	    /* and it is that of a greenlet that begins */
	__u32 seen_own;	    /* a state of this thread with frames was seen ... */
	__u32 rivals;	    /* ... and behind it an older one ... */
	__u32 only_certain; /* ... or the one with frames is certain */
	__u32 certain;	    /* the state that was found is the thread's, as long as it says so */
	__u32 several;	    /* there are several interpreters */
	__u64 handed;	    /* another thread's state that this thread may run; 0: none */
	__u64 lent;	    /* as in the target, after this sample */

	/* The choice between several states (interpreters.bpf.h). */
	__u64 best, best_rank;
	__u32 ties; /* other states of the same rank */
	__u32 frameless_current;
	__u32 candidates;
	__u64 candidate_frames[CANDIDATES_MAX], candidate_tstates[CANDIDATES_MAX];

	/* Calls between interpreters (nesting.bpf.h). */
	__u64 standing;	       /* the thread state that the walk began in ... */
	__u64 standing_interp; /* ... and its interpreter, up to 3.11 */
	__u64 span_start;      /* the C stack from here ... */
	__u64 bottom;	       /* ... to here belongs to what was walked last; ... */
	__u64 bottom_before;   /* ... in 3.15, `bottom` without the base frame */
	__u64 first_entry;     /* of what was walked last */
	__u64 nearest_entry;
	__u32 joined_entries; /* the number of activations in what is joined for certain */
	__u64 joined_hash;    /* the hash ... */
	__u32 joined_depth;   /* ... and depth of what is joined for certain */
	__u32 entry_steps;    /* how many steps are left */

	/* The walk through the frames. */
	struct frame_words words;
	__u64 frame;
	__u64 innermost;     /* where the walk began */
	__u64 newest_cframe; /* the beginning of the list of C frames */
	__u64 cframe;	     /* of the activation that the walk began in */
	__u64 caller;	     /* the frame that called this activation ... */
	__u64 proving;	     /* ... not 0 until the walk has been proved to lead there */
	__u64 refuted;	     /* the walk was found to lead elsewhere */
	__u64 nearest;	     /* the nearest activation above, in which the walk may begin */
	__u64 generator;     /* object of the innermost frame, where that has no link ... */
	__u64 resumer;	/* ... a frame that resumes it, or that calls the innermost frame ... */
	__u64 entry;	/* ... and the interpreter's own frame of this activation */
	__u32 resumers; /* how many frames in registers resume it ... */
	__u32 running;	/* ... and how many may be running */
	__u64 in_jit;	/* the innermost frame runs the JIT's code */
	__u64 registers[REGISTERS];
	__u64 stack_pointer; /* 0: not known */
	__u32 has_registers;
	__s32 system_call;  /* if these are the task's */
	__u32 wait;	    /* enum wait_reason */
	__u32 held;	    /* only the sample of the GIL's holder counts */
	__u32 passed;	    /* it did not */
	__u32 claims;	    /* programs that work with it, or try to (claim) */
	__u32 in_interrupt; /* the thread is one that was interrupted */
	__u32 own_frames;   /* of the kernel's stack, the program's and its caller's */
	__u32 slot;	    /* of this CPU, that the stack was counted in */
	__u64 program_counter;
	__u64 at_root;	     /* a stack may begin with the last frame */
	__u64 by_thread;     /* the last frame is in the thread's data stack */
	__u64 own_code;	     /* the interpreter's own code object, if this walk has seen it */
	__u64 unseen_thread; /* the part of the thread's number that is ignored */
	__u64 hash_seed;
	__u64 chunk; /* the newest chunk of the data stack; 0 once a read of it failed */
	__u64 block_start, block_end;
	__u64 hash;
	__u64 unreadable; /* the address at which the search or the walk failed */
	__u32 depth;
	__u32 outcome;

	/* In words, because the verifier must know that loads of more than a byte are aligned. */
	__u64 tstate_words[THREAD_STATE_BYTES / sizeof(__u64)];
	__u64 code_words[CODE_IDENTITY_BYTES / sizeof(__u64)];
	__u64 text_head[TEXT_HEAD_WORDS], text_end[TEXT_END_WORDS];
	__u64 line_table[LINE_TABLE_WORDS];
	__u64 filename, filename_digest; /* of the last frame */
	__u64 block[BLOCK_WORDS + FRAME_FIELD_MAX / sizeof(__u64)];
	struct cached_thread threads[THREAD_CACHE_ENTRIES];
	__u64 kernel[KERNEL_FRAMES_MAX]; /* program counters, if the kernel was interrupted */
	__u32 kernel_depth;
	struct native_walk native;
	__u64 entries[STACK_FRAMES_MAX];      /* where activations are on the C stack ... */
	__u32 entry_depths[STACK_FRAMES_MAX]; /* ... and how many Python frames come up to there */
	__u32 entry_count;
	struct definition definition;

	/* Copies of code objects (code_copy.bpf.h). */
	__u64 copied[COPIED_CODES];
	__u32 copied_words; /* of the record */
	__u32 copies_left;  /* bytes */
	struct code_record copy;
};

static __always_inline void set_frame(struct frame *frame, __u64 address, __s32 position,
				      __u16 kind, __u16 detail)
{
	frame->address = address;
	frame->identity = 0;
	frame->position = position;
	frame->kind = kind;
	frame->detail = detail;
}

/* tgid -> how to walk the process.  Writers: user space, and the programs that follow processes
 * (processes.bpf.h), which never interrupt anything.  Samples look up.  User space sets the
 * size. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TARGETS_MAX);
	__type(key, __u32);
	__type(value, struct target);
} targets SEC(".maps");

/* File -> what it holds, for the files that were seen last.  User space writes.  The programs that
 * follow processes look up; they never interrupt anything. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, KNOWN_FILES_MAX);
	__type(key, struct file_key);
	__type(value, struct known_file);
} known_files SEC(".maps");

/* The layouts of the CPython versions that targets run.  User space writes, the kernel looks up. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LAYOUTS_MAX);
	__type(key, __u32);
	__type(value, struct layout);
} layouts SEC(".maps");

/* Thread -> address of its thread state, in processes with more states than are searched.  User
 * space writes, the kernel looks up. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TOLD_STATES_MAX);
	__type(key, struct thread_key);
	__type(value, __u64);
} told_states SEC(".maps");

/* One entry for each CPU, which alone uses it.  User space sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk);
} walks SEC(".maps");

/* One entry for each CPU, which alone writes it.  User space maps it for reading, and sets the
 * size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_counters);
} counters SEC(".maps");

/* STACK_BUCKETS entries for each CPU, which alone writes them.  User space maps them for reading.
 * With waits there are as many more, which user space writes (blocked.bpf.h). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, STACK_BUCKETS);
	__type(key, __u32);
	__type(value, struct bucket);
} stacks SEC(".maps");

/* Thread -> its wait.  Switches of threads write, with interrupts off and never in an NMI.  User
 * space reads, and adds entries of threads that have none (blocked.bpf.h).  Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WAITS_MAX);
	__type(key, __u32);
	__type(value, struct wait);
} waits SEC(".maps");

/* Thread -> its wait for the GIL.  As `waits`, but user space does not read it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WAITS_MAX);
	__type(key, __u32);
	__type(value, struct gil_wait);
} gil_waits SEC(".maps");

/* Definitions of stacks, code objects and events of processes, for user space. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} definitions SEC(".maps");

struct unwind_chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, CHUNK_SIZE);
};

/* Rows, and tables of mappings, in inner maps of one chunk each.  User space adds and writes
 * chunks, the kernel reads. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNWIND_CHUNKS_MAX);
	__uint(key_size, sizeof(__u32));
	__array(values, struct unwind_chunk);
} unwind_chunks SEC(".maps");

/* Where the rows of a file are.  User space writes, the kernel looks up. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNWIND_FILES_MAX);
	__type(key, __u32);
	__type(value, struct unwind_file);
} unwind_files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNWIND_RULES_MAX);
	__type(key, __u32);
	__type(value, struct unwind_rule);
} unwind_rules SEC(".maps");

/* Serial number -> what the process maps.  User space writes.  Samples look up, and write what they
 * learn of the process in place.  User space sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TARGETS_MAX);
	__type(key, __u64);
	__type(value, struct unwind_table);
} unwind_tables SEC(".maps");

/* Gets a record when a program begins that has had a Python in one of its libraries before
 * (processes.bpf.h). */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, HERALDS_BYTES);
} heralds SEC(".maps");

#endif
