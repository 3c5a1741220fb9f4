/* SPDX-License-Identifier: BSD-2-Clause */
/* An unwinder for this process, which maps its program, the C library, zlib and the vDSO. */
#ifndef PYBPFPROF_TESTS_UNWOUND_H
#define PYBPFPROF_TESTS_UNWOUND_H

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <zlib.h>

#include "base/now.h"
#include "own_mappings.h"
#include "reading/reader.h"
#include "unwind/unwinder.h"
#include "unwind_maps.h"

#define SERIAL 7
#define MEMORY (64ULL << 20)
#define PAGE   4096
#define SECOND 1000000000LL
#define MINUTE (60 * SECOND)

static const struct unwinder_maps maps = { CHUNKS_FD, FILES_FD, RULES_FD, TABLES_FD };

static struct unwinder *unwinder;

/* If the given time is this far ahead of the clock, no turn runs out of time. */
#define AHEAD_NS (60 * MINUTE)

/* When the added process was read.  A second later it may be read again. */
static int64_t added_ns;

static inline int set_up(void **state)
{
	(void)state;
	unwinder = unwinder__new(&maps, MEMORY);
	files_opened = 0;
	unopened = NULL;
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	unwinder__free(unwinder);
	unwind_maps__clear();
	return 0;
}

/* A function of this program; the next ones find functions of libraries. */
__attribute__((noinline, unused)) static int own_function(int number)
{
	__asm__ volatile("" : "+r"(number));
	return number + 1;
}

static inline uint64_t own_address(void)
{
	return (uintptr_t)own_function;
}

static inline uint64_t zlib_address(void)
{
	return (uintptr_t)dlsym(RTLD_DEFAULT, "zlibVersion");
}

/* Finds it in the C library itself, because sanitizers replace some of its functions. */
static inline uint64_t libc_address(const char *name)
{
	void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	uint64_t address = (uintptr_t)dlsym(library, name);

	assert_true(address);
	dlclose(library);
	return address;
}

static inline uint64_t vdso_address(void)
{
	return getauxval(AT_SYSINFO_EHDR);
}

/* Finds the data of zlib, which stands for an interpreter. */
static inline int find_data(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	if (!strstr(info->dlpi_name, "libz.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_W)
			*(uint64_t *)data =
				info->dlpi_addr + segment->p_vaddr + segment->p_filesz - 1;
	}
	return 1;
}

static inline uint64_t zlib_data(void)
{
	uint64_t data = 0;

	dl_iterate_phdr(find_data, &data);
	assert_true(data);
	return data;
}

static inline void add(bool whole)
{
	uint64_t missed;

	added_ns = now_ns() + AHEAD_NS;
	unwinder__add(unwinder, SERIAL, getpid(), zlib_data(), 0, whole);
	/* On a busy machine, a page of a file may take long to load. */
	do {
		missed = reader__missed(getpid());
		reader__wait(getpid());
		unwinder__work(unwinder, added_ns);
		added_ns += SECOND;
	} while (reader__missed(getpid()) != missed);
	added_ns -= SECOND;
}

static inline uint64_t map_code(void)
{
	void *code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(code, MAP_FAILED);
	return (uintptr_t)code;
}

static inline void unmap_code(uint64_t code)
{
	munmap((void *)code, PAGE);
}

static inline const struct unwind_mapping *mapping_at(uint32_t number)
{
	const void *chunk = unwind_maps.chunks[number / CHUNK_MAPPINGS];

	return (const struct unwind_mapping *)chunk + number % CHUNK_MAPPINGS;
}

/* The mapping of ADDRESS in the table of process SERIAL, as BPF sees it; NULL: there is none. */
static inline const struct unwind_mapping *mapping_of(uint64_t serial, uint64_t address)
{
	const struct unwind_table *table = unwind_maps__table(serial);

	for (uint32_t i = 0; table && i < table->count; i++) {
		const struct unwind_mapping *mapping = mapping_at(table->first + i);

		if (address >= mapping->start && address < mapping->end)
			return mapping;
	}
	return NULL;
}

static inline const struct unwind_file *file_of(uint64_t address)
{
	const struct unwind_mapping *mapping = mapping_of(SERIAL, address);

	assert_non_null(mapping);
	assert_in_range(mapping->file, 0, UNWIND_FILES_MAX - 1);
	return &unwind_maps.files[mapping->file];
}

static inline bool has_rows(uint64_t address)
{
	return file_of(address)->pages;
}

/* The row that BPF finds for ADDRESS. */
static inline uint32_t row_at(uint64_t address)
{
	return unwind_maps__row(file_of(address), address - mapping_of(SERIAL, address)->bias);
}

static inline void assert_described(uint64_t address)
{
	assert_int_not_equal(ROW_KIND(row_at(address)), ROW_NONE);
	/* Where a function begins, the return address is the last word on the stack. */
	assert_int_equal(row_at(address) & ~(ROW_PLUMBING | ROW_EVAL_LOOP | 0xff),
			 ROW(ROW_SP, 1, 0));
}

#endif
