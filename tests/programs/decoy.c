// SPDX-License-Identifier: BSD-2-Clause
/*
 * A library that has CPython's symbols but is not CPython. DECOY selects their contents:
 * ZERO zeros, NOISE impossible bytes, OFFSETS an impossible table of offsets, LIVING an
 * older Python with an interpreter but no thread, OUTSIDE symbols outside all mapped
 * memory, HEAD only the symbol that marks the oldest versions.
 */
#include <stdint.h>

#define ZERO	1
#define NOISE	2
#define OFFSETS 3
#define LIVING	4
#define OUTSIDE 5
#define HEAD	6

#define RUNTIME_WORDS 256

#if DECOY == ZERO
uint64_t _PyRuntime[RUNTIME_WORDS];
#elif DECOY == NOISE
uint64_t _PyRuntime[RUNTIME_WORDS] = { [0 ... RUNTIME_WORDS - 1] = 0x123456789abcdef1 };
const unsigned long Py_Version = 0xfeedfacefeedface;
#elif DECOY == OFFSETS
uint64_t _PyRuntime[RUNTIME_WORDS] = { 0x7970677562656478, /* "xdebugpy" */
				       0x030d00f0, 0,
				       [3 ... RUNTIME_WORDS - 1] = 0xfffffffffffffff0 };
#elif DECOY == LIVING
static uint64_t nothing[RUNTIME_WORDS];
void *_PyRuntime[RUNTIME_WORDS] = { [0 ... RUNTIME_WORDS - 1] = nothing };
const unsigned long Py_Version = 0x030b07f0;
#elif DECOY == OUTSIDE
__asm__(".globl _PyRuntime, Py_Version\n"
	".set _PyRuntime, 0x7ffffffff000\n"
	".set Py_Version, 0xfffffffffffffff0\n");
#elif DECOY == HEAD
void *PyInterpreterState_Head(void);

void *PyInterpreterState_Head(void)
{
	return 0;
}
#endif
