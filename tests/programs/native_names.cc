// SPDX-License-Identifier: BSD-2-Clause
/*
 * names_spin(), which native_names.py calls, uses the CPU in functions with names that the
 * compiler mangles: C++ names, and the cold part of a function.
 */
#define TURNS  2000000UL
#define HIDDEN __attribute__((noinline, noclone, visibility("hidden")))

static volatile unsigned long turns;

namespace names
{
namespace inner
{

HIDDEN void spin(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++)
		turns = i;
}

} // namespace inner

struct Spinner {
	template <typename Count> HIDDEN void spin_twice(Count count)
	{
		inner::spin(count);
		inner::spin(count);
		turns = count;
	}
};

} // namespace names

/* The compiler moves code that calls this into a cold part. */
__attribute__((noinline, cold)) HIDDEN void note_seldom()
{
	turns = 0;
}

HIDDEN void spin_seldom(unsigned long count)
{
	if (count) {
		note_seldom();
		for (unsigned long i = 0; i < count; i++)
			turns = i;
	}
	turns = count;
}

/* Named like a copy of a function that the compiler makes for certain calls. */
HIDDEN void spin_copied(unsigned long count) __asm__("_Z11spin_copiedm.constprop.0");

void spin_copied(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++)
		turns = i;
}

/* Two adjacent functions.  Neither has a frame, so that their unwind data are the same. */
#ifdef __x86_64__
#define COUNT_DOWN "1: dec %rdi; jnz 1b; ret;"
#else
#define COUNT_DOWN "1: subs x0, x0, #1; b.ne 1b; ret;"
#endif
#define SPINNER(name)                                                   \
	".type " name ", %function;" name ": .cfi_startproc;" COUNT_DOWN \
	".cfi_endproc; .size " name ", . - " name ";"
__asm__(".text; .balign 64;" SPINNER("spin_here") SPINNER("spin_beside"));

extern "C" void spin_here(unsigned long count) HIDDEN;
extern "C" void spin_beside(unsigned long count) HIDDEN;

extern "C" void names_spin()
{
	names::Spinner spinner;

	spinner.spin_twice(TURNS);
	spin_seldom(TURNS);
	spin_copied(TURNS);
	spin_here(TURNS);
	spin_beside(TURNS);
}
