// SPDX-License-Identifier: BSD-2-Clause
/* Compares the ELF reader with the dynamic linker, and runs it on damaged files. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
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
#include "reading/process.h"

#define FUZZ_ROUNDS 3000

/* A library that this program links: its contents, and where its code is mapped. */
struct library {
	char *bytes;
	size_t size;
	struct mapping code;
};

static struct library library;

#define BUDGET_BYTES (1ULL << 30)

static struct elf_budget budget = { .bytes = BUDGET_BYTES };

static bool visit_all(const uint8_t *bytes, size_t length, uint64_t at, void *context)
{
	uint64_t *sum = context;

	(void)at;
	for (size_t i = 0; i < length; i += 512)
		*sum += bytes[i];
	return false;
}

/* Whether BYTES contain "sought".  Asserts that the mark is visible before it. */
static bool find_after_mark(const uint8_t *bytes, size_t length, uint64_t at, void *context)
{
	const uint8_t *found = memmem(bytes, length, "sought", sizeof("sought"));

	(void)at;
	(void)context;
	if (found)
		assert_int_equal(found[-1], '!');
	return found;
}

static bool find_bias(const struct elf_image *image, uint64_t start, uint64_t file_offset,
		      bool executable, uint64_t *bias)
{
	return elf_segments__bias(image->segments, image->header.e_phnum, start, file_offset,
				  executable, bias);
}

static int open_bytes(const void *bytes, size_t size)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	return fd;
}

static struct elf_image *open_copy(const void *bytes, size_t size)
{
	return elf_image__open(open_bytes(bytes, size), &budget);
}

static Elf64_Ehdr *header_of(char *bytes)
{
	return (Elf64_Ehdr *)bytes;
}

static Elf64_Phdr *segments_of(char *bytes)
{
	return (Elf64_Phdr *)(bytes + header_of(bytes)->e_phoff);
}

/* Changes the tag of PT_DYNAMIC entry TAG to one that is not read.  Returns whether it exists. */
static bool drop_dynamic(char *bytes, int64_t tag)
{
	for (int i = 0; i < header_of(bytes)->e_phnum; i++) {
		const Elf64_Phdr *segment = &segments_of(bytes)[i];
		Elf64_Dyn *entry = (Elf64_Dyn *)(bytes + segment->p_offset);

		for (; segment->p_type == PT_DYNAMIC && entry->d_tag != DT_NULL; entry++)
			if (entry->d_tag == tag) {
				entry->d_tag = DT_DEBUG;
				return true;
			}
	}
	return false;
}

static char *copy_library(void)
{
	char *copy = malloc(library.size);

	memcpy(copy, library.bytes, library.size);
	return copy;
}

/* The mapping that holds the code at ADDRESS. */
static struct mapping find_mapping(uint64_t address)
{
	struct mapping *mappings, found = { 0 };
	bool cut;
	ssize_t count = process__program_mappings(getpid(), getpid(), &mappings, &cut);

	for (ssize_t i = 0; i < count; i++)
		if (mappings[i].executable && mappings[i].start <= address &&
		    address < mappings[i].end)
			found = mappings[i];
	free(mappings);
	assert_true(found.end);
	return found;
}

static int load_library(void **state)
{
	struct elf_image *image;
	void *begin = dlsym(RTLD_NEXT, "elf_begin");
	Dl_info info;
	int fd;

	(void)state;
	library.code = find_mapping((uintptr_t)begin);
	/* By its path, because only root may open /proc/PID/map_files. */
	assert_true(dladdr(begin, &info));
	fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	library.size = lseek(fd, 0, SEEK_END);
	library.bytes = malloc(library.size);
	assert_int_equal(pread(fd, library.bytes, library.size, 0), library.size);
	image = elf_image__open(fd, &budget);
	assert_non_null(image);
	elf_image__close(image);
	return 0;
}

static int free_library(void **state)
{
	(void)state;
	free(library.bytes);
	return 0;
}

static void check_symbols(struct elf_image *image)
{
	static const char *const names[] = { "elf_begin", "gelf_getsym", "elf_version", "elf_end" };
	uint64_t bias, address;

	assert_true(find_bias(image, library.code.start, library.code.offset, true, &bias));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_true(elf_image__exported_symbol(image, names[i], &address));
		assert_int_equal(address + bias, (uintptr_t)dlsym(RTLD_NEXT, names[i]));
	}
	assert_false(elf_image__exported_symbol(image, "elf_begin_", &address));
	assert_false(elf_image__exported_symbol(image, "elf_begi", &address));
	/* The library uses malloc, but does not define it. */
	assert_false(elf_image__exported_symbol(image, "malloc", &address));
}

static void test_agrees_with_the_linker(void **state)
{
	struct elf_image *image = open_copy(library.bytes, library.size);

	(void)state;
	check_symbols(image);
	elf_image__close(image);
}

static void test_needs_no_sections(void **state)
{
	char *copy = copy_library();
	struct elf_image *image;
	uint64_t address;

	(void)state;
	header_of(copy)->e_shoff = 0;
	header_of(copy)->e_shnum = 0;
	header_of(copy)->e_shstrndx = 0;
	image = open_copy(copy, library.size);
	check_symbols(image);
	assert_false(elf_image__section(image, ".text", &address));
	elf_image__close(image);
	free(copy);
}

/* Without DT_GNU_HASH, section headers lead to the exported symbols. */
static void test_no_hash_table(void **state)
{
	char *copy = copy_library();
	struct elf_image *image;
	uint64_t address;

	(void)state;
	assert_true(drop_dynamic(copy, DT_GNU_HASH));
	image = open_copy(copy, library.size);
	check_symbols(image);
	elf_image__close(image);
	header_of(copy)->e_shnum = 0;
	image = open_copy(copy, library.size);
	assert_false(elf_image__symbol(image, "elf_begin", &address));
	elf_image__close(image);
	free(copy);
}

/* Only .symtab has this test's static functions. */
static void test_symbols_that_are_not_exported(void **state)
{
	struct mapping code = find_mapping((uintptr_t)test_symbols_that_are_not_exported);
	struct elf_image *image =
		elf_image__open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &budget);
	uint64_t bias, address;

	(void)state;
	assert_true(find_bias(image, code.start, code.offset, true, &bias));
	assert_true(elf_image__symbol(image, "test_symbols_that_are_not_exported", &address));
	assert_int_equal(address + bias, (uintptr_t)test_symbols_that_are_not_exported);
	assert_false(
		elf_image__exported_symbol(image, "test_symbols_that_are_not_exported", &address));
	elf_image__close(image);
}

static void test_section(void **state)
{
	struct elf_image *image = open_copy(library.bytes, library.size);
	uint64_t address, bias;

	(void)state;
	assert_true(find_bias(image, library.code.start, library.code.offset, true, &bias));
	assert_true(elf_image__section(image, ".text", &address));
	assert_in_range(address + bias, library.code.start, library.code.end);
	assert_false(elf_image__section(image, ".tex", &address));
	/* The section is not loaded, so it has no address. */
	assert_false(elf_image__section(image, ".shstrtab", &address));
	elf_image__close(image);
}

static void test_first_bytes(void **state)
{
	struct elf_image *image = open_copy(library.bytes, library.size);
	uint64_t address, bias;
	uint8_t bytes[64];

	(void)state;
	assert_true(find_bias(image, library.code.start, library.code.offset, true, &bias));
	assert_true(elf_image__first_bytes(image, bytes, sizeof(bytes), &address));
	assert_memory_equal(bytes, (void *)(uintptr_t)(address + bias), sizeof(bytes));
	elf_image__close(image);
}

/* Segments as a linker may lay them out: { flags, offset in the file, address, size }. */
static struct elf_image *open_segments(const uint64_t (*wanted)[4], int count)
{
	static char bytes[4096];
	Elf64_Ehdr *header = header_of(bytes);
	Elf64_Phdr *segments = (Elf64_Phdr *)(bytes + sizeof(*header));

	memcpy(header, library.bytes, sizeof(*header));
	header->e_phoff = sizeof(*header);
	header->e_phnum = count;
	header->e_shnum = 0;
	for (int i = 0; i < count; i++)
		segments[i] = (Elf64_Phdr){ .p_type = PT_LOAD,
					    .p_flags = wanted[i][0],
					    .p_offset = wanted[i][1],
					    .p_vaddr = wanted[i][2],
					    .p_filesz = wanted[i][3] };
	return open_copy(bytes, sizeof(bytes));
}

static void test_bias(void **state)
{
	static const uint64_t segments[][4] = {
		{ PF_R, 0, 0x400000, 0x1650 },
		{ PF_R | PF_X, 0x1650, 0x402650, 0x2000 },
		{ PF_R | PF_W, 0x3650, 0x405650, 0x200 },
		{ PF_R | PF_W, 0x3850, 0x406850, 0x200 },
	};
	struct elf_image *image = open_segments(segments, 4);
	uint64_t bias;

	(void)state;
	assert_true(find_bias(image, 0x10002000, 0x1000, true, &bias));
	assert_int_equal(bias, 0x10002000 - 0x402000);
	/* A later part, after mprotect() split the mapping. */
	assert_true(find_bias(image, 0x10003000, 0x2000, true, &bias));
	assert_int_equal(bias, 0x10002000 - 0x402000);
	/* Two segments share a page of the file.  The first one is read-only after relocation. */
	assert_true(find_bias(image, 0x10006000, 0x3000, false, &bias));
	assert_int_equal(bias, 0x10006000 - 0x406000);
	assert_false(find_bias(image, 0x10002000, 0, true, &bias));
	assert_false(find_bias(image, 0x10002000, 0x4000, true, &bias));
	elf_image__close(image);
}

static void refuse(const void *bytes, size_t size)
{
	assert_null(open_copy(bytes, size));
}

static void test_refused_files(void **state)
{
	char *copy = copy_library();

	(void)state;
	refuse("", 0);
	refuse("#!/bin/sh\n", 10);
	refuse(copy, sizeof(Elf64_Ehdr) - 1);
	refuse(copy, sizeof(Elf64_Ehdr));
	copy[EI_CLASS] = ELFCLASS32;
	refuse(copy, library.size);
	copy[EI_CLASS] = ELFCLASS64;
	copy[EI_DATA] = ELFDATA2MSB;
	refuse(copy, library.size);
	copy[EI_DATA] = ELFDATA2LSB;
	header_of(copy)->e_phnum = UINT16_MAX;
	refuse(copy, library.size);
	header_of(copy)->e_phnum = header_of(library.bytes)->e_phnum;
	header_of(copy)->e_phoff = UINT64_MAX - 8;
	refuse(copy, library.size);
	free(copy);
}

/* Calls every function.  The results do not matter, only that each call returns. */
static void ask_all(struct elf_image *image)
{
	uint64_t number = 0;
	uint8_t bytes[64];

	if (!image)
		return;
	elf_image__symbol(image, "elf_begin", &number);
	elf_image__symbol(image, "_PyRuntime", &number);
	elf_image__section(image, ".text", &number);
	elf_image__section(image, ".PyRuntime", &number);
	find_bias(image, library.code.start, library.code.offset, true, &number);
	find_bias(image, library.code.start, 0, false, &number);
	elf_image__first_bytes(image, bytes, sizeof(bytes), &number);
	elf_image__search(image, false, visit_all, &number);
	elf_image__close(image);
}

/* A random place in the headers, the dynamic entries, the section headers, or the first 8 KiB,
 * which hold the hash table. */
static size_t choose_place(void)
{
	const Elf64_Ehdr *header = header_of(library.bytes);
	const Elf64_Phdr *segments = segments_of(library.bytes);
	size_t dynamic = sizeof(*header);

	for (int i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_DYNAMIC)
			dynamic = segments[i].p_offset;
	switch (random() % 4) {
	case 0:
		return random() % (sizeof(*header) + header->e_phnum * sizeof(*segments));
	case 1:
		return dynamic + random() % 512;
	case 2:
		return header->e_shoff + random() % (header->e_shnum * sizeof(Elf64_Shdr));
	default:
		return random() % 8192;
	}
}

static void test_damaged_files(void **state)
{
	static const uint64_t numbers[] = { 0, 1, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX };
	char *copy = copy_library();
	int fd = open_bytes(copy, library.size);

	(void)state;
	srandom(1);
	for (int round = 0; round < FUZZ_ROUNDS; round++) {
		for (int i = 0; i < 3; i++) {
			uint64_t number = numbers[random() % 6];
			size_t at = choose_place() & ~7UL;

			if (random() % 2)
				number = random();
			assert_int_equal(pwrite(fd, &number, sizeof(number), at), sizeof(number));
		}
		if (random() % 8 == 0)
			assert_int_equal(ftruncate(fd, random() % library.size), 0);
		budget.bytes = BUDGET_BYTES;
		ask_all(elf_image__open(dup(fd), &budget));
		assert_int_equal(pwrite(fd, copy, library.size, 0), library.size);
	}
	close(fd);
	free(copy);
}

/* A huge file that is nearly all holes.  Memory is not allocated by its size, and reading stops at
 * the budget. */
static void test_sparse_file(void **state)
{
	char *copy = copy_library();
	Elf64_Ehdr *header = header_of(copy);
	Elf64_Phdr *segments = segments_of(copy);
	int fd;

	(void)state;
	for (int i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD)
			segments[i].p_filesz = 1ULL << 40;
	for (int i = 0; i < header->e_shnum; i++)
		((Elf64_Shdr *)(copy + header->e_shoff))[i].sh_size = 1ULL << 40;
	fd = open_bytes(copy, library.size);
	assert_int_equal(ftruncate(fd, 1ULL << 42), 0);
	budget.bytes = BUDGET_BYTES;
	ask_all(elf_image__open(fd, &budget));
	assert_true(budget.exceeded);
	assert_true(budget.bytes);
	free(copy);
}

/* A symbol and its name, which is also searched for, at each position around a block's end. */
static void test_block_borders(void **state)
{
	enum { BLOCK = 4096 * sizeof(Elf64_Sym), TABLE = 4096, STRINGS = 2 * BLOCK };
	const size_t size = STRINGS + 2 * BLOCK;
	char *copy = calloc(1, size);
	Elf64_Ehdr *header = header_of(copy);
	Elf64_Phdr *segment = (Elf64_Phdr *)(copy + sizeof(*header));
	Elf64_Shdr *sections = (Elf64_Shdr *)(segment + 1);
	uint64_t address;

	(void)state;
	memcpy(header, library.bytes, sizeof(*header));
	header->e_phoff = sizeof(*header);
	header->e_phnum = 1;
	header->e_shoff = (char *)sections - copy;
	header->e_shnum = 2;
	*segment = (Elf64_Phdr){ .p_type = PT_LOAD, .p_offset = STRINGS, .p_filesz = 2 * BLOCK };
	sections[0] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
				    .sh_offset = TABLE,
				    .sh_size = BLOCK + sizeof(Elf64_Sym) * 64,
				    .sh_link = 1 };
	sections[1] = (Elf64_Shdr){ .sh_offset = STRINGS, .sh_size = 2 * BLOCK };
	for (int i = -70; i < 2; i++) {
		size_t symbol = TABLE + BLOCK + i / 2 * (int)sizeof(Elf64_Sym);
		char *name = copy + STRINGS + BLOCK + i;
		struct elf_image *image;

		*(Elf64_Sym *)(copy + symbol) =
			(Elf64_Sym){ .st_name = BLOCK + i, .st_shndx = 1, .st_value = 4711 };
		memcpy(name - 1, "!sought", sizeof("!sought"));
		budget.bytes = BUDGET_BYTES;
		image = open_copy(copy, size);
		assert_true(elf_image__symbol(image, "sought", &address));
		assert_int_equal(address, 4711);
		assert_false(elf_image__symbol(image, "!!sought", &address));
		assert_true(elf_image__search(image, false, find_after_mark, NULL));
		elf_image__close(image);
		memset(copy + symbol, 0, sizeof(Elf64_Sym));
		memset(name - 1, 0, sizeof("!sought"));
	}
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agrees_with_the_linker),
		cmocka_unit_test(test_needs_no_sections),
		cmocka_unit_test(test_no_hash_table),
		cmocka_unit_test(test_symbols_that_are_not_exported),
		cmocka_unit_test(test_section),
		cmocka_unit_test(test_first_bytes),
		cmocka_unit_test(test_bias),
		cmocka_unit_test(test_refused_files),
		cmocka_unit_test(test_damaged_files),
		cmocka_unit_test(test_sparse_file),
		cmocka_unit_test(test_block_borders),
	};

	return cmocka_run_group_tests(tests, load_library, free_library);
}
