/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What user space (user/unwind/) and BPF (native.bpf.h) share to walk native frames: a part of
 * pybpfprof.h.
 *
 * Rows are made from a file's call frame information: they tell where the caller of an instruction
 * has its registers.  A row is one word, and holds from one address up to the next row's.  The CFA
 * (canonical frame address) is the stack pointer that the caller had before the call.
 *
 *   bits  0-7   the address at which it begins: its lowest byte
 *         8-10  enum row_kind
 *         11    ROW_PLUMBING
 *         12    ROW_EVAL_LOOP
 *         13-23 N
 *         24-31 M
 *
 * What does not fit into a word is a rule in a table of its own: bits 13-31 have its number.
 */
#ifndef UNWIND_H
#define UNWIND_H

#ifndef __bpf__
#include <linux/types.h>
#endif

/* Native frames that are recorded, and that are walked: most are the interpreter's plumbing. */
#define NATIVE_FRAMES_MAX 1024
#define NATIVE_READS_MAX  1024 /* of the target's memory: some 100 us */
#define NATIVE_STEPS_MAX  4096

enum row_kind {
	ROW_SP, /* CFA = stack pointer + 8 * N; the caller's frame pointer is at CFA - 8 * M; M = 0:
		 * unchanged.  The return address is at CFA - 8; on aarch64 at CFA - 8 * M + 8, and
		 * with M = 0 in the link register. */
	ROW_FP, /* the same from the frame pointer */
	ROW_RULE,   /* rule number ROW_NUMBER */
	ROW_PLT,    /* x86-64: CFA = stack pointer + 8, and 8 more from byte N of 16 on */
	ROW_NONE,   /* there is none; ROW_NUMBER: enum row_absence */
	ROW_END,    /* nothing called this */
	ROW_SIGNAL, /* a signal handler returns here: the registers are in the signal's frame */
	ROW_RA,	    /* aarch64: CFA as ROW_SP, the return address alone at CFA - 8 * M */
};

enum row_absence {
	ROW_NO_CODE,	 /* the file does not describe this address */
	ROW_UNSUPPORTED, /* what it says cannot be expressed */
	ROW_NOT_LOADED,	 /* user space has not made the file's rows, or does not know the address */
};

#define ROW_N_LIMIT	 (1 << 11)
#define ROW_M_LIMIT	 (1 << 8)
#define ROW_NUMBER_LIMIT (1 << 19)

/* Frames of functions that the interpreter calls itself by; not shown between Python frames. */
#define ROW_PLUMBING (1U << 11)

/* Frames of the eval loop; they are plumbing, too. */
#define ROW_EVAL_LOOP (1U << 12)

/* Without that: frames with which a greenlet's part of the C stack begins. */
#define ROW_STACK_BASE ROW_EVAL_LOOP

#define ROW_MARKS(row) ((row) & (ROW_PLUMBING | ROW_EVAL_LOOP))

#define ROW(kind, n, m)		   ((__u32)(kind) << 8 | (__u32)(n) << 13 | (__u32)(m) << 24)
#define ROW_NUMBERED(kind, number) ((__u32)(kind) << 8 | (__u32)(number) << 13)
#define ROW_LOW(row)		   ((row)&0xff)
#define ROW_KIND(row)		   ((row) >> 8 & 7)
#define ROW_N(row)		   ((row) >> 13 & (ROW_N_LIMIT - 1))
#define ROW_M(row)		   ((row) >> 24)
#define ROW_NUMBER(row)		   ((row) >> 13)

/* What does not fit into a row.  Registers have DWARF's numbers of the architecture. */
struct unwind_rule {
	__s32 offset;	 /* CFA = register BASE + OFFSET, or, RULE_DEREF, ... */
	__s32 added;	 /* ... what is there + ADDED */
	__s32 fp_offset; /* the frame pointer's place, by RULE_FP_*; without: unchanged */
	__s32 ra_offset; /* the return address is at CFA + this, unless RULE_RA_IN_REGISTER */
	__u8 base;
	__u8 ra_register;
	__u16 flags;
};

_Static_assert(sizeof(struct unwind_rule) == 20, "no padding: rules are compared as bytes");

enum {
	RULE_DEREF = 1,
	RULE_FP_AT_CFA = 2, /* at CFA + FP_OFFSET */
	RULE_FP_AT_FP = 4,  /* at its own value + FP_OFFSET */
	RULE_FP_LOST = 8,
	RULE_RA_IN_REGISTER = 16,
};

/*
 * Rows and tables of mappings lie in chunks: the values of the inner maps of `unwind_chunks`.
 * Nothing that is looked up at once crosses the end of one.
 */
#define CHUNK_SIZE	   (1 << 20)
#define CHUNK_ROWS	   (CHUNK_SIZE / 4)
#define CHUNK_MAPPINGS	   (CHUNK_SIZE / 32)
#define UNWIND_CHUNKS_MAX  1024
#define UNWIND_FILES_MAX   4096
#define UNWIND_RULES_MAX   65536
#define UNWIND_TEXT_PAGE   256
#define UNWIND_ROWS_A_PAGE UNWIND_TEXT_PAGE

/* Executable memory of a process. */
struct unwind_mapping {
	__u64 start, end; /* addresses in the process */
	__u64 bias;	  /* to be subtracted for the file's own addresses */
	__u32 file;	  /* number in `unwind_files`; UNWIND_NO_FILE, UNWIND_TRAMPOLINES */
	__u32 row;	  /* of trampolines */
};

_Static_assert(sizeof(struct unwind_mapping) == 32, "CHUNK_MAPPINGS of them fill a chunk");

/* Stands for an address without rows where it is not known yet what the process maps. */
#define UNWIND_ANY_ADDRESS 1

/* Memory that no file describes: code made at run time. */
#define UNWIND_NO_FILE (~0U)

/* The same, of CPython's -X perf: a call of the eval loop for each Python function, all alike,
 * so that one row is enough. */
#define UNWIND_TRAMPOLINES (~0U - 1)

/* The mappings of a process, in order of their addresses: the value of `unwind_tables`. */
struct unwind_table {
	__u32 first; /* counted in mappings over all chunks */
	__u32 count;
	__u32 interpreter; /* the number of that file */
	__u32 generation;  /* no other table, of any process, has the same */
	__u32 padding;
	__u32 runs_jit; /* BPF writes: the code of CPython's JIT was seen to run ... */
	__u64 anchor;	/* ... and what was learned of the process (join.bpf.h); 0: nothing */
};

/*
 * A file's rows.  For each page of UNWIND_TEXT_PAGE bytes of text, from `base` on, the directory
 * has one word: in bits 0-8 how many rows begin in the page, above the number of the first of them,
 * counted from `rows`.  The row before that one holds where the page begins.
 */
struct unwind_file {
	__u64 base;	 /* in the file's own addresses */
	__u32 pages;	 /* 0: its rows are not made yet */
	__u32 directory; /* number of its first word, over all chunks */
	__u32 rows;	 /* the same of the row before the first */
	__u32 rules;	 /* number of its first rule */
};

#define DIRECTORY_WORD(first, count) ((__u32)(first) << 9 | (__u32)(count))
#define DIRECTORY_FIRST(word)	     ((word) >> 9)
#define DIRECTORY_COUNT(word)	     ((word)&0x1ff)
#define DIRECTORY_FIRST_LIMIT	     (1 << 23)

/*
 * What became of the native part of a sample.  The first name is the ledger's, the text is for the
 * documents.
 */
#define NATIVE_OUTCOMES(X)                                                                   \
	X(WHOLE, "whole", "every frame, down to the thread's first function")                \
	X(RESUMED, "resumed",                                                                \
	  "the same, but for frames between a break and the next Python frame")              \
	X(NO_ROWS_YET, "no_rows_yet",                                                        \
	  "the rows of a file are not made yet, or it was just mapped")                      \
	X(NO_ROWS, "no_rows", "code without unwind data")                                    \
	X(UNSUPPORTED, "unsupported", "unwind data that is not supported")                   \
	X(FAULT, "fault", "the C stack could not be read, or is not sound")                  \
	X(TOO_DEEP, "too_deep", "more frames than there is room for")                        \
	X(CONVICTED, "convicted", "the frames do not match Python's, so they are not shown") \
	X(NO_REGISTERS, "no_registers", "the thread's registers are not known")

enum native_outcome {
#define X(id, name, text) NATIVE_##id,
	NATIVE_OUTCOMES(X)
#undef X
		NATIVE_OUTCOME_COUNT,
};

/* Room for them in an array whose index the verifier can follow; a power of two. */
#define NATIVE_OUTCOME_SLOTS 16

#endif
