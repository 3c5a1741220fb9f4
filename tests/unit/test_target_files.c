// SPDX-License-Identifier: BSD-2-Clause
/* A target chooses its files.  Files that have an effect or block when they are opened are not
 * opened. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/xalloc.h"
#include "reading/process.h"
#include "reading/target_files.h"

/* No driver has this number, so open() fails with ENXIO. */
#define NO_DRIVER makedev(4094, 0)

#define OTHER_USER 65533

/* Opens the file NAME in FOLDER below this process's root in /proc. */
static int open_below(const char *folder, const char *name)
{
	char *path = xasprintf("/proc/%d/root%s/%s", getpid(), folder, name);
	int fd = target_file__open(getpid(), path);

	free(path);
	return fd;
}

static void make_socket(void)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

static int enter_folder(void **state)
{
	char *folder = xstrdup("/tmp/test_target_files-XXXXXX");

	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	*state = folder;
	return 0;
}

static int leave_folder(void **state)
{
	static const char *const names[] = { "regular", "fifo", "socket", "device",
					     "disk",	"link", "below" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
	assert_int_equal(chdir("/") || rmdir(*state), 0);
	free(*state);
	return 0;
}

static void regular_files_are_opened(void **state)
{
	int fd = open("regular", O_CREAT | O_WRONLY, 0600);

	assert_int_equal(write(fd, "content", 7), 7);
	close(fd);
	fd = open_below(*state, "regular");
	assert_true(fd >= 0);
	assert_int_equal(target_file__size(getpid(), fd), 7);
	target_file__close(getpid(), fd);
}

/* The time of access is before the last change, so relatime would update it. */
static void reading_leaves_the_time_of_access(void **state)
{
	const struct timespec times[] = { { .tv_sec = 1000 }, { .tv_sec = 2000 } };
	int fd = open("regular", O_CREAT | O_WRONLY, 0600);
	struct stat status;
	char byte;

	assert_int_equal(write(fd, "content", 7), 7);
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
	fd = open_below(*state, "regular");
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_atim.tv_sec, 1000);
	target_file__close(getpid(), fd);
}

/* A path and a descriptor give the same identity.  Changed contents give another one. */
static void regular_files_are_identified(void **state)
{
	struct file_identity opened, named, again;
	int fd = open("regular", O_CREAT | O_WRONLY, 0600);

	(void)state;
	assert_true(target_file__identify(fd, &opened));
	assert_false(target_file__identify_path(getpid(), "regular", &named));
	assert_memory_equal(&named, &opened, sizeof(named));
	assert_int_equal(write(fd, "content", 7), 7);
	close(fd);
	assert_false(target_file__identify_path(getpid(), "regular", &again));
	assert_memory_not_equal(&again, &named, sizeof(again));
	assert_int_equal(target_file__identify_path(getpid(), "nothing", &again), -ENOENT);
	assert_int_equal(target_file__identify_path(getpid(), ".", &again), -ENOTSUP);
}

static void folders_are_opened_to_look_below(void **state)
{
	struct file_identity folder, same;
	int fd = target_file__open_directory(getpid(), ".", &folder);

	(void)state;
	close(open("below", O_CREAT | O_WRONLY, 0600));
	assert_true(fd >= 0);
	assert_true(target_file__exists(getpid(), fd, "below"));
	assert_true(target_file__identify(fd, &same));
	assert_int_equal(folder.inode, same.inode);
	assert_int_equal(folder.device, same.device);
	close(fd);
	assert_int_equal(target_file__open_directory(getpid(), "below", &same), -ENOTDIR);
	assert_int_equal(target_file__open_directory(getpid(), "nothing", &same), -ENOENT);
}

/* Only files of the given owner or of root, and not through links. */
static void files_below_a_folder_are_opened(void **state)
{
	struct file_identity folder;
	int root = target_file__open_directory(getpid(), ".", &folder), fd;

	close(open("regular", O_CREAT | O_WRONLY, 0600));
	fd = target_file__open_below(getpid(), root, "regular", geteuid());
	assert_true(fd >= 0);
	target_file__close(getpid(), fd);
	assert_int_equal(symlink("regular", "link"), 0);
	assert_int_equal(target_file__open_below(getpid(), root, "link", geteuid()), -ELOOP);
	assert_int_equal(target_file__open_below(getpid(), root, "./..", geteuid()), -EXDEV);
	assert_int_equal(target_file__open_below(getpid(), root, *state, geteuid()), -EXDEV);
	assert_int_equal(target_file__open_below(getpid(), root, ".", geteuid()), -EINVAL);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(target_file__open_below(getpid(), root, "fifo", geteuid()), -EINVAL);
	fd = target_file__open_below(getpid(), root, "regular", geteuid() + 1);
	assert_int_equal(fd, -EPERM);
	if (!geteuid()) {
		/* A file of root's is accepted if others can read it. */
		assert_int_equal(chmod("regular", 0604), 0);
		fd = target_file__open_below(getpid(), root, "regular", OTHER_USER);
		assert_true(fd >= 0);
		target_file__close(getpid(), fd);
		assert_int_equal(chown("regular", OTHER_USER, 0), 0);
		fd = target_file__open_below(getpid(), root, "regular", OTHER_USER + 1);
		assert_int_equal(fd, -EPERM);
		fd = target_file__open_below(getpid(), root, "regular", OTHER_USER);
		assert_true(fd >= 0);
		target_file__close(getpid(), fd);
	}
	close(root);
}

static void other_files_are_not_opened(void **state)
{
	assert_int_equal(mkfifo("fifo", 0600), 0);
	make_socket();
	assert_int_equal(symlink("fifo", "link"), 0);
	assert_int_equal(open_below(*state, "fifo"), -EINVAL);
	assert_int_equal(open_below(*state, "socket"), -EINVAL);
	assert_int_equal(open_below(*state, "link"), -EINVAL);
	assert_int_equal(open_below(*state, "."), -EINVAL);
	assert_int_equal(open_below(*state, "nothing"), -ENOENT);
}

static void devices_are_not_opened(void **state)
{
	if (mknod("device", S_IFCHR | 0600, NO_DRIVER) || mknod("disk", S_IFBLK | 0600, NO_DRIVER))
		skip();
	/* Opening it would fail with another error. */
	assert_true(open("device", O_RDONLY | O_NONBLOCK) < 0 && errno != EINVAL);
	assert_int_equal(open_below(*state, "device"), -EINVAL);
	assert_int_equal(open_below(*state, "disk"), -EINVAL);
	assert_int_equal(symlink("device", "link"), 0);
	assert_int_equal(open_below(*state, "link"), -EINVAL);
}

/* This process's mapping that begins at START. */
static struct mapping find_mapping(const void *start)
{
	struct mapping *mappings, found = { 0 };
	bool cut;
	ssize_t count = process__program_mappings(getpid(), getpid(), &mappings, &cut);

	for (ssize_t i = 0; i < count; i++)
		if (mappings[i].start == (uintptr_t)start)
			found = mappings[i];
	free(mappings);
	assert_true(found.inode);
	return found;
}

/* A program may map a device as code. */
static void mapped_devices_are_not_opened(void **state)
{
	size_t size = sysconf(_SC_PAGESIZE);
	int fd = open("/dev/zero", O_RDONLY);
	void *memory = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	struct file_identity identity;
	struct mapping mapping;

	(void)state;
	close(fd);
	if (memory == MAP_FAILED || geteuid())
		skip();
	mapping = find_mapping(memory);
	assert_true(mapping.executable);
	assert_true(process__identify_mapping(getpid(), getpid(), &mapping, &identity));
	assert_int_equal(process__open_mapping(getpid(), getpid(), &mapping), -EINVAL);
	munmap(memory, size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(regular_files_are_opened, enter_folder,
						leave_folder),
		cmocka_unit_test_setup_teardown(reading_leaves_the_time_of_access, enter_folder,
						leave_folder),
		cmocka_unit_test_setup_teardown(regular_files_are_identified, enter_folder,
						leave_folder),
		cmocka_unit_test_setup_teardown(folders_are_opened_to_look_below, enter_folder,
						leave_folder),
		cmocka_unit_test_setup_teardown(files_below_a_folder_are_opened, enter_folder,
						leave_folder),
		cmocka_unit_test_setup_teardown(other_files_are_not_opened, enter_folder,
						leave_folder),
		cmocka_unit_test_setup_teardown(devices_are_not_opened, enter_folder, leave_folder),
		cmocka_unit_test(mapped_devices_are_not_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
