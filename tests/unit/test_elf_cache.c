// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>
#include <fcntl.h>

#include "elf/elf_cache.h"
#include "reading/reader.h"

#define BYTES_ENOUGH (1ULL << 30)
#define FEW_BYTES    4096
#define ANSWER_MS    20000

static struct elf_budget budget;

/* The descriptor of a file whose file system does not answer; -1: all answer. */
static atomic_int silent = -1;

static void wait_for_answer(int fd)
{
	for (int i = 0; i < ANSWER_MS && fd >= 0 && silent == fd; i++)
		usleep(1000);
}

/* These replace the C library's functions.  On the silent descriptor they hang, as on a FUSE file
 * system that does not answer. */
int close(int fd)
{
	wait_for_answer(fd);
	return syscall(SYS_close, fd);
}

ssize_t pread(int fd, void *buffer, size_t length, off_t offset)
{
	wait_for_answer(fd);
	return syscall(SYS_pread64, fd, buffer, length, offset);
}

ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
	if (fd >= 0 && silent == fd)
		return -1;
	return syscall(SYS_preadv2, fd, parts, count, offset, 0, flags);
}

static int set_up(void **state)
{
	(void)state;
	budget = (struct elf_budget){ .pid = getpid(), .bytes = BYTES_ENOUGH };
	return 0;
}

static struct elf_image *open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return elf_cache__open(fd, &budget);
}

/* Copies this program to a new file.  PATH is a template for mkstemp(). */
static void copy_self(char *path)
{
	char command[128];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command), "cat /proc/%d/exe >%s", getpid(), path);
	assert_int_equal(system(command), 0);
}

static void a_useful_file_is_read_once(void **state)
{
	struct elf_image *first = open_file("/proc/self/exe"), *second;
	uint64_t address, again, before;

	(void)state;
	assert_non_null(first);
	assert_true(elf_image__symbol(first, "main", &address));
	assert_false(elf_image__symbol(first, "no_such_symbol", &again));
	before = budget.bytes;
	elf_cache__release(first, true);
	second = open_file("/proc/self/exe");
	assert_ptr_equal(second, first);
	assert_true(elf_image__symbol(second, "main", &again));
	assert_int_equal(again, address);
	assert_false(elf_image__symbol(second, "no_such_symbol", &again));
	assert_int_equal(budget.bytes, before);
	elf_cache__release(second, true);
}

static void a_known_file_is_found_without_opening_it(void **state)
{
	char path[] = "/tmp/elf-cache-XXXXXX";
	struct file_identity identity;
	struct elf_image *useful, *found = NULL;

	(void)state;
	copy_self(path);
	assert_false(target_file__identify_path(getpid(), path, &identity));
	assert_false(elf_cache__find(&identity, &budget, &found));
	useful = open_file(path);
	elf_cache__release(useful, true);
	assert_true(elf_cache__find(&identity, &budget, &found));
	assert_ptr_equal(found, useful);
	elf_cache__release(found, false);
	assert_true(elf_cache__find(&identity, &budget, &found));
	assert_null(found);
	elf_cache__release(found, false);
	unlink(path);
}

static void a_useless_file_is_not_read_again(void **state)
{
	char path[] = "/tmp/elf-cache-XXXXXX";
	struct elf_image *image;

	(void)state;
	copy_self(path);
	image = open_file(path);
	assert_non_null(image);
	elf_cache__release(image, false);
	assert_null(open_file(path));
	unlink(path);
}

/* The change may have made it useful. */
static void a_changed_file_is_read_again(void **state)
{
	char path[] = "/tmp/elf-cache-XXXXXX";
	struct elf_image *image;
	FILE *file;

	(void)state;
	copy_self(path);
	elf_cache__release(open_file(path), false);
	file = fopen(path, "a");
	fputc('\n', file);
	fclose(file);
	image = open_file(path);
	assert_non_null(image);
	elf_cache__release(image, false);
	unlink(path);
}

/* The symbol may be in the part that was not read. */
static void what_was_not_read_whole_is_not_remembered(void **state)
{
	char path[] = "/tmp/elf-cache-XXXXXX";
	struct elf_image *image;
	uint64_t address;

	(void)state;
	copy_self(path);
	/* First the budget does not suffice to open the file, then not to search all of it. */
	for (int few = 0; few < 2; few++) {
		budget.bytes = few * FEW_BYTES;
		image = open_file(path);
		if (image)
			assert_false(elf_image__symbol(
				image, "what_was_not_read_whole_is_not_remembered", &address));
		assert_true(budget.exceeded);
		elf_cache__release(image, false);
		budget.exceeded = false;
	}
	set_up(NULL);
	image = open_file(path);
	assert_non_null(image);
	assert_true(
		elf_image__symbol(image, "what_was_not_read_whole_is_not_remembered", &address));
	elf_cache__release(image, false);
	unlink(path);
}

static void kept_files_can_be_closed(void **state)
{
	char path[] = "/tmp/elf-cache-XXXXXX";
	int free_before = dup(0), free_after;

	(void)state;
	close(free_before);
	copy_self(path);
	elf_cache__release(open_file(path), true);
	assert_true(elf_cache__close_kept());
	assert_false(elf_cache__close_kept());
	free_after = dup(0);
	close(free_after);
	assert_true(free_after <= free_before);
	elf_cache__release(open_file(path), false);
	unlink(path);
}

/* A use of a known file in an errand.  If the errand is started again, it does nothing. */
struct use {
	const char *path;
	bool silent_at_end; /* false: from the beginning */
	bool begun, found;
};

static int descriptor_of(const char *path)
{
	char link[64], other[128];
	int found = -1;

	for (int fd = 0; fd < 1024 && found < 0; fd++) {
		ssize_t length;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		length = readlink(link, other, sizeof(other) - 1);
		other[length > 0 ? length : 0] = '\0';
		found = strcmp(other, path) == 0 ? fd : -1;
	}
	return found;
}

static void use_known(void *context)
{
	struct use *use = context;
	struct file_identity identity;
	struct elf_image *image;
	uint64_t address;

	if (use->begun)
		return;
	use->begun = true;
	if (target_file__identify_path(getpid(), use->path, &identity) ||
	    !elf_cache__find(&identity, &budget, &image))
		return;
	use->found = true;
	if (!use->silent_at_end)
		silent = descriptor_of(use->path);
	elf_image__section(image, ".no_such_section", &address);
	silent = descriptor_of(use->path);
	elf_cache__release(image, false);
}

/* Abandons an errand that uses PATH, at its end or before, as SILENT_AT_END says.  The errand ends
 * when the file answers again. */
static void leave_behind(const char *path, bool silent_at_end)
{
	struct use use = { .path = path, .silent_at_end = silent_at_end };

	elf_cache__release(open_file(path), true);
	reader__send(use_known, &use);
	assert_true(use.found);
	assert_false(reader__answers(getpid()));
	elf_cache__forget_used();
	silent = -1;
	reader__forget(getpid());
	/* The abandoned errand closes the file when its call returns. */
	for (int i = 0; i < ANSWER_MS && descriptor_of(path) >= 0; i++)
		usleep(1000);
	assert_int_equal(descriptor_of(path), -1);
}

/* It releases what it used.  LeakSanitizer would report a leak at the end of this program. */
static void an_abandoned_errand_leaves_nothing_in_use(void **state)
{
	char path[] = "/tmp/elf-cache-XXXXXX";
	struct elf_image *image;
	uint64_t address;

	(void)state;
	copy_self(path);
	for (int at_end = 0; at_end < 2; at_end++) {
		leave_behind(path, at_end);
		image = open_file(path);
		/* It was found to be useless before it was closed. */
		if (at_end) {
			assert_null(image);
			continue;
		}
		assert_true(elf_image__symbol(image, "main", &address));
		elf_cache__release(image, true);
	}
	unlink(path);
}

static _Atomic bool left;

static int64_t sleep_until_left(void *desk)
{
	(void)desk;
	for (int i = 0; i < ANSWER_MS && !left; i++)
		usleep(1000);
	return 0;
}

/* Even if the process answers again before the use ends. */
static void a_file_of_an_unresponsive_process_is_not_remembered(void **state)
{
	char path[] = "/tmp/elf-cache-XXXXXX";
	struct file_identity identity;
	struct elf_image *image;

	(void)state;
	copy_self(path);
	image = open_file(path);
	assert_int_equal(target_file__identify_path(getpid(), path, &identity), 0);
	assert_int_equal(reader__run(getpid(), sleep_until_left), -ETIMEDOUT);
	left = true;
	reader__wait(getpid());
	assert_true(reader__answers(getpid()));
	elf_cache__release(image, true);
	assert_false(elf_cache__find(&identity, &budget, &image));
	reader__forget(getpid());
	unlink(path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
	const struct CMUnitTest tests[] = {
		TEST(a_useful_file_is_read_once),
		TEST(a_known_file_is_found_without_opening_it),
		TEST(a_useless_file_is_not_read_again),
		TEST(kept_files_can_be_closed),
		TEST(a_changed_file_is_read_again),
		TEST(what_was_not_read_whole_is_not_remembered),
		TEST(an_abandoned_errand_leaves_nothing_in_use),
		TEST(a_file_of_an_unresponsive_process_is_not_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
