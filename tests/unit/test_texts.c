// SPDX-License-Identifier: BSD-2-Clause
/* Small functions that turn one text into another. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/xalloc.h"
#include "profile/plain_text.h"
#include "python/python_image.h"
#include "reading/root_folder.c"
#include "reading/target_files.h"
#include "system/cpus.h"
#include "wrap.h"

#define LEVELS_ENOUGH 32

static size_t asked;

bool __real_target_file__exists(pid_t pid, int root, const char *path);

WRAP(bool, target_file__exists, pid_t pid, int root, const char *path)
{
	asked++;
	return __real_target_file__exists(pid, root, path);
}

static void assert_text(char *got, const char *wanted)
{
	assert_string_equal(got, wanted);
	free(got);
}

static void test_plain_text(void **state)
{
	char *text, long_name[5000];

	(void)state;
	assert_text(plain_text__escape("Zählwerk 日本 🐍", SIZE_MAX), "Zählwerk 日本 🐍");
	assert_text(plain_text__escape("a\033[2Jb\n", SIZE_MAX), "a\\x1b[2Jb\\x0a");
	assert_text(plain_text__escape("\302\2332J\x7f", SIZE_MAX), "\\x9b2J\\x7f");
	assert_text(
		plain_text__escape("\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069\u061c\ufeff",
				   SIZE_MAX),
		"\\u200e\\u200f\\u2028\\u2029\\u202a\\u202e\\u2066\\u2069\\u061c\\ufeff");
	assert_text(plain_text__escape("", 0), "");
	memset(long_name, '\n', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	text = plain_text__escape(long_name, 399);
	assert_int_equal(strlen(text), 396 + 3);
	assert_string_equal(text + strlen(text) - 4, "a...");
	free(text);
}

static void test_cpu_lists(void **state)
{
	uint32_t *numbers;

	(void)state;
	assert_int_equal(cpus__parse_list("0-2,8,10-11\n", &numbers), 6);
	assert_int_equal(numbers[2], 2);
	assert_int_equal(numbers[3], 8);
	assert_int_equal(numbers[5], 11);
	free(numbers);
	assert_int_equal(cpus__parse_list("", &numbers), 0);
	free(numbers);
	assert_int_equal(cpus__parse_list("x", &numbers), 0);
	free(numbers);
	assert_true(cpus__array_size() >= 1);
}

/* A machine whose CPUs cannot be read is not taken for one with a single CPU. */
static void test_cpus_that_cannot_be_read(void **state)
{
	struct rlimit before, none;
	ssize_t count, size;
	uint32_t *numbers;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	count = cpus__online(&numbers);
	size = cpus__array_size();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(count, -EMFILE);
	assert_int_equal(size, -EMFILE);
	assert_null(numbers);
}

static void test_cpus_are_visited(void **state)
{
	cpu_set_t before, after;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_true(cpus__visit() >= (size_t)CPU_COUNT(&before));
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
}

static void test_version_texts(void **state)
{
	char text[PYTHON_VERSION_TEXT_MAX];

	(void)state;
	python_image__format_version(0x030b07f0, text);
	assert_string_equal(text, "3.11.7");
	python_image__format_version(0x030f00c2, text);
	assert_string_equal(text, "3.15.0rc2");
}

static void make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0644);

	assert_true(fd >= 0);
	close(fd);
}

/* Processes with the same root share it, and what was found below it. */
static void test_root_folders(void **state)
{
	char folder[] = "/tmp/test_texts-XXXXXX";
	struct root_folder *all = NULL, *own = root_folder__open(&all, getpid()), *parent;
	char *filename, *inner;

	(void)state;
	parent = root_folder__open(&all, getppid());
	assert_non_null(own);
	assert_ptr_equal(own, parent);
	assert_null(root_folder__open(&all, 0x7fffffff));
	assert_text(root_folder__shorten(NULL, getpid(), "/gone/x.py"), "x.py");
	assert_non_null(mkdtemp(folder));
	filename = xasprintf("%s/x.py", folder);
	inner = xasprintf("%s/__init__.py", folder);
	make_file(inner);
	assert_text(root_folder__shorten(own, getpid(), filename), filename + strlen("/tmp/"));
	unlink(inner);
	assert_text(root_folder__shorten(parent, getppid(), filename), filename + strlen("/tmp/"));
	root_folder__close(&all, root_folder__share(own));
	root_folder__close(&all, parent);
	assert_non_null(all);
	root_folder__close(&all, own);
	assert_null(all);
	rmdir(folder);
	free(inner);
	free(filename);
}

static void test_short_filenames(void **state)
{
	char folder[] = "/tmp/test_texts-XXXXXX";
	int root = root_folder__open_alone(getpid(), &(struct file_identity){ 0 });
	char *filename;

	(void)state;
	assert_true(root >= 0);
	assert_true(root_folder__open_alone(0x7fffffff, &(struct file_identity){ 0 }) < 0);
	assert_text(shorten(getpid(), root, "<string>"), "<string>");
	assert_text(shorten(getpid(), root, "relative/x.py"), "relative/x.py");
	assert_text(shorten(getpid(), root, "/no/such/folder/x.py"), "x.py");
	assert_text(shorten(getpid(), -1, "/gone/x.py"), "x.py");
	assert_text(shorten(getpid(), root, "/folder/"), "/folder/");
	assert_text(shorten(getpid(), root, "<ipython-input-12-0a1b2c>"), "In [12]");
	assert_text(shorten(getpid(), root, "<ipython-input-x>"), "<ipython-input-x>");
	assert_text(shorten(getpid(), -1, "/tmp/ipykernel_4711/31415.py"), "ipykernel/31415.py");
	assert_text(shorten(getpid(), root, "/ipykernel_4/3.py"), "ipykernel/3.py");
	assert_text(shorten(getpid(), root, "/tmp/ipykernel_4711/x.py"), "x.py");
	assert_text(shorten(getpid(), root, "/tmp/ipykernel_/3.py"), "3.py");
	assert_text(shorten(getpid(), root, "kernel_4/3.py"), "kernel_4/3.py");

	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(mkdir("package", 0755) || mkdir("package/part", 0755), 0);
	make_file("package/__init__.py");
	make_file("package/part/__init__.py");
	filename = xasprintf("%s/package/part/x.py", folder);
	assert_text(shorten(getpid(), root, filename), "package/part/x.py");
	free(filename);
	/* A pipe must not be opened. */
	unlink("package/part/__init__.py");
	assert_int_equal(mkfifo("package/part/__init__.py", 0600), 0);
	filename = xasprintf("%s/package/part/x.py", folder);
	assert_text(shorten(getpid(), root, filename), "package/part/x.py");
	free(filename);
	unlink("package/part/__init__.py");
	/* A device must not be opened, either.  This one has no driver. */
	if (geteuid() == 0) {
		assert_int_equal(
			mknod("package/part/__init__.py", S_IFCHR | 0600, makedev(4094, 0)), 0);
		filename = xasprintf("%s/package/part/x.py", folder);
		assert_text(shorten(getpid(), root, filename), "package/part/x.py");
		free(filename);
		unlink("package/part/__init__.py");
	}
	/* Code without its source. */
	make_file("package/part/__init__.pyc");
	filename = xasprintf("%s/package/part/x.py", folder);
	assert_text(shorten(getpid(), root, filename), "package/part/x.py");
	free(filename);
	unlink("package/part/__init__.pyc");
	unlink("package/__init__.py");
	rmdir("package/part");
	rmdir("package");
	assert_int_equal(rmdir(folder), 0);
	close(root);
}

/* Folders in an archive cannot be looked up.  Those that can be packages count as packages. */
static void test_archives(void **state)
{
	static const struct {
		const char *within, *short_name;
	} files[] = {
		{ "etl/daily/run.py", "etl/daily/run.py" },
		{ "__main__.py", "__main__.py" },
		{ ".deps/shop-1.0.whl/shop/views.py", "shop/views.py" },
		{ "python/lib/site-packages/./shop//views.py", "shop//views.py" },
		{ "3rd/p\303\244ckchen/x.py", "p\303\244ckchen/x.py" },
	};
	char folder[] = "/tmp/test_texts-XXXXXX";
	int root = root_folder__open_alone(getpid(), &(struct file_identity){ 0 });
	char *filename;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	make_file("archive.zip");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		filename = xasprintf("%s/archive.zip/%s", folder, files[i].within);
		assert_text(shorten(getpid(), root, filename), files[i].short_name);
		free(filename);
	}
	unlink("archive.zip");
	assert_int_equal(rmdir(folder), 0);
	close(root);
}

/* The name of a file below FOLDER and COUNT times PART. */
static char *repeat(const char *folder, const char *part, size_t count)
{
	size_t length = strlen(folder), step = strlen(part);
	char *filename = xcalloc(1, length + count * step + sizeof("/x.py"));

	memcpy(filename, folder, length);
	for (size_t i = 0; i < count; i++)
		memcpy(filename + length + i * step, part, step);
	strcpy(filename + length + count * step, "/x.py");
	return filename;
}

/* A target chooses its filenames, so only a few levels of each are looked up. */
static void test_levels_without_end(void **state)
{
	char folder[] = "/tmp/test_texts-XXXXXX";
	const char *name = folder + strlen("/tmp/");
	int root = root_folder__open_alone(getpid(), &(struct file_identity){ 0 });
	char *filename, *text;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	make_file("__init__.py");
	assert_int_equal(symlink(".", "link"), 0);
	for (size_t i = 0; i < 2; i++) {
		filename = repeat(folder, i ? "/" : "/.", 1000);
		asked = 0;
		text = shorten(getpid(), root, filename);
		assert_int_equal(strncmp(text, name, strlen(name)), 0);
		assert_int_equal(asked, 4);
		free(text);
		free(filename);
	}
	filename = repeat(folder, "/link", 38);
	asked = 0;
	text = shorten(getpid(), root, filename);
	assert_int_equal(strncmp(text, "link/link/", strlen("link/link/")), 0);
	assert_int_equal(asked, LEVELS_ENOUGH + 1);
	free(text);
	free(filename);
	filename = xasprintf("/tmp/./%s//./x.py", name);
	text = shorten(getpid(), root, filename);
	assert_string_equal(text, filename + strlen("/tmp/./"));
	free(text);
	free(filename);
	unlink("link");
	unlink("__init__.py");
	assert_int_equal(rmdir(folder), 0);
	close(root);
}

/* A target chooses its links.  None may lead out of its root. */
static void test_links_out_of_a_root(void **state)
{
	char folder[] = "/tmp/pybpfprof-test-XXXXXX";
	char *absolute;
	int root;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(mkdir("root", 0755) || mkdir("outside", 0755), 0);
	assert_int_equal(mkdir("root/inside", 0755) || mkdir("root/srv", 0755), 0);
	make_file("outside/__init__.py");
	make_file("root/inside/__init__.py");
	absolute = xasprintf("%s/outside", folder);
	assert_int_equal(symlink("../../outside", "root/srv/relative"), 0);
	assert_int_equal(symlink(absolute, "root/srv/absolute"), 0);
	assert_int_equal(symlink("/inside", "root/srv/within"), 0);
	root = open("root", O_PATH | O_DIRECTORY);
	assert_true(root >= 0);
	assert_text(shorten(getpid(), root, "/srv/relative/x.py"), "x.py");
	assert_text(shorten(getpid(), root, "/srv/absolute/x.py"), "x.py");
	/* Links within the root start from it. */
	assert_text(shorten(getpid(), root, "/srv/within/x.py"), "within/x.py");
	close(root);
	free(absolute);
	unlink("root/srv/relative");
	unlink("root/srv/absolute");
	unlink("root/srv/within");
	unlink("root/inside/__init__.py");
	unlink("outside/__init__.py");
	assert_int_equal(
		rmdir("root/inside") || rmdir("root/srv") || rmdir("root") || rmdir("outside"), 0);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_text),
		cmocka_unit_test(test_cpu_lists),
		cmocka_unit_test(test_cpus_are_visited),
		cmocka_unit_test(test_version_texts),
		cmocka_unit_test(test_short_filenames),
		cmocka_unit_test(test_archives),
		cmocka_unit_test(test_levels_without_end),
		cmocka_unit_test(test_root_folders),
		cmocka_unit_test(test_links_out_of_a_root),
		cmocka_unit_test(test_cpus_that_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
