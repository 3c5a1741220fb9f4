// SPDX-License-Identifier: BSD-2-Clause
/*
 * The library of native_chain.py: functions that use CPU time, and functions that call Python
 * through the part of its API that all versions share.  Each goes on after its call, so that no
 * call becomes a tail call.
 */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#define TURNS	 2000000UL
#define FUNCTION __attribute__((noinline, noclone, visibility("default")))

/* The oldest symbol version, so that the Python of an older Debian can load this library. */
#ifdef __x86_64__
asm(".symver pthread_create, pthread_create@GLIBC_2.2.5");
#else
asm(".symver pthread_create, pthread_create@GLIBC_2.17");
#endif

struct object;

struct object *PyObject_CallObject(struct object *callable, struct object *arguments);
void Py_DecRef(struct object *object);

/* Uses a little CPU time, far less than a test profiles. */
FUNCTION void chain_spin(void);

/* Uses CPU time in the kernel, by reading FILE. */
FUNCTION void chain_read(int file);

/* Both call FUNCTION. */
FUNCTION void chain_enter(struct object *function);
FUNCTION void chain_pass(struct object *function);

/* Calls FUNCTION as plain C, and needs no GIL. */
FUNCTION void chain_call_back(void (*function)(void));

/* Calls FUNCTION below LEVELS recursive calls. */
FUNCTION void chain_deep(unsigned int levels, struct object *function);

/* Calls FUNCTION in a signal handler. */
FUNCTION void chain_signal(struct object *function);

/* The same in a handler on an alternate stack. */
FUNCTION void chain_signal_elsewhere(struct object *function);

/* Raises a signal that Python handles. */
FUNCTION void send_signal(void);

/* Uses CPU time with TEXT in place of its return address and its saved frame pointer. */
FUNCTION void chain_scribble(unsigned long text);

/* Uses CPU time with the stack pointer STACK_POINTER. */
FUNCTION void chain_stray(unsigned long stack_pointer);

/* Starts a thread that uses CPU time and runs no Python. */
FUNCTION int chain_start_thread(void);

static volatile unsigned long turns;
static struct object *of_handler;

void chain_spin(void)
{
	for (unsigned long i = 0; i < TURNS; i++)
		turns = i;
}

void chain_read(int file)
{
	char bytes[65536];

	for (int i = 0; i < 100; i++)
		turns += pread(file, bytes, sizeof(bytes), 0);
}

static inline void call(struct object *function)
{
	struct object *result = PyObject_CallObject(function, NULL);

	if (result)
		Py_DecRef(result);
	turns++;
}

void chain_enter(struct object *function)
{
	call(function);
}

void chain_pass(struct object *function)
{
	call(function);
}

void chain_call_back(void (*function)(void))
{
	function();
	turns++;
}

void chain_deep(unsigned int levels, struct object *function)
{
	if (levels > 1)
		chain_deep(levels - 1, function);
	else
		call(function);
	turns++;
}

FUNCTION void chain_handle(int number)
{
	(void)number;
	call(of_handler);
}

void chain_signal(struct object *function)
{
	of_handler = function;
	signal(SIGUSR1, chain_handle);
	raise(SIGUSR1);
	turns++;
}

void chain_signal_elsewhere(struct object *function)
{
	static char stack[1 << 20];
	const stack_t own = { .ss_sp = stack, .ss_size = sizeof(stack) };
	const struct sigaction action = { .sa_handler = chain_handle, .sa_flags = SA_ONSTACK };
	stack_t before;

	of_handler = function;
	sigaltstack(&own, &before);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	sigaltstack(&before, NULL);
	turns++;
}

void send_signal(void)
{
	raise(SIGUSR2);
	turns++;
}

/* A frame pointer is required: it points to the saved one and the return address. */
__attribute__((optimize("no-omit-frame-pointer"))) void chain_scribble(unsigned long text)
{
	volatile unsigned long *saved = __builtin_frame_address(0);
	unsigned long frame_pointer = saved[0], return_address = saved[1];

	saved[0] = saved[1] = text;
	chain_spin();
	saved[0] = frame_pointer;
	saved[1] = return_address;
}

void chain_stray(unsigned long stack_pointer)
{
#ifdef __x86_64__
	unsigned long count = TURNS, own;

	__asm__ volatile("mov %%rsp, %0\n\t"
			 "mov %2, %%rsp\n"
			 "1:\tdec %1\n\t"
			 "jnz 1b\n\t"
			 "mov %0, %%rsp"
			 : "=&r"(own), "+r"(count)
			 : "r"(stack_pointer)
			 : "cc");
#else
	turns += stack_pointer;
	chain_spin();
#endif
}

FUNCTION void chain_forever(void)
{
	for (;;) {
		chain_spin();
		turns++;
	}
}

static void *chain_run(void *unused)
{
	chain_forever();
	return unused;
}

int chain_start_thread(void)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, chain_run, NULL);
}
