// SPDX-License-Identifier: BSD-2-Clause
/* Recognizes the lines of mountinfo for FUSE mounts that only one user may read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/sysmacros.h>
#include <cmocka.h>

#include "reading/process.c"

static void a_mount_of_one_user_is_recognized(void **state)
{
	static const char *const lines[] = {
		"42 27 0:39 / /mnt rw,relatime - fuse.sshfs host:/x rw,user_id=1000,group_id=100",
		"42 27 0:39 / /a\\040-\\040b rw shared:7 master:1 - fuse x rw,user_id=1000",
		"42 27 0:39 / /mnt ro - fuseblk /dev/sdb1 ro,user_id=1000,blksize=4096",
	};
	dev_t device;
	uid_t owner;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_true(parse_fuse_mount(lines[i], &device, &owner));
		assert_int_equal(device, makedev(0, 39));
		assert_int_equal(owner, 1000);
	}
}

static void other_lines_are_ignored(void **state)
{
	static const char *const lines[] = {
		"",
		" - ",
		" - fuse x user_id=1",
		"42 27 0:39 / /mnt rw - fuse",
		"42 27 0:39 / /mnt rw - fuse x",
		"42 27 0:39 / /mnt rw - fuse x rw,user_id=",
		"42 27 0:39 / /user_id=1 rw - fuse user_id=1 rw",
		"42 27 0:39 / /mnt rw - fuse x rw,user_id=1000,allow_other",
		"42 27 0:39 / /mnt rw - ext4 /dev/sda1 rw,user_id=1000",
	};
	dev_t device;
	uid_t owner;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_false(parse_fuse_mount(lines[i], &device, &owner));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mount_of_one_user_is_recognized),
		cmocka_unit_test(other_lines_are_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
