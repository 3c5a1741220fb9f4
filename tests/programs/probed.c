// SPDX-License-Identifier: BSD-2-Clause
/* A library with functions and a USDT probe, whose note is like those of <sys/sdt.h>. */
#include <stdint.h>

/* The probe's semaphore: the number of its listeners. */
__attribute__((section(".probes"))) volatile uint16_t listeners;

__attribute__((noinline)) int twice(int number)
{
	return 2 * number;
}

/* Saves a register across the call: its first instruction pushes it. */
__attribute__((noinline)) int probed(int number)
{
	return twice(number) + number;
}

/* There is no .stapsdt.base section, so that the note's addresses are not adjusted. */
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
/* The kernel can emulate none of its instructions before the return. */
asm(".globl stepped\n"
    ".type stepped, @function\n"
    "stepped: lea 1(%rdi), %eax\n"
    "ret\n"
    ".size stepped, . - stepped\n");
#endif
