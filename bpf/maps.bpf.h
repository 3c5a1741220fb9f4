/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every map, with who writes it and who reads it.
 *
 * A sample may interrupt anything, in time even a map operation on this very
 * CPU.  So the sampling path never inserts into or deletes from a map: it looks
 * up, writes to what belongs to its own CPU, and outputs to the ring buffer.
 */
#ifndef MAPS_BPF_H
#define MAPS_BPF_H

const volatile struct config config;

#define BLOCK_WORDS (BLOCK_BYTES / sizeof(__u64))

/* Of the states that may be a thread's, so many are looked for on its C stack; a power of two. */
#define CANDIDATES_MAX 8

/* How a thread of a target was last found (thread.bpf.h). */
struct cached_thread {
	__u64 start_time; /* with the tid, the thread's identity: tids are used again */
	__u64 tstate;	  /* 0: it had none when ... */
	__u64 newest;	  /* ... this was the newest thread state, as in 2.7 always; else the
			   * newest interpreter */
	__u32 tid;
	__u32 trusted;	   /* samples for which having none is believed without another search */
	__u32 several;	   /* there were several interpreters */
	__u32 borrows;	   /* not 0: it was seen in a state that is another's */
	__u64 stack_limit; /* its C stack cannot be read beyond this; 0: not known */
};

/* A frame's layout in words, and what is to be shifted and masked out of them: the same for a whole
 * round.  What a version does not have is masked away, for at each branch the verifier goes both
 * ways, in each step of a round anew. */
struct frame_words {
	__u32 previous, code, instruction, owner, tlbc;
	__u32 instruction_shift, owner_shift, entry_shift, tlbc_shift;
	__u32 tlbc_mask;
	__u64 code_mask, code_adaptive, pointer_mask, own_code_bytes;
	__u64 owner_mask, entry_mask;
	bool internal_is_entry, each_is_entry;
};

/* How far above an activation's entry its C frame ends, and where that has the caller's frame
 * pointer, as M of a row; 0: not known. */
#define ANCHOR(distance, m)	((__u64)(distance) << 8 | (m))
#define ANCHOR_DISTANCE(anchor) ((anchor) >> 8)
#define ANCHOR_M(anchor)	((anchor)&0xff)

/* The interpreter has several such places: none can be told. */
#define ANCHOR_SPOILED (~0ULL)

/* What is looked for on the C stack (greenlet.bpf.h): the base of a greenlet's part, then a frame
 * of the eval loop. */
enum {
	SEARCH_NOTHING,
	SEARCH_BASE,
	SEARCH_EVAL_LOOP,
	SEARCH_DONE,
};

/* The walk over the native frames (join.bpf.h). */
struct native_walk {
	__u64 pc, sp, fp;
	__u32 is_return;    /* pc is a return address, behind the call */
	__u32 is_innermost; /* all registers are known */
	__u32 has_fp;
	__u32 kind;    /* enum frame_kind of the frame at pc */
	__u32 outcome; /* enum native_outcome */
	__u32 steps;
	__u32 reads;		 /* of blocks and by odd rows */
	__u32 depth, leaf_depth; /* frames that were recorded, and those below all Python frames */
	__u32 matched;		 /* activations that have their frame, or frames of the eval loop */
	__u32 wanted;		 /* how many there are of Python's stack */
	__u32 position;		 /* Python frames that these have */
	__s32 shift;		 /* to be added to all positions but 0 */
	__u32 resumptions;
	__u32 lacks_entries;
	__u32 search;  /* SEARCH_* */
	__u32 cframes; /* in the list of these */
	__u64 cframe;  /* the next one */
	struct unwind_table table;
	__u64 mapping_start, mapping_bytes, bias; /* that was used last */
	__u32 file_number;
	__u32 trampoline_row;
	__u32 anchor_file;
	struct unwind_file file;
	__u64 first_anchor, anchors_differ;
	__u64 lacks_rows; /* the first address without rows yet, or its page; 0: there was none */
	__u64 stack_limit;
	__u64 hash;
};

/* The scratch of one sample; a CPU never works on two at a time. */
struct walk {
	struct target target; /* as it was when the sample began */
	struct layout layout;
	__u32 identify; /* enum identification */
	__u32 defining; /* the stack is known by its hash, and identified wholly for its definition
			 */
	__u64 code_type;
	__u64 thread_id; /* the thread's pthread_self() */
	__u64 thread_start;

	/* The search for the thread state. */
	__u64 interp;
	__u64 tstate;
	__u64 newest_interp;
	__u64 newest_tstate;
	__u32 interps;
	__u32 untaken;	  /* a state that its thread has not taken yet was seen */
	__u32 passed_own; /* and one without frames that this thread has, in this interpreter ... */
	__u32 doubtful;	  /* ... and behind it one that may be left over */
	__u32 frameless;  /* a state of this thread that has no frames was seen; a new one may be
			   * another thread's that begins */
	__u32 greenlet;	  /* and it is a greenlet's that begins */
	__u32 seen_own;	  /* one with frames was seen ... */
	__u32 rivals;	  /* ... and behind it an older one ... */
	__u32 only_certain; /* ... or else it is certain */
	__u32 certain;	    /* the state that was found is the thread's as long as it says so */
	__u32 several;	    /* there are several interpreters */
	__u64 handed; /* one of another thread that this one may run, and of no more than that */
	__u64 lent;   /* as in the target, as it is after this sample */

	/* The choice between several states (interpreters.bpf.h). */
	__u64 best, best_rank;
	__u32 ties; /* others of the same rank */
	__u32 frameless_current;
	__u32 candidates;
	__u64 candidate_frames[CANDIDATES_MAX], candidate_tstates[CANDIDATES_MAX];

	/* Calls between interpreters (nesting.bpf.h). */
	__u64 standing;	       /* the thread state that the walk began in ... */
	__u64 standing_interp; /* ... and its interpreter, up to 3.11 */
	__u64 span_start;      /* the C stack from here on ... */
	__u64 bottom;	       /* ... to here is that of what was walked last; ... */
	__u64 bottom_before;   /* ... in 3.15, of what ends with the base frame */
	__u64 first_entry;     /* of what was walked last */
	__u64 nearest_entry;
	__u32 joined_entries; /* the activations of what is joined for certain */
	__u64 joined_hash;    /* of what ... */
	__u32 joined_depth;   /* ... is joined for certain */
	__u32 entry_steps;    /* how many are left */

	/* The walk over the frames. */
	struct frame_words words;
	__u64 frame;
	__u64 innermost;     /* that the walk began with */
	__u64 newest_cframe; /* where the list of C frames begins */
	__u64 cframe;	     /* of the activation of the eval loop that the walk began in */
	__u64 caller;	     /* the frame that called this activation ... */
	__u64 proving;	     /* ... until it is proved that the walk leads there */
	__u64 refuted;	     /* it was found that it leads elsewhere */
	__u64 nearest;	     /* activation above, when the walk is to begin there */
	__u64 generator;     /* object of the innermost frame, where that is not linked ... */
	__u64 resumer;	     /* ... a frame that resumes it, or calls the innermost ... */
	__u64 entry;	     /* ... the interpreter's own frame of this activation */
	__u32 resumers;	     /* how many of the registers' frames do, and ... */
	__u32 running;	     /* ... how many may run */
	__u64 in_jit;	     /* the JIT's code runs the innermost frame */
	__u64 registers[REGISTERS];
	__u64 stack_pointer; /* 0 where it could not be had */
	__u32 has_registers;
	__s32 system_call; /* if these are the task's */
	__u32 wait;	   /* enum wait_reason */
	__u32 slot;	   /* of this CPU, that the stack was counted in */
	__u64 program_counter;
	__u64 at_root;	     /* the last frame is one that a stack may begin with */
	__u64 by_thread;     /* the last frame lies in the thread's data stack */
	__u64 own_code;	     /* of the interpreter, seen in this walk */
	__u64 unseen_thread; /* the part of the thread's number that does not count */
	__u64 hash_seed;
	__u64 chunk; /* the data stack's newest; 0 once it was found not readable */
	__u64 block_start, block_end;
	__u64 hash;
	__u64 unreadable; /* the address that ended the search or the walk */
	__u32 depth;
	__u32 outcome;

	/* In words: a BPF load of more than a byte must be known to be aligned. */
	__u64 tstate_words[THREAD_STATE_BYTES / sizeof(__u64)];
	__u64 code_words[CODE_IDENTITY_BYTES / sizeof(__u64)];
	__u64 text_head[TEXT_HEAD_WORDS], text_end[TEXT_END_WORDS];
	__u64 line_table[LINE_TABLE_WORDS];
	__u64 filename, filename_digest; /* of the last frame */
	__u64 block[BLOCK_WORDS + FRAME_FIELD_MAX / sizeof(__u64)];
	struct cached_thread threads[THREAD_CACHE_ENTRIES];
	__u64 kernel[KERNEL_FRAMES_MAX]; /* program counters, where the kernel was interrupted */
	__u32 kernel_depth;
	struct native_walk native;
	__u64 entries[STACK_FRAMES_MAX];      /* of activations, on the C stack, ... */
	__u32 entry_depths[STACK_FRAMES_MAX]; /* ... with how many Python frames are in them */
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

/* tgid -> what to walk.  User space writes, and what follows processes (processes.bpf.h), which
 * never interrupts anything; a sample looks up.  Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TARGETS_MAX);
	__type(key, __u32);
	__type(value, struct target);
} targets SEC(".maps");

/* What is known of files that are mapped, those that were met last.  User space writes, what
 * follows processes, which never interrupts anything, looks up. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, KNOWN_FILES_MAX);
	__type(key, struct file_key);
	__type(value, struct known_file);
} known_files SEC(".maps");

/* User space writes, the kernel looks up. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LAYOUTS_MAX);
	__type(key, __u32);
	__type(value, struct layout);
} layouts SEC(".maps");

/* Thread -> address of its thread state, in processes with more of these than are searched.  User
 * space writes, the kernel looks up. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TOLD_STATES_MAX);
	__type(key, struct thread_key);
	__type(value, __u64);
} told_states SEC(".maps");

/* One entry a CPU, which alone touches it.  Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk);
} walks SEC(".maps");

/* One entry a CPU, which alone writes it; user space reads it in place.  Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_counters);
} counters SEC(".maps");

/* STACK_BUCKETS entries a CPU, which alone writes them; user space reads them in place. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, STACK_BUCKETS);
	__type(key, __u32);
	__type(value, struct bucket);
} stacks SEC(".maps");

/* Thread -> its wait.  Only switches of threads write, with interrupts off and never in an NMI;
 * user space reads.  Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WAITS_MAX);
	__type(key, __u32);
	__type(value, struct wait);
} waits SEC(".maps");

/* Definitions of stacks, code objects, and what became of processes, to user space. */
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

/* Rows and tables of mappings, a map of one chunk each.  User space adds chunks and writes to them,
 * the kernel reads. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNWIND_CHUNKS_MAX);
	__uint(key_size, sizeof(__u32));
	__array(values, struct unwind_chunk);
} unwind_chunks SEC(".maps");

/* Where a file's rows are.  User space writes, the kernel looks up. */
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

/* What a process maps, by its serial number.  User space writes; samples look up, and write what
 * they learn of the process in place.  Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TARGETS_MAX);
	__type(key, __u64);
	__type(value, struct unwind_table);
} unwind_tables SEC(".maps");

/* Has something in it when a program begins that has had a Python in one of its libraries before
 * (processes.bpf.h). */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, HERALDS_BYTES);
} heralds SEC(".maps");

#endif
