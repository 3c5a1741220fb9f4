// SPDX-License-Identifier: BSD-2-Clause
/*
 * Short-lived code and threads.  Each of these runs forever.
 *
 * pass: one thread runs one code object after another, each for a moment.  Each is at the end of
 * mapped memory, and is unmapped afterwards. churn: all threads run a code object in turn.  Then it
 * is freed, and another one with all its parts is made at the same address.  The caller's line
 * tells which one runs. storm: threads start and end all the time, several at once, and call all
 * functions.
 */
#include "interpreter.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES     4096
#define PASSING_SPINS  (20 * SPINS)
#define PASSING_PIECES 16 /* at most, of one code object */

#define CHURNED	    8
#define CHURN_TURNS 8
#define PIECE_BYTES 512 /* the largest piece */
#define PIECES	    16

#define STORM_CALLS 100
#define STORM_SPINS (SPINS / 20)

/* Pairs of pages: the first is mapped, the second is not. */
static struct {
	char *pages[PASSING_PIECES];
	int count;
} passing;

static void spin(int spins)
{
	for (volatile int i = 0; i < spins; i++)
		;
}

static void set_position(_PyInterpreterFrame *frame, _Py_CODEUNIT *where)
{
	*(_Py_CODEUNIT *volatile *)&frame->instr_ptr = where;
}

/* Makes a thread call the first COUNT functions. */
static void call_first(struct thread *thread, int count)
{
	for (int i = 0; i < count; i++)
		thread->frames[i] = call(thread, i, position_of(thread->number, i));
}

static void begin_thread(struct thread *thread, void *(*job)(void *))
{
	if (pthread_create(&thread->handle, NULL, job, thread))
		abort();
}

/* Allocates at the end of a page; the next page is not mapped. */
static void *allocate_passing(size_t bytes)
{
	size_t size = (bytes + 7) & ~(size_t)7;
	char *pages = mmap(NULL, 2 * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || size > PAGE_BYTES || passing.count == PASSING_PIECES ||
	    mprotect(pages, PAGE_BYTES, PROT_READ | PROT_WRITE))
		abort();
	passing.pages[passing.count++] = pages;
	return pages + PAGE_BYTES - size;
}

/* Unmaps the first COUNT pieces. */
static void let_pass(int count)
{
	for (int i = 0; i < count; i++)
		if (mprotect(passing.pages[i], PAGE_BYTES, PROT_NONE))
			abort();
	passing.count -= count;
	memmove(passing.pages, passing.pages + count, passing.count * sizeof(*passing.pages));
}

/* Addresses are never reused. */
static void pass(void)
{
	struct thread *thread = &threads[0];
	_PyInterpreterFrame *leaf;

	make_state(thread);
	take_state(thread);
	call_first(thread, FUNCTIONS);
	leaf = thread->frames[CALLERS];
	printf("ready [[[");
	say_frames(0, FUNCTIONS, 0);
	printf("]]]\n");
	fflush(stdout);
	allocate = allocate_passing;
	for (;;) {
		int before = passing.count;

		make_code(CALLERS);
		set_executable(leaf, codes[CALLERS]);
		leaf->instr_ptr = instruction(thread, CALLERS, position_of(0, CALLERS));
		let_pass(before);
		spin(PASSING_SPINS);
	}
}

static struct {
	_Alignas(16) char pieces[PIECES][PIECE_BYTES];
	int count;
	char names[CHURNED][16];
	struct description as[CHURNED];
	sem_t turns[THREADS];
} churned;

/* Allocates at the address of the previous code object's corresponding piece. */
static void *allocate_again(size_t bytes)
{
	if (bytes > PIECE_BYTES || churned.count == PIECES)
		abort();
	return memset(churned.pieces[churned.count++], 0, PIECE_BYTES);
}

static void describe_churned(void)
{
	static const char *const kinds[] = { "", "\u00e9", "\u0444", "\U0001d4bb" };

	for (int i = 0; i < CHURNED; i++) {
		snprintf(churned.names[i], sizeof(churned.names[i]), "dropped %d%s", i,
			 kinds[i % (sizeof(kinds) / sizeof(kinds[0]))]);
		churned.as[i] = (struct description){ churned.names[i], 1000 * (i + 1),
						      COPY_MOVED * (1 + i) };
	}
}

/* Frees the previous code object as the interpreter does, and makes another one in its place. */
static void replace_churned(int which)
{
	drop_code(CALLERS);
	churned.count = 0;
	make_code_as(CALLERS, &churned.as[which]);
}

/* Calls the code object from line WHICH of its caller. */
static void call_churned(struct thread *thread, int which)
{
	int first = position_of(thread->number, CALLERS);
	_PyInterpreterFrame *leaf;

	set_position(thread->frames[CALLERS - 1], instruction(thread, CALLERS - 1, which));
	leaf = call(thread, CALLERS, first);
	for (int turn = 0; turn < CHURN_TURNS; turn++) {
		set_position(leaf, instruction(thread, CALLERS, first + turn % LEAF_LINES));
		spin(SPINS);
	}
	return_from(thread);
}

static void *take_turns(void *argument)
{
	struct thread *thread = argument;

	take_state(thread);
	for (int which = 0;; which = (which + 1) % CHURNED) {
		while (sem_wait(&churned.turns[thread->number]))
			;
		if (thread->number == 0)
			replace_churned(which);
		call_churned(thread, which);
		sem_post(&churned.turns[(thread->number + 1) % THREADS]);
	}
	return NULL;
}

/* Prints the caller's stack.  Unless LINE is negative, adds the frame of the callee. */
static void say_churned(int number, int which, int line)
{
	printf("[");
	say_frames(number, CALLERS - 1, 0);
	printf(", ");
	say_frame(names[CALLERS - 1], FIRST_LINE(CALLERS - 1) + which);
	if (line >= 0) {
		printf(", ");
		say_frame(churned.names[which],
			  churned.as[which].first_line + position_of(number, CALLERS) + line);
	}
	printf("]");
}

static void say_all_churned(void)
{
	printf("ready [");
	for (int number = 0; number < THREADS; number++) {
		printf(number ? ", [" : "[");
		for (int which = 0; which < CHURNED; which++)
			for (int line = -1; line < LEAF_LINES; line++) {
				printf(which || line >= 0 ? ", " : "");
				say_churned(number, which, line);
			}
		printf("]");
	}
	printf("]\n");
	fflush(stdout);
}

static void churn(void)
{
	describe_churned();
	for (int i = 0; i < THREADS; i++) {
		threads[i].number = threads[i].index = i;
		make_state(&threads[i]);
		call_first(&threads[i], CALLERS);
		set_position(threads[i].frames[CALLERS - 1],
			     instruction(&threads[i], CALLERS - 1, 0));
		if (sem_init(&churned.turns[i], 0, i == 0))
			abort();
	}
	allocate = allocate_again;
	for (int i = 1; i < THREADS; i++)
		begin_thread(&threads[i], take_turns);
	say_all_churned();
	take_turns(&threads[0]);
}

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

/* The thread's memory is soon reused by the next one. */
static void end_state(struct thread *thread)
{
	PyThreadState *state = &thread->state->base;

	state->_status.active = 0;
	state->_status.bound_gilstate = 0;
	pthread_mutex_lock(&list_lock);
	if (state->prev)
		state->prev->next = state->next;
	else
		_PyRuntime._main_interpreter.threads.head = state->next;
	if (state->next)
		state->next->prev = state->prev;
	count_copies_change();
	pthread_mutex_unlock(&list_lock);
	free(state->datastack_chunk);
	free(state);
}

/* Calls all functions, each from the previous one, and returns from all. */
static void call_all(struct thread *thread)
{
	for (int i = 0; i < FUNCTIONS; i++) {
		thread->frames[i] = call(thread, i, position_of(thread->number, i));
		spin(STORM_SPINS);
	}
	for (int line = 1; line < LEAF_LINES; line++) {
		set_position(
			thread->frames[CALLERS],
			instruction(thread, CALLERS, position_of(thread->number, CALLERS) + line));
		spin(STORM_SPINS);
	}
	for (int i = 0; i < FUNCTIONS; i++) {
		return_from(thread);
		spin(STORM_SPINS);
	}
}

static void *work(void *argument)
{
	struct thread *thread = argument;

	take_state(thread);
	for (int i = 0; i < STORM_CALLS; i++)
		call_all(thread);
	end_state(thread);
	return NULL;
}

static void say_storm(void)
{
	printf("ready [");
	for (int number = 0; number < THREADS; number++) {
		printf(number ? ", [" : "[");
		for (int length = 1; length <= FUNCTIONS; length++)
			for (int line = 0; line < (length == FUNCTIONS ? LEAF_LINES : 1); line++) {
				printf(length > 1 ? ", [" : "[");
				say_frames(number, length, line);
				printf("]");
			}
		printf("]");
	}
	printf("]\n");
	fflush(stdout);
}

static void storm(void)
{
	complete_copies();
	make_state(&threads[0]);
	take_state(&threads[0]);
	call_first(&threads[0], FUNCTIONS);
	say_storm();
	for (unsigned int i = 0;; i++) {
		struct thread *thread = &threads[1 + i % (THREADS - 1)];

		if (thread->handle)
			pthread_join(thread->handle, NULL);
		thread->number = i % THREADS;
		thread->index = thread - threads;
		pthread_mutex_lock(&list_lock);
		make_state(thread);
		count_copies_change();
		pthread_mutex_unlock(&list_lock);
		begin_thread(thread, work);
	}
}

static const struct {
	const char *name;
	void (*go_on)(void);
} changes[] = { { "pass", pass }, { "churn", churn }, { "storm", storm } };

void change(const char *how)
{
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (strcmp(changes[i].name, how) == 0)
			changes[i].go_on();
}
