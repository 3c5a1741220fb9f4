// SPDX-License-Identifier: BSD-2-Clause
/* The version of Python, from a program's constants alone. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "architecture/architecture.h"
#include "python/python_image.h"

#define CONSTANTS_AT 4096

/* A program with nothing but CONSTANTS, which are its only segment. */
static struct elf_image *image_of(const void *constants, size_t size, struct elf_budget *budget)
{
	uint8_t *bytes = calloc(1, CONSTANTS_AT + size);
	Elf64_Ehdr *header = (Elf64_Ehdr *)bytes;
	Elf64_Phdr *segment = (Elf64_Phdr *)(header + 1);
	int fd = memfd_create("image", MFD_CLOEXEC);

	memcpy(header->e_ident, ELFMAG, SELFMAG);
	header->e_ident[EI_CLASS] = ELFCLASS64;
	header->e_ident[EI_DATA] = ELFDATA2LSB;
	header->e_type = ET_EXEC;
	header->e_machine = ARCHITECTURE.machine;
	header->e_phoff = sizeof(*header);
	header->e_phentsize = sizeof(*segment);
	header->e_phnum = 1;
	*segment = (Elf64_Phdr){ .p_type = PT_LOAD, .p_offset = CONSTANTS_AT, .p_filesz = size };
	memcpy(bytes + CONSTANTS_AT, constants, size);
	assert_int_equal(write(fd, bytes, CONSTANTS_AT + size), CONSTANTS_AT + size);
	free(bytes);
	return elf_image__open(fd, budget);
}

#define VERSION_OF(constants) version_of(constants, sizeof(constants) - 1)

static uint32_t version_of(const void *constants, size_t size)
{
	struct elf_budget budget = { .bytes = 1 << 30 };
	struct elf_image *image = image_of(constants, size, &budget);
	uint32_t version;

	assert_non_null(image);
	version = python_image__version(getpid(), image, 0);
	elf_image__close(image);
	return version;
}

static void the_version_is_a_constant(void **state)
{
	(void)state;
	assert_int_equal(VERSION_OF("cpython-38\0\0003.8.18\0"), 0x030812f0);
	assert_int_equal(VERSION_OF("cpython-38\0\0003.8.18+\0"), 0x030812f0);
	assert_int_equal(VERSION_OF("\0002.7.18\0"), 0x020712f0);
}

/* No byte before it can be read. */
static void the_version_may_be_the_first_constant(void **state)
{
	(void)state;
	assert_int_equal(VERSION_OF("3.8.18\0cpython-38\0"), 0x030812f0);
	assert_int_equal(VERSION_OF("2.7.18\0"), 0x020712f0);
}

/* A number that does not end with a NUL is not the version, either. */
static void a_part_of_another_number_is_no_version(void **state)
{
	(void)state;
	assert_int_equal(VERSION_OF("cpython-38\0\00013.8.18\0"), 0x030800f0);
	assert_int_equal(VERSION_OF("cpython-38\0\0001.3.8.18\0"), 0x030800f0);
	assert_int_equal(VERSION_OF("cpython-38\0\0003.8.18"), 0x030800f0);
	assert_int_equal(VERSION_OF("cpython-38\0\0003.8.18.1\0"), 0x030800f0);
	assert_int_equal(VERSION_OF("12.7.18\0"), 0);
	assert_int_equal(VERSION_OF("2.7."), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_version_is_a_constant),
		cmocka_unit_test(the_version_may_be_the_first_constant),
		cmocka_unit_test(a_part_of_another_number_is_no_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
