// SPDX-License-Identifier: BSD-2-Clause
/* A process may map the file of a Python any number of times without loading it there. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "python/runtime.h"
#include "reading/process.h"

/* At lower addresses than this program, so that they are seen before it. */
#define COPIES	  4000
#define COPIES_AT 0x10000000UL

extern uint64_t _PyRuntime[256];
uint64_t _PyRuntime[256];

static struct mapping find_mapping(uint64_t address)
{
	struct mapping *mappings, found = { 0 };
	bool cut;
	ssize_t count = process__program_mappings(getpid(), getpid(), &mappings, &cut);

	for (ssize_t i = 0; i < count; i++)
		if (mappings[i].start <= address && address < mappings[i].end)
			found = mappings[i];
	free(mappings);
	assert_true(found.executable);
	return found;
}

static void the_search_for_a_python_is_bounded(void **state)
{
	struct mapping code = find_mapping((uintptr_t)find_mapping);
	int fd = process__open_mapping(getpid(), getpid(), &code);
	size_t page = sysconf(_SC_PAGESIZE);
	struct runtime runtime;

	(void)state;
	/* Only root may open mapped files. */
	if (geteuid())
		skip();
	assert_true(fd >= 0);
	assert_int_equal(runtime__find(getpid(), &runtime), -ENOTSUP);
	for (size_t i = 0; i < COPIES; i++)
		assert_ptr_not_equal(mmap((void *)(COPIES_AT + i * page), page,
					  PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
					  fd, code.offset),
				     MAP_FAILED);
	close(fd);
	assert_int_equal(runtime__find(getpid(), &runtime), -E2BIG);
	munmap((void *)COPIES_AT, COPIES * page);
	assert_int_equal(runtime__find(getpid(), &runtime), -ENOTSUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_search_for_a_python_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
