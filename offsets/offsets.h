/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where CPython keeps what: byte offsets of struct fields, for each version.
 *
 * A field that a version does not have is OFFSET_ABSENT, which is no offset a
 * struct could have and never 0.  A version that is not in the table is
 * refused; it never gets its neighbour's.
 */
#ifndef PYBPFPROF_OFFSETS_H
#define PYBPFPROF_OFFSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pybpfprof.h"

/* Every field that is read, under the name that CPython gives it. */
#define OFFSET_FIELDS(X)                                                                           \
	X(runtime_interpreters_head) /* 3.7 and later */                                           \
	X(interp_next)                                                                             \
	X(interp_tstate_head)                                                                      \
	X(interp_modules)                                                                          \
	X(interp_code_generation) /* 3.14 and later; published, as is ... */                       \
	X(interp_tlbc_generation) /* ... 3.14t's and later */                                      \
	X(tstate_next)                                                                             \
	X(tstate_interp) /* 2.7-3.11 */                                                            \
	X(tstate_thread_id)                                                                        \
	X(tstate_gilstate_counter) /* 2.7 */                                                       \
	X(tstate_frame)		   /* 2.7-3.10 */                                                  \
	X(tstate_cframe)	   /* 3.10-3.12 */                                                 \
	X(tstate_root_cframe)	   /* 3.10-3.12 */                                                 \
	X(tstate_datastack_chunk)  /* 3.11 and later */                                            \
	X(tstate_datastack_top)	   /* 3.11, 3.12 */                                                \
	X(tstate_current_frame)	   /* 3.13 and later */                                            \
	X(tstate_base_frame)	   /* 3.15 and later */                                            \
	X(tstate_status)	   /* 3.12 and later: the bit-fields of _status */                 \
	X(tstate_whence)	   /* 3.13 and later */                                            \
	X(tstate_current_executor) /* 3.14 and later */                                            \
	X(cframe_current_frame)	   /* 3.11, 3.12 */                                                \
	X(cframe_previous)	   /* 3.10-3.12 */                                                 \
	X(frame_previous)                                                                          \
	X(frame_code)                                                                              \
	X(frame_lasti)	    /* f_lasti, prev_instr or instr_ptr */                                 \
	X(frame_owner)	    /* 3.11 and later */                                                   \
	X(frame_is_entry)   /* 3.11 */                                                             \
	X(frame_tlbc_index) /* 3.14t and later */                                                  \
	X(frame_stacktop)   /* 3.12, as the next three */                                          \
	X(frame_localsplus)                                                                        \
	X(generator_state)                                                                         \
	X(generator_frame)                                                                         \
	X(code_filename)                                                                           \
	X(code_name)                                                                               \
	X(code_qualname) /* 3.11 and later */                                                      \
	X(code_firstlineno)                                                                        \
	X(code_flags) /* 2.7-3.10 */                                                               \
	X(code_linetable)                                                                          \
	X(code_code_adaptive)  /* 3.11 and later */                                                \
	X(code_firsttraceable) /* 3.11 and later */                                                \
	X(code_version)	       /* 3.12 and later */                                                \
	X(code_tlbc)	       /* 3.14t and later, as are ... */                                   \
	X(tlbc_size)                                                                               \
	X(tlbc_entries) /* ... the array's */                                                      \
	X(object_type)                                                                             \
	X(object_dict_before)	/* 3.11 and later: bytes from there to an instance */              \
	X(object_values_before) /* 3.11, 3.12 */                                                   \
	X(type_flags)                                                                              \
	X(type_basicsize) /* 3.13 and later */                                                     \
	X(type_dictoffset)                                                                         \
	X(type_cached_keys) /* 3.11 and later */                                                   \
	X(type_dict)                                                                               \
	X(type_qualname) /* 3.6 and later: of a class that Python code made */                     \
	X(function_code)                                                                           \
	X(function_name)                                                                           \
	X(function_qualname) /* 3.6 and later */                                                   \
	X(function_dict)                                                                           \
	X(function_closure)                                                                        \
	X(function_globals)	 /* 2.7 */                                                         \
	X(class_name)		 /* 2.7 */                                                         \
	X(class_dict)		 /* 2.7 */                                                         \
	X(dict_mask)		 /* 2.7 */                                                         \
	X(dict_table)		 /* 2.7 */                                                         \
	X(dict_keys)		 /* 3.6 and later */                                               \
	X(dict_values)		 /* 3.6 and later */                                               \
	X(keys_size)		 /* 3.6-3.10 */                                                    \
	X(keys_log2_index_bytes) /* 3.11 and later */                                              \
	X(keys_kind)		 /* 3.11 and later */                                              \
	X(keys_nentries)	 /* 3.6 and later */                                               \
	X(keys_indices)		 /* 3.6 and later */                                               \
	X(values_valid)		 /* 3.13 and later */                                              \
	X(values_first)		 /* 3.11 and later */                                              \
	X(int_value)		 /* 2.7 */                                                         \
	X(long_tag)		 /* 3.12 and later */                                              \
	X(long_digits)                                                                             \
	X(varobject_size)                                                                          \
	X(tuple_items)                                                                             \
	X(bytes_data)                                                                              \
	X(unicode_length)                                                                          \
	X(unicode_state)      /* 3.3 and later, as are those behind, but for the last */           \
	X(unicode_kind_bit)   /* of the state; behind its 3 bits are those of compact and ascii */ \
	X(unicode_ascii_size) /* sizeof(PyASCIIObject): where compact ASCII data begins */         \
	X(unicode_compact_size) /* sizeof(PyCompactUnicodeObject): other compact data */           \
	X(unicode_data_any)	/* the pointer to data that is not compact */

/* What a version is built as, as far as that lays out its objects in another way. */
enum build {
	BUILD_WITH_GIL,
	BUILD_FREE_THREADED, /* 3.13 and later */
	BUILD_TRACING,	     /* with Py_TRACE_REFS: up to 3.7 every debug build */
};

struct offsets {
	uint32_t version;	/* PY_VERSION_HEX of the interpreter */
	uint32_t unicode_width; /* 2.7: bytes of a unicode object's character; 0: not known */
	uint32_t free_threaded; /* 1: the build without a GIL */
	uint32_t form;		/* the minor version whose table this is: its own, or the newest */
	uint32_t moved;		/* 1: what is published is elsewhere than in that table */
#define X(field) uint32_t field;
	OFFSET_FIELDS(X)
#undef X
};

/* Fills *OFFSETS for an interpreter of VERSION (PY_VERSION_HEX), built as BUILD.
 * 0; -ENODATA where that minor version is newer than all tables: what *OFFSETS then has is the
 * newest one's, of which nothing is true before debug_offsets__apply; -ENOTSUP where there is no
 * table. */
int offsets__lookup(uint32_t version, enum build build, struct offsets *offsets);

/* "3.8, 3.9, ...": the minor versions that have a table; "3.13t" is a free-threaded build, "3.7d" a
 * debug build. */
const char *offsets__versions(void);

/* Whether OFFSETS are of a build that no table is of: of a newer minor version, or of one that laid
 * out in another way than its table what it publishes.  What is not published has moved then, too.
 */
static inline bool offsets__is_newer(const struct offsets *offsets)
{
	return offsets->moved || (offsets->version >> 16 & 0xff) > offsets->form;
}

/* Whether the _Py_DebugOffsets in the LENGTH bytes at BYTES (3.13 and later: the beginning of
 * _PyRuntime) are a free-threaded build's.  0 or 1; -EINVAL where they are no such table. */
int debug_offsets__free_threaded(const uint8_t *bytes, size_t length);

/* Sets every field that the _Py_DebugOffsets in the LENGTH bytes at BYTES publish; the others keep
 * their values, or where offsets__is_newer() then, become what follows from others, or absent.  The
 * bytes are a target's: any are safe. 0; -EINVAL where they are no such table, another build's, or
 * one whose offsets cannot be; -ENOTSUP where its minor version's form is not known. */
int debug_offsets__apply(const uint8_t *bytes, size_t length, struct offsets *offsets);

/* How many bytes of a table with the form of OFFSETS debug_offsets__apply takes. */
size_t debug_offsets__length(const struct offsets *offsets);

/* The kernel walker's part of OFFSETS.  0, or -EINVAL where a field does not fit its bounds. */
int offsets__layout(const struct offsets *offsets, struct layout *layout);

#endif
