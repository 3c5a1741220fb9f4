/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The types that user space (user/unwind/) and BPF (native.bpf.h) share to walk native frames: a
 * part of pybpfprof.h.
 *
 * Rows are made from a file's call frame information.  They tell where the caller of an instruction
 * has its registers.  A row is one word, and applies from its address up to the next row's.  The
 * CFA (canonical frame address) is the stack pointer that the caller had before the call.
 *
 *   bits  0-7   the lowest byte of its address
 *         8-10  enum row_kind
 *         11    ROW_PLUMBING
 *         12    ROW_EVAL_LOOP
 *         13-23 N
 *         24-31 M
 *
 * What does not fit into a word is a rule, in a table of its own: bits 13-31 have its number.
 */
#ifndef UNWIND_H
#define UNWIND_H

#ifndef __bpf__
#include <linux/types.h>
#endif

/* The most native frames that are recorded; and that are walked, most of them the interpreter's
 * plumbing. */
#define NATIVE_FRAMES_MAX 1024
#define NATIVE_READS_MAX  1024 /* of the target's memory: about 100 us */
#define NATIVE_STEPS_MAX  4096

enum row_kind {
	ROW_SP, /* CFA = stack pointer + 8 * N; the caller's frame pointer is at CFA - 8 * M; M = 0:
		 * unchanged.  The return address is at CFA - 8; on aarch64 at CFA - 8 * M + 8, and
		 * with M = 0 in the link register. */
	ROW_FP, /* the same, from the frame pointer */
	ROW_RULE,   /* rule number ROW_NUMBER */
	ROW_PLT,    /* x86-64: CFA = stack pointer + 8; from byte N of 16 on, 8 more */
	ROW_NONE,   /* no row; ROW_NUMBER: enum row_absence */
	ROW_END,    /* the outermost frame: nothing called it */
	ROW_SIGNAL, /* a signal handler returns here: the registers are in the signal's frame */
	ROW_RA, /* aarch64: CFA as in ROW_SP; only the return address is saved, at CFA - 8 * M */
};

enum row_absence {
	ROW_NO_CODE,	 /* the file does not describe this address */
	ROW_UNSUPPORTED, /* the file's description cannot be expressed */
	ROW_NOT_LOADED,	 /* the rows are not made yet, or the address is not known */
};

#define ROW_N_LIMIT	 (1 << 11)
#define ROW_M_LIMIT	 (1 << 8)
#define ROW_NUMBER_LIMIT (1 << 19)

/* Frames of functions with which the interpreter calls itself; not shown between Python frames. */
#define ROW_PLUMBING (1U << 11)

/* Frames of the eval loop; they are plumbing, too. */
#define ROW_EVAL_LOOP (1U << 12)

/* Without ROW_PLUMBING: frames at the base of a greenlet's part of the C stack. */
#define ROW_STACK_BASE ROW_EVAL_LOOP

#define ROW_MARKS(row) ((row) & (ROW_PLUMBING | ROW_EVAL_LOOP))

#define ROW(kind, n, m)		   ((__u32)(kind) << 8 | (__u32)(n) << 13 | (__u32)(m) << 24)
#define ROW_NUMBERED(kind, number) ((__u32)(kind) << 8 | (__u32)(number) << 13)
#define ROW_LOW(row)		   ((row)&0xff)
#define ROW_KIND(row)		   ((row) >> 8 & 7)
#define ROW_N(row)		   ((row) >> 13 & (ROW_N_LIMIT - 1))
#define ROW_M(row)		   ((row) >> 24)
#define ROW_NUMBER(row)		   ((row) >> 13)

/* A rule for what does not fit into a row.  Registers have DWARF's numbers for the architecture. */
struct unwind_rule {
	__s32 offset;	 /* CFA = register BASE + OFFSET; with RULE_DEREF ... */
	__s32 added;	 /* ... the word at that address + ADDED */
	__s32 fp_offset; /* of the frame pointer's place, by RULE_FP_*; without: unchanged */
	__s32 ra_offset; /* of the return address, from the CFA; unless RULE_RA_IN_REGISTER */
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
 * Rows and tables of mappings are in chunks: the values of the inner maps of `unwind_chunks`.
 * Nothing that is read in one lookup crosses the end of a chunk.
 */
#define CHUNK_SIZE	   (1 << 20)
#define CHUNK_ROWS	   (CHUNK_SIZE / 4)
#define CHUNK_MAPPINGS	   (CHUNK_SIZE / 32)
#define UNWIND_CHUNKS_MAX  1024
#define UNWIND_FILES_MAX   4096
#define UNWIND_RULES_MAX   65536
#define UNWIND_TEXT_PAGE   256
#define UNWIND_ROWS_A_PAGE UNWIND_TEXT_PAGE

/* An executable mapping of a process. */
struct unwind_mapping {
	__u64 start, end; /* addresses in the process */
	__u64 bias;	  /* to be subtracted to get the file's own addresses */
	__u32 file;	  /* number in `unwind_files`; UNWIND_NO_FILE, UNWIND_TRAMPOLINES */
	__u32 row;	  /* of trampolines */
};

_Static_assert(sizeof(struct unwind_mapping) == 32, "CHUNK_MAPPINGS of them fill a chunk");

/* Stands for an address without rows while it is not known what the process maps. */
#define UNWIND_ANY_ADDRESS 1

/* Memory without a file: code made at run time. */
#define UNWIND_NO_FILE (~0U)

/* The same, made by CPython's -X perf: for each Python function a call of the eval loop.  All are
 * alike, so one row is enough. */
#define UNWIND_TRAMPOLINES (~0U - 1)

/* The mappings of a process, sorted by address: the value of `unwind_tables`. */
struct unwind_table {
	__u32 first; /* number of its first mapping, over all chunks */
	__u32 count;
	__u32 interpreter; /* the number of the interpreter's file */
	__u32 generation;  /* unique among the tables of all processes */
	__u32 padding;
	__u32 runs_jit; /* BPF writes: the JIT's code was seen to run ... */
	__u64 anchor;	/* ... and the anchor that was learned (join.bpf.h); 0: none */
};

/*
 * A file's rows.  The directory has one word for each page of UNWIND_TEXT_PAGE bytes of text, from
 * `base` on.  Bits 0-8 are the number of rows that begin in the page; above them is the number of
 * the first of these, counted from `rows`.  At the beginning of the page the row before that one
 * applies.
 */
struct unwind_file {
	__u64 base;	 /* in the file's own addresses */
	__u32 pages;	 /* 0: its rows are not made yet */
	__u32 directory; /* number of its first word, over all chunks */
	__u32 rows;	 /* the same, of the row before the first */
	__u32 rules;	 /* number of its first rule */
};

#define DIRECTORY_WORD(first, count) ((__u32)(first) << 9 | (__u32)(count))
#define DIRECTORY_FIRST(word)	     ((word) >> 9)
#define DIRECTORY_COUNT(word)	     ((word)&0x1ff)
#define DIRECTORY_FIRST_LIMIT	     (1 << 23)

/*
 * What happened to the native part of a sample.  The name is used in the ledger, the text in the
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

/* Room for all native outcomes in an array whose index the verifier can follow; a power of two. */
#define NATIVE_OUTCOME_SLOTS 16

#endif
