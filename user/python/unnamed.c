// SPDX-License-Identifier: BSD-2-Clause
/*
 * If a program was linked with the static library of a Python, exports no symbols and was
 * stripped, nothing in its file leads to the interpreters.  From 3.10 on the section
 * .PyRuntime still does.  For older versions the memory of the running process is
 * searched.
 *
 * The state of an interpreter is allocated, so a pointer to it is a word in the program's
 * data that points out of the program.  There are some thousands of such words.  All are
 * followed, to what would be the first thread state of an interpreter, and from there to
 * what would be its interpreter.  A word that leads back to the same interpreter is
 * checked closely.  The interpreters must form a list that ends.  Their thread states
 * must point back to them, and one must have a pthread_self().  The modules of the main
 * interpreter must be a dict, whose type has a type that is its own type.  This also
 * distinguishes builds with different object layouts.
 *
 * Several words may pass, as a program may keep such a pointer, and CPython itself does.
 * From 3.7 on only one of them is followed, as in _PyRuntime, by the address of the main
 * interpreter, which is the last of the list, and by the number of the next interpreter.
 * Up to 3.6 there are interp_head, which points to the newest interpreter, and
 * autoInterpreterState, which points to the main one.  With two or more interpreters
 * they differ.  With one, the code must decide.  PyInterpreterState_Head returns
 * interp_head, but another function may return autoInterpreterState.  In the source,
 * the former is followed by PyInterpreterState_Next, which returns what its argument
 * points to, and the latter is not.
 *
 * All of this memory belongs to a target, so every read and every loop is bounded.  A
 * result that is not unique is refused.  A result is valid only for its own process, not
 * for others with the same file.
 */
#include <errno.h>
#include <stdlib.h>

#include "architecture/architecture.h"
#include "base/xalloc.h"
#include "python/interpreters.h"
#include "python/object.h"
#include "python/unnamed.h"
#include "reading/reader.h"
#include "reading/target_memory.h"

#define RUNTIME_SINCE 0x03070000

/* The limit for data, and for code. */
#define SEARCHED_BYTES_MAX (64 * 1024 * 1024)

/* The size of one read. */
#define PART_BYTES (64 * 1024)
#define PART_WORDS (PART_BYTES / sizeof(uint64_t))

/* The search gives up beyond these. */
#define LEADS_MAX      (1024 * 1024)
#define UNREADABLE_MAX 65536
#define PROOFS_MAX     256
#define CANDIDATES_MAX 16

/* Thread states that are checked per interpreter. */
#define THREADS_MAX 8

#define NEXT_ID_MAX (1LL << 32)

/* The range of addresses that can be mapped. */
#define ADDRESS_MIN 0x10000
#define ADDRESS_MAX (1ULL << 48)

/* The size of a short function, and the greatest distance from its beginning to the next function.
 */
#define FUNCTION_BYTES	 32
#define FUNCTION_GAP_MAX 48
#define FUNCTION_STEP	 4
#define FUNCTIONS_BYTES	 (FUNCTION_GAP_MAX + FUNCTION_BYTES)

#define OBJECTION(what) "stripped: " what ", or link it with -rdynamic"

/* A word that may point to the newest interpreter. */
struct candidate {
	uint64_t address;
	uint64_t main;	     /* the last interpreter of the list */
	size_t interpreters; /* the length of the list */
	bool returned;	     /* by a function that may be PyInterpreterState_Head */
};

struct search {
	pid_t pid;
	const struct elf_image *image;
	uint64_t bias;
	uint64_t start, end; /* of the program */
	const struct offsets *offsets;
	size_t leads, unreadable, proofs;
	size_t count;
	struct candidate candidates[CANDIDATES_MAX];
};

/* A WORD at ADDRESS that points out of the program.  Following it has led to AT, where VALUE is. */
struct lead {
	uint64_t address, word, at, value;
};

/* A part of the program, and the leads found in it. */
struct block {
	union {
		uint64_t words[PART_WORDS];
		uint8_t code[PART_BYTES];
	};
	size_t count;
	struct lead leads[PART_WORDS];
	struct memory_part parts[PART_WORDS];
};

static bool leads_out(const struct search *search, uint64_t word)
{
	return word % sizeof(word) == 0 && word >= ADDRESS_MIN && word < ADDRESS_MAX &&
	       (word < search->start || word >= search->end);
}

static bool is_exhausted(const struct search *search)
{
	return search->leads > LEADS_MAX || search->unreadable > UNREADABLE_MAX ||
	       search->proofs > PROOFS_MAX || search->count == CANDIDATES_MAX;
}

static bool read_word(const struct search *search, uint64_t address, uint64_t *word)
{
	return !target_memory__read_pointer(search->pid, address, word);
}

/* Whether the thread states of INTERPRETER point back to it.  *LIVES: one belongs to a thread. */
static bool has_own_threads(const struct search *search, uint64_t interpreter, bool *lives)
{
	const struct offsets *offsets = search->offsets;
	uint64_t seen[THREADS_MAX], state, owner, thread_id;

	if (!read_word(search, interpreter + offsets->interp_tstate_head, &state))
		return false;
	for (size_t count = 0; state && count < THREADS_MAX; count++) {
		for (size_t i = 0; i < count; i++)
			if (seen[i] == state)
				return false;
		seen[count] = state;
		if (!read_word(search, state + offsets->tstate_interp, &owner) ||
		    !read_word(search, state + offsets->tstate_thread_id, &thread_id) ||
		    owner != interpreter || !thread_id ||
		    !read_word(search, state + offsets->tstate_next, &state))
			return false;
		*lives |= interpreters__is_thread(search->pid, thread_id);
	}
	return true;
}

/* Whether INTERPRETER has its modules in a dict. */
static bool has_modules(const struct search *search, uint64_t interpreter)
{
	const struct offsets *offsets = search->offsets;
	uint64_t modules, type, flags, metatype, its_type;

	return read_word(search, interpreter + offsets->interp_modules, &modules) &&
	       read_word(search, modules + offsets->object_type, &type) &&
	       read_word(search, type + offsets->type_flags, &flags) && flags & TYPE_IS_DICT &&
	       read_word(search, type + offsets->object_type, &metatype) && metatype != type &&
	       read_word(search, metatype + offsets->object_type, &its_type) &&
	       its_type == metatype;
}

/* Whether the words behind ADDRESS are those of _PyRuntime, for a list of COUNT interpreters that
 * ends with MAIN. */
static bool is_in_runtime(const struct search *search, uint64_t address, uint64_t main,
			  size_t count)
{
	uint64_t behind[2];

	return !target_memory__read(search->pid, address + sizeof(main), behind, sizeof(behind)) &&
	       behind[0] == main && behind[1] >= count && behind[1] < NEXT_ID_MAX;
}

/* Makes the word at ADDRESS a candidate if everything that it leads to is valid. */
static void consider(struct search *search, uint64_t address)
{
	struct interpreters all;
	bool lives = false;
	uint64_t main;

	search->proofs++;
	if (interpreters__read(search->pid, search->offsets, address, &all) || !all.count ||
	    all.cut)
		return;
	for (size_t i = 0; i < all.count; i++)
		if (!has_own_threads(search, all.addresses[i], &lives))
			return;
	main = all.addresses[all.count - 1];
	if (!lives || !has_modules(search, main))
		return;
	if (search->offsets->version >= RUNTIME_SINCE &&
	    !is_in_runtime(search, address, main, all.count))
		return;
	search->candidates[search->count++] = (struct candidate){
		.address = address,
		.main = main,
		.interpreters = all.count,
	};
}

/* Moves each lead on to the word at OFFSET of where it is.  Drops leads that cannot be read. */
static void follow(struct search *search, struct block *block, uint32_t offset)
{
	size_t kept = 0;

	if (!block->count)
		return;
	for (size_t i = 0; i < block->count; i++) {
		struct lead *lead = &block->leads[i];

		block->parts[i] = (struct memory_part){ .address = lead->at + offset,
							.buffer = &lead->value,
							.size = sizeof(lead->value) };
	}
	target_memory__read_parts(search->pid, block->parts, block->count);
	for (size_t i = 0; i < block->count; i++) {
		if (block->parts[i].readable)
			block->leads[kept++] = block->leads[i];
		else
			search->unreadable++;
	}
	block->count = kept;
}

/* Searches the SIZE bytes of data in BLOCK, from ADDRESS, for candidates. */
static void search_data(struct search *search, struct block *block, uint64_t address, size_t size)
{
	size_t kept = 0;

	block->count = 0;
	for (size_t i = 0; i < size / sizeof(uint64_t); i++) {
		uint64_t word = block->words[i];

		if (leads_out(search, word))
			block->leads[block->count++] = (struct lead){
				.address = address + i * sizeof(word), .word = word, .at = word
			};
	}
	search->leads += block->count;
	follow(search, block, search->offsets->interp_tstate_head);
	for (size_t i = 0; i < block->count; i++) {
		struct lead lead = block->leads[i];

		lead.at = lead.value;
		if (leads_out(search, lead.value))
			block->leads[kept++] = lead;
	}
	block->count = kept;
	follow(search, block, search->offsets->tstate_interp);
	for (size_t i = 0; i < block->count && !is_exhausted(search); i++)
		if (block->leads[i].value == block->leads[i].word)
			consider(search, block->leads[i].address);
}

static bool is_followed_by_next(const uint8_t *code, size_t size)
{
	for (size_t at = FUNCTION_STEP; at <= FUNCTION_GAP_MAX && at < size; at += FUNCTION_STEP) {
		size_t left = size - at < FUNCTION_BYTES ? size - at : FUNCTION_BYTES;

		if (ARCHITECTURE.returns_first(code + at, left))
			return true;
	}
	return false;
}

/* Searches the SIZE bytes of code in BLOCK, from ADDRESS, for PyInterpreterState_Head. */
static void search_code(struct search *search, struct block *block, uint64_t address, size_t size)
{
	for (size_t at = 0; at < size; at += FUNCTION_STEP) {
		const uint8_t *code = block->code + at;
		size_t left = size - at < FUNCTION_BYTES ? size - at : FUNCTION_BYTES;
		uint64_t variable;

		if (!ARCHITECTURE.decode_variable(code, left, address + at, &variable))
			continue;
		for (size_t i = 0; i < search->count; i++)
			if (search->candidates[i].address == variable &&
			    is_followed_by_next(code, size - at))
				search->candidates[i].returned = true;
	}
}

/* Calls VISIT for each block of the segments with FLAG.  Blocks overlap by OVERLAP bytes.  0;
 * -E2BIG if the segments are too large; another error if they cannot be read. */
static int visit_segments(struct search *search, struct block *block, uint32_t flag, size_t overlap,
			  void (*visit)(struct search *search, struct block *block,
					uint64_t address, size_t size))
{
	const Elf64_Phdr *segments = search->image->segments;
	size_t left = SEARCHED_BYTES_MAX;

	for (size_t i = 0; i < search->image->header.e_phnum; i++) {
		uint64_t address = segments[i].p_vaddr + search->bias, size = segments[i].p_memsz;

		if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & flag))
			continue;
		if (size > left)
			return -E2BIG;
		left -= size;
		for (uint64_t at = -address % sizeof(uint64_t); at < size && !is_exhausted(search);
		     at += PART_BYTES - overlap) {
			size_t part = size - at < PART_BYTES ? size - at : PART_BYTES;
			int error =
				target_memory__read(search->pid, address + at, block->code, part);

			if (error && error != -EFAULT)
				return error;
			if (!error)
				visit(search, block, address + at, part);
		}
	}
	return 0;
}

/* Drops candidates whose list is shorter than INTERPRETERS and, if RETURNED, those that no function
 * returns. */
static void keep(struct search *search, size_t interpreters, bool returned)
{
	size_t kept = 0;

	for (size_t i = 0; i < search->count; i++)
		if (search->candidates[i].interpreters >= interpreters &&
		    search->candidates[i].returned >= returned)
			search->candidates[kept++] = search->candidates[i];
	search->count = kept;
}

static bool have_one_main(const struct search *search)
{
	for (size_t i = 1; i < search->count; i++)
		if (search->candidates[i].main != search->candidates[0].main)
			return false;
	return true;
}

/* Reduces the candidates to the head of the list. */
static int choose(struct search *search, struct block *block)
{
	size_t most = 0;
	int error = 0;

	if (is_exhausted(search) || !have_one_main(search))
		return -ENOTSUP;
	for (size_t i = 0; i < search->count; i++)
		if (search->candidates[i].interpreters > most)
			most = search->candidates[i].interpreters;
	keep(search, most, false);
	if (search->count > 1 && search->offsets->version < RUNTIME_SINCE) {
		error = visit_segments(search, block, PF_X, FUNCTIONS_BYTES, search_code);
		keep(search, most, true);
	}
	return error || search->count == 1 ? error : -ENOTSUP;
}

static void find_program(struct search *search)
{
	const Elf64_Phdr *segments = search->image->segments;

	search->start = UINT64_MAX;
	for (size_t i = 0; i < search->image->header.e_phnum; i++) {
		uint64_t start = segments[i].p_vaddr + search->bias;

		if (segments[i].p_type != PT_LOAD)
			continue;
		if (start < search->start)
			search->start = start;
		if (start + segments[i].p_memsz > search->end)
			search->end = start + segments[i].p_memsz;
	}
}

/* As unnamed__find(), for a build with OFFSETS. */
static int find_built(pid_t pid, const struct elf_image *image, uint64_t bias,
		      const struct offsets *offsets, uint64_t *interpreters)
{
	struct search search = { .pid = pid, .image = image, .bias = bias, .offsets = offsets };
	struct block *block = reader__lend(xcalloc(1, sizeof(*block)));
	int error;

	find_program(&search);
	error = visit_segments(&search, block, PF_W, 0, search_data);
	if (!error)
		error = search.count || is_exhausted(&search) ? choose(&search, block) : -EAGAIN;
	free(reader__take_back(block));
	if (!error)
		*interpreters = search.candidates[0].address;
	return error;
}

static const char *objection(int error)
{
	switch (error) {
	case -EAGAIN:
		return OBJECTION("its data leads to no running interpreter: profile it once it "
				 "runs one");
	case -E2BIG:
		return OBJECTION("its data and code are too large to search for its interpreters: "
				 "do not strip it");
	default:
		return OBJECTION("pybpfprof cannot find its interpreters in its data: do not "
				 "strip it");
	}
}

int unnamed__find(pid_t pid, struct elf_image *image, uint64_t bias, uint32_t version,
		  struct runtime *runtime)
{
	static const enum build builds[] = { BUILD_WITH_GIL, BUILD_TRACING };
	int error = -ENOTSUP;

	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		struct offsets offsets;

		if (offsets__lookup(version, builds[i], &offsets))
			continue;
		error = find_built(pid, image, bias, &offsets, &runtime->interpreters);
		runtime->offsets = offsets;
		if (error != -EAGAIN)
			break;
	}
	if (error == -EAGAIN || error == -E2BIG || (error == -ENOTSUP && runtime->offsets.version))
		runtime->objection = objection(error);
	return error == -E2BIG ? -ENOTSUP : error;
}
