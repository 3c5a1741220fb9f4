// SPDX-License-Identifier: BSD-2-Clause
/* 32-bit files are read like 64-bit ones.  A Python in one is named, but not supported. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "elf/elf_image.h"
#include "narrow_file.h"
#include "python/runtime.h"

#define BUDGET_BYTES  (1ULL << 30)
#define DAMAGE_ROUNDS 3000

static struct elf_budget budget;

static int open_bytes(const void *bytes, size_t size)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	return fd;
}

static struct elf_image *open_file(const struct narrow_file *file)
{
	budget = (struct elf_budget){ .bytes = BUDGET_BYTES };
	return elf_image__open(open_bytes(file, sizeof(*file)), &budget);
}

static bool find_constant(const uint8_t *bytes, size_t length, uint64_t at, void *context)
{
	(void)at;
	(void)context;
	return memmem(bytes, length, NARROW_CONSTANT, sizeof(NARROW_CONSTANT));
}

static bool find_bias(const struct elf_image *image, uint64_t start, uint64_t file_offset,
		      bool executable, uint64_t *bias)
{
	return elf_segments__bias(image->segments, image->header.e_phnum, start, file_offset,
				  executable, bias);
}

static void a_32_bit_file_is_read_like_a_64_bit_one(void **state)
{
	struct narrow_file file;
	struct elf_image *image;
	uint64_t address, bias;

	(void)state;
	narrow_file__make(&file, "exported");
	image = open_file(&file);
	assert_non_null(image);
	assert_true(image->narrow);
	assert_true(elf_image__is_program(image));
	assert_true(elf_image__exported_symbol(image, "exported", &address));
	assert_int_equal(address, NARROW_ADDRESS(constants));
	assert_false(elf_image__exported_symbol(image, NARROW_INNER, &address));
	assert_true(elf_image__symbol(image, NARROW_INNER, &address));
	assert_int_equal(address, NARROW_ADDRESS(names));
	assert_false(elf_image__symbol(image, "other", &address));
	assert_true(elf_image__section(image, NARROW_SECTION, &address));
	assert_int_equal(address, NARROW_ADDRESS(constants));
	assert_true(find_bias(image, NARROW_BASE + 0x1000, 0, true, &bias));
	assert_int_equal(bias, 0x1000);
	assert_true(elf_image__search(image, false, find_constant, NULL));
	elf_image__close(image);
}

static void symbols_are_found_without_a_hash_table(void **state)
{
	struct narrow_file file;
	struct elf_image *image;
	uint64_t address;

	(void)state;
	narrow_file__make(&file, "exported");
	file.dynamic[3].d_tag = DT_BIND_NOW;
	file.sections[0].sh_type = SHT_DYNSYM;
	image = open_file(&file);
	assert_true(elf_image__exported_symbol(image, NARROW_INNER, &address));
	assert_int_equal(address, NARROW_ADDRESS(names));
	assert_false(elf_image__exported_symbol(image, "other", &address));
	elf_image__close(image);
}

/* The wrong byte order, size of program headers, or ELF class. */
static void an_unreadable_file_is_refused(void **state)
{
	struct narrow_file file;

	(void)state;
	narrow_file__make(&file, "exported");
	file.header.e_ident[EI_DATA] = ELFDATA2MSB;
	assert_null(open_file(&file));
	narrow_file__make(&file, "exported");
	file.header.e_phentsize = sizeof(Elf64_Phdr);
	assert_null(open_file(&file));
	narrow_file__make(&file, "exported");
	file.header.e_ident[EI_CLASS] = ELFCLASSNUM;
	assert_null(open_file(&file));
}

/* Reads IMAGE in every way.  The results do not matter; no call may crash or hang. */
static void ask_all(struct elf_image *image)
{
	uint64_t number;
	uint8_t bytes[64];

	elf_image__symbol(image, "exported", &number);
	elf_image__symbol(image, NARROW_INNER, &number);
	elf_image__section(image, NARROW_SECTION, &number);
	find_bias(image, NARROW_BASE, 0, true, &number);
	elf_image__first_bytes(image, bytes, sizeof(bytes), &number);
	elf_image__initial_bytes(image, NARROW_ADDRESS(names), bytes, sizeof(bytes));
	elf_image__search(image, false, find_constant, NULL);
}

static void a_damaged_file_does_no_harm(void **state)
{
	static const uint32_t numbers[] = { 0, 1, INT32_MAX, UINT32_MAX };
	int opened = 0;

	(void)state;
	srandom(1);
	for (int round = 0; round < DAMAGE_ROUNDS; round++) {
		struct narrow_file file;
		uint32_t *words = (uint32_t *)&file;
		struct elf_image *image;

		narrow_file__make(&file, "exported");
		for (int i = 0; i < 3; i++)
			words[random() % (sizeof(file) / sizeof(*words))] =
				random() % 2 ? numbers[random() % 4] : (uint32_t)random() % 4096;
		image = open_file(&file);
		if (!image)
			continue;
		opened++;
		ask_all(image);
		elf_image__close(image);
	}
	assert_true(opened > DAMAGE_ROUNDS / 2);
}

/* Finds the runtime of this process while it maps FILE as code. */
static int find_with(const struct narrow_file *file, struct runtime *runtime)
{
	int fd = open_bytes(file, sizeof(*file)), error;
	void *code = mmap(NULL, sizeof(*file), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	assert_true(code != MAP_FAILED);
	close(fd);
	error = runtime__find(getpid(), runtime);
	munmap(code, sizeof(*file));
	return error;
}

static void check_kind(const struct narrow_file *file, const char *name)
{
	struct runtime runtime;

	assert_int_equal(find_with(file, &runtime), -ENOTSUP);
	assert_non_null(runtime.kind);
	assert_string_equal(runtime.kind->name, name);
	assert_string_equal(runtime.version, "3.11.2");
}

static void a_32_bit_python_is_named_but_not_supported(void **state)
{
	static const char *const names[] = { "_PyRuntime", "PyInterpreterState_Head" };
	struct narrow_file file;

	(void)state;
	/* Only root may open mapped files. */
	if (geteuid())
		skip();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		narrow_file__make(&file, names[i]);
		check_kind(&file, "a 32-bit Python");
		file.header.e_machine = EM_MIPS;
		check_kind(&file, "a MIPS Python");
		file.header.e_machine = EM_XTENSA;
		check_kind(&file, "another architecture's Python");
	}
}

static void another_32_bit_file_is_no_python(void **state)
{
	struct narrow_file file;
	struct runtime runtime;

	(void)state;
	/* Only root may open mapped files. */
	if (geteuid())
		skip();
	narrow_file__make(&file, "exported");
	assert_int_equal(find_with(&file, &runtime), -ENOEXEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_32_bit_file_is_read_like_a_64_bit_one),
		cmocka_unit_test(symbols_are_found_without_a_hash_table),
		cmocka_unit_test(an_unreadable_file_is_refused),
		cmocka_unit_test(a_damaged_file_does_no_harm),
		cmocka_unit_test(a_32_bit_python_is_named_but_not_supported),
		cmocka_unit_test(another_32_bit_file_is_no_python),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
