// SPDX-License-Identifier: BSD-2-Clause
/* Names of functions, in real files as the dynamic linker gives them, and in files made by hand. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "architecture/architecture.h"
#include "elf/elf_parts.h"
#include "narrow_file.h"
#include "unwind/symbols.h"

#define BUDGET_BYTES (1ULL << 30)
#define BYTES_MAX    (64ULL << 20)
#define SYMBOLS	     16
#define BASE	     0x400000

static struct elf_budget budget;

struct note {
	Elf64_Nhdr header;
	char name[4];
	uint8_t bytes[24];
};

/* A 64-bit file with both symbol tables, in one segment. */
struct file {
	Elf64_Ehdr header;
	Elf64_Phdr segments[3];
	Elf64_Dyn dynamic[4];
	Elf64_Sym symbols[SYMBOLS], exported[SYMBOLS];
	char strings[8192];
	Elf64_Shdr sections[3];
	struct note notes[2];
	size_t strings_used;
};

#define OFFSET(member)	((uint64_t)offsetof(struct file, member))
#define ADDRESS(member) (BASE + OFFSET(member))

static struct file *make_file(void)
{
	struct file *file = calloc(1, sizeof(*file));

	file->header = (Elf64_Ehdr){ .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
						  ELFDATA2LSB, EV_CURRENT },
				     .e_type = ET_DYN,
				     .e_machine = ARCHITECTURE.machine,
				     .e_phoff = OFFSET(segments),
				     .e_shoff = OFFSET(sections),
				     .e_phentsize = sizeof(*file->segments),
				     .e_phnum = 3,
				     .e_shentsize = sizeof(*file->sections),
				     .e_shnum = 3 };
	file->segments[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
					  .p_flags = PF_R | PF_X,
					  .p_vaddr = BASE,
					  .p_filesz = sizeof(*file) };
	file->segments[1] = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
					  .p_offset = OFFSET(dynamic),
					  .p_filesz = sizeof(file->dynamic) };
	file->segments[2] = (Elf64_Phdr){ .p_type = PT_NOTE,
					  .p_offset = OFFSET(notes),
					  .p_filesz = sizeof(file->notes),
					  .p_align = 4 };
	file->dynamic[0] = (Elf64_Dyn){ DT_SYMTAB, { ADDRESS(exported) } };
	file->dynamic[1] = (Elf64_Dyn){ DT_STRTAB, { ADDRESS(strings) } };
	file->dynamic[2] = (Elf64_Dyn){ DT_STRSZ, { sizeof(file->strings) } };
	file->sections[0] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
					  .sh_offset = OFFSET(symbols),
					  .sh_size = sizeof(file->symbols),
					  .sh_link = 2 };
	file->sections[1] = (Elf64_Shdr){ .sh_type = SHT_DYNSYM,
					  .sh_offset = OFFSET(exported),
					  .sh_size = sizeof(file->exported),
					  .sh_link = 2 };
	file->sections[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
					  .sh_offset = OFFSET(strings),
					  .sh_size = sizeof(file->strings) };
	file->strings_used = 1;
	return file;
}

/* Makes SYMBOL a global function. */
static Elf64_Sym *add(struct file *file, Elf64_Sym *symbol, const char *name, uint64_t start,
		      uint64_t size)
{
	assert_true(file->strings_used + strlen(name) < sizeof(file->strings));
	*symbol = (Elf64_Sym){ .st_name = file->strings_used,
			       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			       .st_shndx = 1,
			       .st_value = start,
			       .st_size = size };
	strcpy(file->strings + file->strings_used, name);
	file->strings_used += strlen(name) + 1;
	return symbol;
}

static void add_local(struct file *file, Elf64_Sym *symbol, const char *name, uint64_t start,
		      uint64_t size, int type)
{
	add(file, symbol, name, start, size)->st_info = ELF64_ST_INFO(STB_LOCAL, type);
}

static struct elf_image *open_bytes(const void *bytes, size_t size)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	budget = (struct elf_budget){ .bytes = BUDGET_BYTES };
	return elf_image__open(fd, &budget);
}

static struct symbols *read_bytes(const void *bytes, size_t size)
{
	struct elf_image *image = open_bytes(bytes, size);
	struct symbols *symbols;

	assert_non_null(image);
	symbols = symbols__read(image, BYTES_MAX);
	elf_image__close(image);
	return symbols;
}

static struct symbols *read_file(const struct file *file)
{
	return read_bytes(file, sizeof(*file));
}

/* Checks that ADDRESS lies in function NAME, which begins at START; NULL: in no function. */
static void check_name(const struct symbols *symbols, uint64_t address, const char *name,
		       uint64_t start)
{
	uint64_t found, size;
	const char *text = symbols__name(symbols, address, &found, &size);

	if (!name) {
		assert_null(text);
		return;
	}
	assert_non_null(text);
	assert_string_equal(text, name);
	assert_int_equal(found, start);
	assert_in_range(address, found, found + size - 1);
}

static void test_addresses(void **state)
{
	struct file *file = make_file();
	struct symbols *symbols;
	uint64_t start, size;

	(void)state;
	add(file, &file->symbols[3], "second", 0x2000, 0x10);
	add(file, &file->symbols[2], "first", 0x1000, 0x100);
	symbols = read_file(file);
	assert_int_equal(symbols__count(symbols), 2);
	assert_string_equal(symbols__at(symbols, 0, &start, &size), "first");
	assert_int_equal(start, 0x1000);
	assert_int_equal(size, 0x100);
	assert_string_equal(symbols__at(symbols, 1, &start, &size), "second");
	check_name(symbols, 0, NULL, 0);
	check_name(symbols, 0xfff, NULL, 0);
	check_name(symbols, 0x1000, "first", 0x1000);
	check_name(symbols, 0x10ff, "first", 0x1000);
	check_name(symbols, 0x1100, NULL, 0);
	check_name(symbols, 0x200f, "second", 0x2000);
	check_name(symbols, 0x2010, NULL, 0);
	check_name(symbols, UINT64_MAX, NULL, 0);
	symbols__free(symbols);
	free(file);
}

static void test_symbols_that_are_not_functions(void **state)
{
	struct file *file = make_file();
	struct symbols *symbols;

	(void)state;
	add_local(file, &file->symbols[1], "variable", 0x1000, 8, STT_OBJECT);
	add_local(file, &file->symbols[2], "$x", 0x1000, 8, STT_NOTYPE);
	add(file, &file->symbols[3], "imported", 0x1000, 8)->st_shndx = SHN_UNDEF;
	add(file, &file->symbols[4], "nowhere", 0x1000, 8)->st_shndx = SHN_ABS;
	add(file, &file->symbols[5], "without_size", 0x1000, 0);
	add(file, &file->symbols[6], "", 0x1000, 8);
	add(file, &file->symbols[7], "huge", 0x1000, 1ULL << 32);
	add(file, &file->symbols[8], "wraps", UINT64_MAX - 8, 16);
	assert_null(read_file(file));
	add_local(file, &file->symbols[9], "resolved", 0x1000, 8, STT_GNU_IFUNC);
	symbols = read_file(file);
	assert_int_equal(symbols__count(symbols), 1);
	check_name(symbols, 0x1007, "resolved", 0x1000);
	symbols__free(symbols);
	free(file);
}

static void test_aliases(void **state)
{
	struct file *file = make_file();
	struct symbols *symbols;

	(void)state;
	add_local(file, &file->symbols[1], "a", 0x1000, 8, STT_FUNC);
	add(file, &file->symbols[2], "weak", 0x1000, 8)->st_info =
		ELF64_ST_INFO(STB_WEAK, STT_FUNC);
	add(file, &file->symbols[3], "global_one", 0x1000, 8);
	add(file, &file->symbols[4], "global2", 0x1000, 8);
	add(file, &file->symbols[5], "global1@@LIB_1.0", 0x1000, 8);
	add_local(file, &file->symbols[6], "l", 0x2000, 8, STT_FUNC);
	add(file, &file->symbols[7], "weak@LIB_1.0", 0x2000, 8)->st_info =
		ELF64_ST_INFO(STB_WEAK, STT_FUNC);
	symbols = read_file(file);
	assert_int_equal(symbols__count(symbols), 2);
	check_name(symbols, 0x1000, "global2", 0x1000);
	check_name(symbols, 0x2000, "weak", 0x2000);
	symbols__free(symbols);
	free(file);
}

static void test_nested_functions(void **state)
{
	struct file *file = make_file();
	struct symbols *symbols;

	(void)state;
	add(file, &file->symbols[1], "outer", 0x1000, 0x100);
	add(file, &file->symbols[2], "inner", 0x1010, 0x10);
	add(file, &file->symbols[3], "last", 0x10f0, 0x20);
	symbols = read_file(file);
	check_name(symbols, 0x100f, "outer", 0x1000);
	check_name(symbols, 0x101f, "inner", 0x1010);
	check_name(symbols, 0x1020, "outer", 0x1000);
	check_name(symbols, 0x10ff, "last", 0x10f0);
	check_name(symbols, 0x110f, "last", 0x10f0);
	check_name(symbols, 0x1110, NULL, 0);
	symbols__free(symbols);
	free(file);
}

/* A file as strip(1) leaves it has exported names.  Without section headers it has none. */
static void test_exported_functions(void **state)
{
	struct file *file = make_file();
	struct symbols *symbols;

	(void)state;
	add(file, &file->exported[5], "exported", 0x1000, 8);
	symbols = read_file(file);
	check_name(symbols, 0x1000, "exported", 0x1000);
	symbols__free(symbols);

	file->header.e_shnum = 0;
	assert_null(read_file(file));
	free(file);
}

static void test_hostile_tables(void **state)
{
	struct file *file = make_file();

	(void)state;
	add(file, &file->symbols[1], "f", 0x1000, 8)->st_name = sizeof(file->strings);
	add(file, &file->symbols[2], "f", 0x1000, 8)->st_name = UINT32_MAX;
	add(file, &file->symbols[3], "f", 0x1000, 8)->st_name = sizeof(file->strings) - 2;
	memset(file->strings + sizeof(file->strings) - 2, 'x', 2);
	assert_null(read_file(file));
	file->strings[sizeof(file->strings) - 1] = '\0';
	symbols__free(read_file(file));

	file->sections[0].sh_size = UINT64_MAX;
	assert_null(read_file(file));
	file->sections[0].sh_size = sizeof(file->symbols) + (1ULL << 40);
	assert_null(read_file(file));
	file->sections[0].sh_size = sizeof(file->symbols);
	file->sections[0].sh_link = 3;
	assert_null(read_file(file));
	file->sections[0].sh_link = 2;
	file->sections[2].sh_size = UINT64_MAX;
	assert_null(read_file(file));
	free(file);
}

static void test_long_names(void **state)
{
	struct file *file = make_file();
	struct symbols *symbols;
	char name[SYMBOLS_NAME_BYTES_MAX + 1];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	add(file, &file->symbols[1], name, 0x1000, 8);
	symbols = read_file(file);
	check_name(symbols, 0x1000, name, 0x1000);
	symbols__free(symbols);
	file->strings[file->strings_used - 1] = 'n';
	assert_null(read_file(file));
	free(file);
}

static void test_budget(void **state)
{
	struct file *file = make_file();
	struct elf_image *image;

	(void)state;
	add(file, &file->symbols[1], "f", 0x1000, 8);
	image = open_bytes(file, sizeof(*file));
	budget.bytes = sizeof(file->symbols) + 1;
	assert_null(symbols__read(image, BYTES_MAX));
	assert_true(budget.exceeded);
	elf_image__close(image);
	free(file);
}

/* The limit is for the table and the names that it refers to. */
static void test_bytes(void **state)
{
	struct file *file = make_file();
	struct elf_image *image;
	struct symbols *symbols;
	struct symbol_table table;
	uint64_t needed;

	(void)state;
	add(file, &file->symbols[1], "f", 0x1000, 8);
	image = open_bytes(file, sizeof(*file));
	assert_true(elf_symbols__find_table(image, SHT_SYMTAB, &table));
	needed = table.count * sizeof(Elf64_Sym) + table.strings_bytes;
	assert_null(symbols__read(image, needed - 1));
	symbols = symbols__read(image, needed);
	assert_int_equal(symbols__count(symbols), 1);
	assert_in_range(symbols__bytes(symbols), sizeof("f"), 1024);
	assert_int_equal(symbols__bytes(NULL), 0);
	symbols__free(symbols);
	elf_image__close(image);
	free(file);
}

static void test_other_machines(void **state)
{
	struct file *file = make_file();
	struct narrow_file narrow;

	(void)state;
	add(file, &file->symbols[1], "f", 0x1000, 8);
	file->header.e_machine = EM_RISCV;
	assert_null(read_file(file));
	narrow_file__make(&narrow, "f");
	assert_null(read_bytes(&narrow, sizeof(narrow)));
	free(file);
}

static void test_no_symbols(void **state)
{
	uint64_t start, size;

	(void)state;
	assert_int_equal(symbols__count(NULL), 0);
	assert_null(symbols__name(NULL, 0x1000, &start, &size));
	symbols__free(NULL);
}

/* The name of a static function of this test is in .symtab. */
static void test_own_functions(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_image *image;
	struct symbols *symbols;
	uint64_t bias, start, size;
	Dl_info info;

	(void)state;
	budget = (struct elf_budget){ .bytes = BUDGET_BYTES };
	image = elf_image__open(fd, &budget);
	assert_non_null(image);
	symbols = symbols__read(image, BYTES_MAX);
	assert_true(dladdr((void *)(uintptr_t)test_own_functions, &info));
	bias = (uintptr_t)info.dli_fbase;
	if (getauxval(AT_PHDR) - bias != sizeof(Elf64_Ehdr))
		fail_msg("where this program is loaded is not known");
	check_name(symbols, (uintptr_t)test_own_functions + 1 - bias, "test_own_functions",
		   (uintptr_t)test_own_functions - bias);
	for (size_t i = 1; i < symbols__count(symbols); i++) {
		uint64_t before;

		symbols__at(symbols, i - 1, &before, &size);
		symbols__at(symbols, i, &start, &size);
		assert_true(before < start);
	}
	symbols__free(symbols);
	elf_image__close(image);
}

/* The C library's bytes, and where it is loaded. */
static char *read_c_library(size_t *size, uint64_t *bias)
{
	Dl_info info;
	char *bytes;
	int fd;

	assert_true(dladdr(dlsym(RTLD_NEXT, "gnu_get_libc_version"), &info));
	*bias = (uintptr_t)info.dli_fbase;
	fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	*size = lseek(fd, 0, SEEK_END);
	bytes = malloc(*size);
	assert_int_equal(pread(fd, bytes, *size, 0), *size);
	close(fd);
	return bytes;
}

/* The name may be an alias, which must have the same address. */
static void check_c_library(const struct symbols *symbols, uint64_t bias)
{
	static const char *const names[] = { "qsort_r", "gnu_get_libc_version", "tcsetattr" };
	uint64_t start, size;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *function = dlsym(RTLD_NEXT, names[i]);
		const char *name =
			symbols__name(symbols, (uintptr_t)function + 1 - bias, &start, &size);

		assert_non_null(name);
		assert_int_equal(start + bias, (uintptr_t)function);
		assert_ptr_equal(dlsym(RTLD_NEXT, name), function);
	}
}

static void test_c_library(void **state)
{
	size_t size;
	uint64_t bias;
	char *bytes = read_c_library(&size, &bias);
	struct symbols *symbols = read_bytes(bytes, size);

	(void)state;
	check_c_library(symbols, bias);
	assert_true(symbols__count(symbols) > 1000);
	symbols__free(symbols);
	free(bytes);
}

static bool build_id(const struct file *file, char hex[ELF_BUILD_ID_HEX_BYTES])
{
	struct elf_image *image = open_bytes(file, sizeof(*file));
	bool found = elf_image__build_id(image, hex);

	elf_image__close(image);
	return found;
}

static void test_build_id(void **state)
{
	struct file *file = make_file();
	Elf64_Nhdr *header = &file->notes[1].header;
	char hex[ELF_BUILD_ID_HEX_BYTES];

	(void)state;
	assert_false(build_id(file, hex));
	file->notes[0] = (struct note){ { 4, 24, NT_GNU_ABI_TAG }, "GNU", { 0 } };
	file->notes[1] = (struct note){ { 4, 20, NT_GNU_BUILD_ID }, "GNU", { 0xab, 0x01 } };
	assert_true(build_id(file, hex));
	assert_string_equal(hex, "ab01000000000000000000000000000000000000");
	header->n_descsz = 2;
	assert_true(build_id(file, hex));
	assert_string_equal(hex, "ab01");
	header->n_descsz = 21;
	assert_false(build_id(file, hex));
	header->n_descsz = 0;
	assert_false(build_id(file, hex));
	header->n_descsz = UINT32_MAX;
	assert_false(build_id(file, hex));
	header->n_descsz = 20;
	file->notes[1].name[0] = 'X';
	assert_false(build_id(file, hex));
	file->notes[1].name[0] = 'G';
	file->notes[0].header.n_descsz = UINT32_MAX;
	assert_false(build_id(file, hex));
	file->notes[0].header.n_descsz = 24;
	file->segments[2].p_offset = UINT64_MAX - 4;
	assert_false(build_id(file, hex));
	free(file);
}

/* Notes aligned to 8 bytes.  The name has 4 bytes and ends at 16 without padding. */
static void test_aligned_build_id(void **state)
{
	struct file *file = make_file();
	char hex[ELF_BUILD_ID_HEX_BYTES];
	uint8_t *bytes = (uint8_t *)file->notes;
	struct note second = { { 4, 3, NT_GNU_BUILD_ID }, "GNU", { 1, 2, 3 } };

	(void)state;
	file->segments[2].p_align = 8;
	file->notes[0] = (struct note){ { 4, 4, NT_GNU_PROPERTY_TYPE_0 }, "GNU", { 0 } };
	memcpy(bytes + 24, &second, sizeof(second));
	assert_true(build_id(file, hex));
	assert_string_equal(hex, "010203");
	free(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_symbols_that_are_not_functions),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_nested_functions),
		cmocka_unit_test(test_exported_functions),
		cmocka_unit_test(test_hostile_tables),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_other_machines),
		cmocka_unit_test(test_no_symbols),
		cmocka_unit_test(test_own_functions),
		cmocka_unit_test(test_c_library),
		cmocka_unit_test(test_build_id),
		cmocka_unit_test(test_aligned_build_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
