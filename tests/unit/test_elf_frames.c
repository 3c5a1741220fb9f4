// SPDX-License-Identifier: BSD-2-Clause
/* The call frame information of a real file, and of damaged ones. */
#include <elf.h>
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

#include "unwind/cfi.h"

static char *own_bytes(size_t *size)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat status;
	char *bytes;

	assert_int_equal(fstat(fd, &status), 0);
	*size = status.st_size;
	bytes = malloc(*size);
	assert_int_equal(read(fd, bytes, *size), *size);
	close(fd);
	return bytes;
}

/* The rows of a file with these contents; none if it has no call frame information. */
static struct cfi_rows rows_of(const char *bytes, size_t size, uint64_t budget_bytes)
{
	struct elf_budget budget = { .bytes = budget_bytes };
	int fd = memfd_create("frames", MFD_CLOEXEC);
	struct cfi_section frames;
	struct cfi_rows all = { 0 };
	struct elf_image *image;
	void *loaded;

	assert_int_equal(write(fd, bytes, size), size);
	image = elf_image__open(fd, &budget);
	assert_non_null(image);
	loaded = cfi__load(image, &frames);
	if (loaded)
		assert_int_equal(cfi__read(&frames, &all), 0);
	free(loaded);
	elf_image__close(image);
	return all;
}

static void drop_section_headers(char *bytes)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)bytes;

	header->e_shoff = 0;
	header->e_shnum = header->e_shstrndx = 0;
}

static void test_file(void **state)
{
	struct cfi_rows whole, stripped;
	size_t size, i = 0;
	char *bytes = own_bytes(&size);

	(void)state;
	whole = rows_of(bytes, size, UINT64_MAX);
	drop_section_headers(bytes);
	stripped = rows_of(bytes, size, UINT64_MAX);
	assert_true(whole.count > 1000 && whole.start_count > 100);
	assert_int_equal(whole.broken, 0);
	assert_int_equal(whole.count, stripped.count);
	assert_memory_equal(whole.starts, stripped.starts, whole.start_count * sizeof(uint64_t));
	while (i < whole.count && whole.all[i].address == stripped.all[i].address &&
	       whole.all[i].word == stripped.all[i].word)
		i++;
	assert_int_equal(i, whole.count);
	cfi_rows__free(&whole);
	cfi_rows__free(&stripped);
	free(bytes);
}

static void test_file_without_frames(void **state)
{
	Elf64_Ehdr *header;
	Elf64_Phdr *segments;
	size_t size;
	char *bytes = own_bytes(&size);

	(void)state;
	header = (Elf64_Ehdr *)bytes;
	segments = (Elf64_Phdr *)(bytes + header->e_phoff);
	assert_null(rows_of(bytes, size, 16 * 1024).all);
	drop_section_headers(bytes);
	assert_null(rows_of(bytes, size / 4, UINT64_MAX).all);
	header->e_machine = EM_RISCV;
	assert_null(rows_of(bytes, size, UINT64_MAX).all);
	header->e_machine = EM_X86_64;
	for (int i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_GNU_EH_FRAME)
			segments[i].p_vaddr = UINT64_MAX - 4;
	assert_null(rows_of(bytes, size, UINT64_MAX).all);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_file_without_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
