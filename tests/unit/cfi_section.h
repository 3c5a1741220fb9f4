/* SPDX-License-Identifier: BSD-2-Clause */
/* Call frame information that tests build by hand, entry by entry, and read. */
#ifndef PYBPFPROF_TEST_CFI_SECTION_H
#define PYBPFPROF_TEST_CFI_SECTION_H

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/xalloc.h"
#include "unwind/cfi.h"

#define ADDRESS 0x500000
#define START	0x1000

#define BYTES(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })
#define ROWS(...)                                \
	(const struct cfi_row[]){ __VA_ARGS__ }, \
		sizeof((const struct cfi_row[]){ __VA_ARGS__ }) / sizeof(struct cfi_row)
#define NO_CODE	     ROW_NUMBERED(ROW_NONE, ROW_NO_CODE)
#define UNSUPPORTED  ROW_NUMBERED(ROW_NONE, ROW_UNSUPPORTED)
#define END	     ROW_NUMBERED(ROW_END, 0)
#define SIGNAL	     ROW_NUMBERED(ROW_SIGNAL, 0)
#define RULE(number) ROW_NUMBERED(ROW_RULE, number)

/* Instructions that end a row, and that make rows differ. */
#define NEXT	  0x41
#define CFA_SP(n) 0x0c, 7, (n)*8
#define CFA_FP(n) 0x0c, 6, (n)*8
#define FP_AT_16  0x86, 2

static struct {
	uint8_t *bytes;
	size_t size, capacity;
	size_t cie; /* offset of the last one */
} section;

static struct cfi_rows rows;

static inline void put(const void *bytes, size_t size)
{
	section.bytes = xgrow(section.bytes, &section.capacity, section.size + size, 1);
	if (size)
		memcpy(section.bytes + section.size, bytes, size);
	section.size += size;
}

static inline void put_number(uint64_t number, size_t width)
{
	put(&number, width);
}

/* end_entry() fills in the length. */
static inline size_t begin_entry(void)
{
	put_number(0, 4);
	return section.size;
}

static inline void end_entry(size_t begin)
{
	uint32_t length = section.size - begin;

	memcpy(section.bytes + begin - 4, &length, 4);
}

/* DATA belongs to the letters of AUGMENTATION.  The alignment factors are 1 and -8. */
static inline void put_cie(const char *augmentation, const uint8_t *data, size_t data_size,
			   const uint8_t *code, size_t size)
{
	size_t begin;

	section.cie = section.size;
	begin = begin_entry();
	put_number(0, 4);
	put_number(1, 1);
	put(augmentation, strlen(augmentation) + 1);
	put(BYTES(1, 0x78, 16));
	if (*augmentation)
		put_number(data_size, 1);
	put(data, data_size);
	put(code, size);
	end_entry(begin);
}

static inline size_t begin_fde(void)
{
	size_t begin = begin_entry();

	put_number(section.size - section.cie, 4);
	return begin;
}

static inline void put_fde(uint64_t start, uint64_t length, const uint8_t *code, size_t size)
{
	size_t begin = begin_fde();

	put_number(start, 8);
	put_number(length, 8);
	put(code, size);
	end_entry(begin);
}

/* CFA = rsp + 8. */
static inline void put_usual_cie(void)
{
	put_cie("", NULL, 0, BYTES(CFA_SP(1), 0x90, 1));
}

static inline int read_as(uint16_t machine)
{
	struct cfi_section all = { section.bytes, section.size, ADDRESS, machine };

	cfi_rows__free(&rows);
	return cfi__read(&all, &rows);
}

static inline void assert_rows(const struct cfi_row *wanted, size_t count)
{
	assert_int_equal(read_as(EM_X86_64), 0);
	for (size_t i = 0; i < count && i < rows.count; i++) {
		assert_int_equal(rows.all[i].address, wanted[i].address);
		assert_int_equal(rows.all[i].word, wanted[i].word);
	}
	assert_int_equal(rows.count, count);
}

static inline int forget(void **state)
{
	(void)state;
	cfi_rows__free(&rows);
	free(section.bytes);
	section.bytes = NULL;
	section.size = section.capacity = section.cie = 0;
	return 0;
}

#endif
