// SPDX-License-Identifier: BSD-2-Clause
/* The input: the machine, and a file's call frame information. */
#include <elf.h>

#include "input.h"
#include "unwind/cfi.h"

#define ADDRESS 0x400000

/* Checks what BPF relies on. */
static void check_rows(const struct cfi_rows *rows)
{
	uint32_t none = ROW_NUMBERED(ROW_NONE, ROW_NO_CODE);

	CHECK(!rows->count || rows->all[rows->count - 1].word == none);
	for (size_t i = 0; i < rows->count; i++) {
		uint32_t word = rows->all[i].word;

		CHECK(!ROW_LOW(word) && !(word & (ROW_PLUMBING | ROW_EVAL_LOOP)));
		CHECK(ROW_KIND(word) != ROW_RULE || ROW_NUMBER(word) < rows->rule_count);
		CHECK(ROW_KIND(word) != ROW_PLT || ROW_N(word) < 16);
		CHECK(!i || rows->all[i - 1].address < rows->all[i].address);
	}
	for (size_t i = 0; i < rows->rule_count; i++)
		CHECK(rows->rules[i].base < 32 && rows->rules[i].ra_register < 32);
	for (size_t i = 1; i < rows->start_count; i++)
		CHECK(rows->starts[i - 1] < rows->starts[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cfi_section section = { .address = ADDRESS };
	struct cfi_rows rows = { 0 };

	if (!size)
		return 0;
	section.bytes = bytes + 1;
	section.size = size - 1;
	section.machine = bytes[0] & 1 ? EM_AARCH64 : EM_X86_64;
	if (!cfi__read(&section, &rows))
		check_rows(&rows);
	cfi_rows__free(&rows);
	return 0;
}
