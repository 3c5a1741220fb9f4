// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/xalloc.h"
#include "output/output_file.h"
#include "wrap.h"

/* As on a file system without owners and modes, or for root without CAP_CHOWN. */
static bool handing_over_is_refused;

int __real_fchown(int fd, uid_t user, gid_t group);
int __real_fchmod(int fd, mode_t mode);

WRAP(int, fchown, int fd, uid_t user, gid_t group)
{
	errno = EPERM;
	return handing_over_is_refused ? -1 : __real_fchown(fd, user, group);
}

WRAP(int, fchmod, int fd, mode_t mode)
{
	errno = EPERM;
	return handing_over_is_refused ? -1 : __real_fchmod(fd, mode);
}

static char folder[] = "/tmp/test_output_file-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? chdir(folder) : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return chdir("/") || rmdir(folder);
}

static int write_text(const void *what, FILE *file)
{
	return fputs(what, file) < 0 ? -errno : 0;
}

static int write_half(const void *what, FILE *file)
{
	fputs(what, file);
	return -EIO;
}

static int run_out_of_memory(const void *what, FILE *file)
{
	fputs(what, file);
	exit(1);
}

static void assert_content(const char *path, const char *wanted)
{
	char content[64] = "";
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	content[fread(content, 1, sizeof(content) - 1, file)] = '\0';
	fclose(file);
	assert_string_equal(content, wanted);
}

static void test_writes_whole_files(void **state)
{
	struct stat status;

	(void)state;
	umask(022);
	assert_int_equal(output_file__write("a", write_text, "one"), 0);
	assert_int_equal(output_file__write("a", write_text, "two"), 0);
	assert_content("a", "two");
	assert_int_equal(stat("a", &status), 0);
	assert_int_equal(status.st_mode & 0777, 0644);
	assert_int_equal(unlink("a"), 0);
}

static void test_failure_keeps_the_old_file(void **state)
{
	(void)state;
	assert_int_equal(output_file__write("a", write_text, "old"), 0);
	assert_int_equal(output_file__write("a", write_half, "new"), -EIO);
	assert_content("a", "old");
	assert_int_equal(unlink("a"), 0);
	/* remove_folder fails if any file is left. */
}

/* xalloc.h calls exit if there is no memory, perhaps in the middle of writing. */
static void test_exit_while_writing_leaves_nothing(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (!child)
		output_file__write("a", run_out_of_memory, "half");
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	/* remove_folder fails if any file is left. */
}

static void test_full_disk(void **state)
{
	(void)state;
	assert_int_equal(output_file__write("/dev/full", write_text, "x"), -ENOSPC);
}

static void test_pipe_without_a_reader(void **state)
{
	(void)state;
	assert_int_equal(mkfifo("pipe", 0600), 0);
	assert_int_equal(output_file__write("pipe", write_text, "x"), -ENXIO);
	assert_int_equal(unlink("pipe"), 0);
}

static void test_another_users_pipe_is_replaced(void **state)
{
	(void)state;
	if (getuid() != 0)
		skip();
	assert_int_equal(mkfifo("pipe", 0666), 0);
	assert_int_equal(chown("pipe", 1234, 1234), 0);
	assert_int_equal(output_file__write("pipe", write_text, "x"), 0);
	assert_content("pipe", "x");
	assert_int_equal(unlink("pipe"), 0);
}

static void assert_link(const char *path, const char *target)
{
	char found[64] = "";

	assert_true(readlink(path, found, sizeof(found) - 1) >= 0);
	assert_string_equal(found, target);
}

static void test_links_are_followed(void **state)
{
	(void)state;
	assert_int_equal(mkdir("d", 0755), 0);
	assert_int_equal(symlink("../second", "d/first"), 0);
	assert_int_equal(symlink("d/a", "second"), 0);
	assert_true(output_file__check("d/first", "-o"));
	assert_int_equal(output_file__write("d/first", write_text, "one"), 0);
	assert_int_equal(output_file__write("d/first", write_text, "two"), 0);
	assert_content("d/a", "two");
	assert_link("d/first", "../second");
	assert_link("second", "d/a");
	assert_int_equal(unlink("second"), 0);
	assert_int_equal(symlink("/dev/null", "second"), 0);
	assert_int_equal(output_file__write("d/first", write_text, "x"), 0);
	assert_link("second", "/dev/null");
	assert_int_equal(unlink("d/a") || unlink("d/first") || rmdir("d") || unlink("second"), 0);
}

static void test_links_that_lead_nowhere(void **state)
{
	(void)state;
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_false(output_file__check("loop", "-o"));
	assert_int_equal(output_file__write("loop", write_text, "x"), -ELOOP);
	assert_int_equal(unlink("loop"), 0);
	assert_int_equal(symlink("none/a", "dangling"), 0);
	assert_false(output_file__check("dangling", "-o"));
	assert_int_equal(output_file__write("dangling", write_text, "x"), -ENOENT);
	assert_int_equal(unlink("dangling"), 0);
	assert_int_equal(symlink(".", "folder"), 0);
	assert_false(output_file__check("folder", "-o"));
	assert_int_equal(unlink("folder"), 0);
}

static void test_another_users_link_is_not_followed(void **state)
{
	(void)state;
	if (getuid() != 0)
		skip();
	assert_int_equal(output_file__write("a", write_text, "old"), 0);
	assert_int_equal(symlink("a", "theirs"), 0);
	assert_int_equal(symlink("theirs", "mine"), 0);
	assert_int_equal(lchown("theirs", 1234, 1234), 0);
	assert_false(output_file__check("mine", "-o"));
	assert_int_equal(output_file__write("mine", write_text, "new"), -EPERM);
	assert_content("a", "old");
	/* The link of the user that called sudo is followed. */
	setenv("SUDO_UID", "1234", 1);
	setenv("SUDO_GID", "1234", 1);
	assert_int_equal(output_file__write("mine", write_text, "new"), 0);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	assert_content("a", "new");
	assert_int_equal(unlink("a") || unlink("theirs") || unlink("mine"), 0);
}

static void test_missing_folder(void **state)
{
	(void)state;
	assert_int_equal(output_file__write("none/a", write_text, "x"), -ENOENT);
	assert_false(output_file__check("none/a", "-o"));
	assert_false(output_file__check(".", "-o"));
	assert_true(output_file__check("a", "-o"));
	assert_true(output_file__check("-", "-o"));
}

static void test_file_belongs_to_the_sudo_user(void **state)
{
	struct stat status;

	(void)state;
	if (getuid() != 0)
		skip();
	setenv("SUDO_UID", "1234", 1);
	setenv("SUDO_GID", "2345", 1);
	assert_int_equal(output_file__write("a", write_text, "x"), 0);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	assert_int_equal(stat("a", &status), 0);
	assert_int_equal(status.st_uid, 1234);
	assert_int_equal(status.st_gid, 2345);
	assert_int_equal(unlink("a"), 0);
}

/* Redirects stderr to FILE.  Returns a descriptor of the old one. */
static int redirect_stderr(FILE *file)
{
	int before = dup(STDERR_FILENO);

	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	return before;
}

static void restore_stderr(int before)
{
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
}

static void test_file_is_kept_if_chown_fails(void **state)
{
	char said[512] = "";
	FILE *file = tmpfile();
	int before, error;

	(void)state;
	if (getuid() != 0)
		skip();
	umask(022);
	setenv("SUDO_UID", "1234", 1);
	setenv("SUDO_GID", "2345", 1);
	before = redirect_stderr(file);
	handing_over_is_refused = true;
	error = output_file__write("a", write_text, "x");
	handing_over_is_refused = false;
	restore_stderr(before);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	assert_int_equal(error, 0);
	assert_content("a", "x");
	assert_int_equal(unlink("a"), 0);
	rewind(file);
	said[fread(said, 1, sizeof(said) - 1, file)] = '\0';
	fclose(file);
	assert_non_null(strstr(said, "a belongs to root: "));
	assert_non_null(strstr(said, "user 1234: Operation not permitted; if its file "
				     "system has owners, run chown 1234:2345 a as root"));
	assert_non_null(strstr(said, " run chmod 644 a\n"));
}

static void test_expands_names(void **state)
{
	char *path;

	(void)state;
	path = output_file__expand("x-%p-%p.y", 42);
	assert_string_equal(path, "x-42-42.y");
	free(path);
	path = output_file__expand("%t", 42);
	assert_int_equal(strlen(path), strlen("20260102-030405"));
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writes_whole_files),
		cmocka_unit_test(test_failure_keeps_the_old_file),
		cmocka_unit_test(test_exit_while_writing_leaves_nothing),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_pipe_without_a_reader),
		cmocka_unit_test(test_another_users_pipe_is_replaced),
		cmocka_unit_test(test_links_are_followed),
		cmocka_unit_test(test_links_that_lead_nowhere),
		cmocka_unit_test(test_another_users_link_is_not_followed),
		cmocka_unit_test(test_missing_folder),
		cmocka_unit_test(test_file_belongs_to_the_sudo_user),
		cmocka_unit_test(test_file_is_kept_if_chown_fails),
		cmocka_unit_test(test_expands_names),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
