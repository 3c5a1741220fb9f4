// SPDX-License-Identifier: BSD-2-Clause
/* A library with functions and a USDT probe, whose note is written as <sys/sdt.h> writes it. */
#include <stdint.h>

/* How many listen to the probe. */
__attribute__((section(".probes"))) volatile uint16_t listeners;

__attribute__((noinline)) int twice(int number)
{
	return 2 * number;
}

/* Saves a register for the call: first of all it pushes it. */
__attribute__((noinline)) int probed(int number)
{
	return twice(number) + number;
}

/* The note's base is its own: the library was not moved. */
__attribute__((noinline)) void fire(void)
{
	asm volatile("990: nop\n"
		     ".pushsection .note.stapsdt,\"\",\"note\"\n"
		     ".balign 4\n"
		     ".4byte 992f-991f, 994f-993f, 3\n"
		     "991: .asciz \"stapsdt\"\n"
		     "992: .balign 4\n"
		     "993: .8byte 990b, 0, listeners\n"
		     ".asciz \"test\", \"fired\", \"\"\n"
		     "994: .balign 4\n"
		     ".popsection\n");
}

#ifdef __x86_64__
/* The kernel emulates no instruction before it returns. */
asm(".globl stepped\n"
    ".type stepped, @function\n"
    "stepped: lea 1(%rdi), %eax\n"
    "ret\n"
    ".size stepped, . - stepped\n");
#endif
