// SPDX-License-Identifier: BSD-2-Clause
/* A process chooses how many mappings it has, and how long the paths of their files are. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "handings.h"
#include "python/runtime.h"
#include "reading/process.h"

#define MAPPINGS 20000

/* Such a mapping has a line of 15 KiB, as the kernel writes each character of the name as four. */
#define ODD_NAME_BYTES	  250
#define ODD_FOLDERS	  15
#define ODD_MAPPINGS	  2000
#define ODD_MAPPINGS_READ 1200

/* A line has 40 KiB. */
#define TOO_DEEP 40

/* A file in nested folders below FOLDER.  The process changes into the innermost one. */
struct deep_file {
	char folder[64];
	int folders;
	size_t page;
	uint8_t *memory;
	size_t mapped;
};

static void write_odd_name(char name[ODD_NAME_BYTES + 1])
{
	memset(name, '\n', ODD_NAME_BYTES);
	name[ODD_NAME_BYTES] = '\0';
}

/* Maps one page of a new file COUNT times. */
static struct deep_file map(int folders, size_t count)
{
	struct deep_file file = { "/tmp/test_process-XXXXXX", folders, sysconf(_SC_PAGESIZE), NULL,
				  count };
	char name[ODD_NAME_BYTES + 1];
	int fd;

	assert_non_null(mkdtemp(file.folder));
	assert_int_equal(chdir(file.folder), 0);
	write_odd_name(name);
	for (int i = 0; i < folders; i++)
		assert_int_equal(mkdir(name, 0700) || chdir(name), 0);
	fd = open("file", O_CREAT | O_RDWR, 0600);
	assert_int_equal(ftruncate(fd, file.page), 0);
	file.memory = mmap(NULL, count * file.page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(file.memory, MAP_FAILED);
	for (size_t i = 0; i < count; i++)
		assert_ptr_not_equal(mmap(file.memory + i * file.page, file.page,
					  PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0),
				     MAP_FAILED);
	close(fd);
	return file;
}

static void unmap(struct deep_file *file)
{
	char name[ODD_NAME_BYTES + 1];

	munmap(file->memory, file->mapped * file->page);
	assert_int_equal(unlink("file"), 0);
	write_odd_name(name);
	for (int i = 0; i < file->folders; i++)
		assert_int_equal(chdir("..") || rmdir(name), 0);
	assert_int_equal(chdir("/") || rmdir(file->folder), 0);
}

static ssize_t count_mappings(bool *cut)
{
	struct mapping *mappings;
	ssize_t count = process__program_mappings(getpid(), getpid(), &mappings, cut);

	free(mappings);
	return count;
}

/* On a busy machine each handover has to wait for a CPU. */
static void many_mappings_are_read_in_one_errand(void **state)
{
	struct deep_file file = map(0, MAPPINGS);
	bool cut;

	(void)state;
	count_mappings(&cut);
	handings = 0;
	assert_true(count_mappings(&cut) >= MAPPINGS);
	assert_in_range(handings, 1, HANDINGS_MAX);
	assert_false(cut);
	unmap(&file);
}

/* The mappings that were not read may be of a Python, so this is not -ENOEXEC. */
static void assert_is_cut(int folders, size_t least, size_t most)
{
	struct deep_file file = map(folders, ODD_MAPPINGS);
	struct runtime runtime;
	size_t count;
	bool cut;

	count = count_mappings(&cut);
	assert_true(cut);
	assert_in_range(count, least, most);
	assert_int_equal(runtime__find(getpid(), &runtime), -E2BIG);
	unmap(&file);
	assert_int_equal(runtime__find(getpid(), &runtime), -ENOEXEC);
}

static void a_list_of_mappings_that_is_too_long_is_cut(void **state)
{
	(void)state;
	/* Only root may open mapped files. */
	if (geteuid())
		skip();
	assert_is_cut(ODD_FOLDERS, 1000, ODD_MAPPINGS_READ);
}

static void longer_paths_leave_fewer_mappings(void **state)
{
	(void)state;
	/* Only root may open mapped files. */
	if (geteuid())
		skip();
	assert_is_cut(TOO_DEEP, 0, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_mappings_are_read_in_one_errand),
		cmocka_unit_test(a_list_of_mappings_that_is_too_long_is_cut),
		cmocka_unit_test(longer_paths_leave_fewer_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
