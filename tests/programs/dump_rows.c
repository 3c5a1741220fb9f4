// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the unwind rows of an ELF file, one per line: the address, and the rule from there on.
 * A rule is the CFA and the places of the caller's frame pointer and of the return address, with
 * DWARF's register numbers; or `plt N`, `none`, `unsupported`, `end` or `signal`.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cfi.h"

#define BUDGET_BYTES (1ULL << 30)

static void print_rule(const struct unwind_rule *rule)
{
	if (rule->flags & RULE_DEREF)
		printf("cfa=*(%u%+d)%+d", rule->base, rule->offset, rule->added);
	else
		printf("cfa=%u%+d", rule->base, rule->offset);
	if (rule->flags & RULE_FP_AT_CFA)
		printf(" fp=cfa%+d", rule->fp_offset);
	else if (rule->flags & RULE_FP_AT_FP)
		printf(" fp=fp%+d", rule->fp_offset);
	else
		printf(" fp=%s", rule->flags & RULE_FP_LOST ? "lost" : "same");
	if (rule->flags & RULE_RA_IN_REGISTER)
		printf(" ra=r%u\n", rule->ra_register);
	else
		printf(" ra=cfa%+d\n", rule->ra_offset);
}

/* Expands a word of the short kinds to a rule. */
static struct unwind_rule widen(uint16_t machine, uint32_t word)
{
	bool is_arm64 = machine == EM_AARCH64, is_from_fp = ROW_KIND(word) == ROW_FP;
	int32_t saved = -8 * (int32_t)ROW_M(word);
	struct unwind_rule rule = { .offset = 8 * ROW_N(word), .ra_offset = -8 };

	rule.base = is_arm64 ? (is_from_fp ? 29 : 31) : is_from_fp ? 6 : 7;
	if (ROW_KIND(word) == ROW_RA) {
		rule.ra_offset = saved;
		return rule;
	}
	if (ROW_M(word)) {
		rule.flags = RULE_FP_AT_CFA;
		rule.fp_offset = saved;
		if (is_arm64)
			rule.ra_offset = saved + 8;
	} else if (is_arm64) {
		rule.flags = RULE_RA_IN_REGISTER;
		rule.ra_register = 30;
	}
	return rule;
}

static void print_word(uint16_t machine, const struct cfi_rows *rows, uint32_t word)
{
	struct unwind_rule rule;

	switch (ROW_KIND(word)) {
	case ROW_RULE:
		print_rule(&rows->rules[ROW_NUMBER(word)]);
		break;
	case ROW_PLT:
		printf("plt %u\n", ROW_N(word));
		break;
	case ROW_NONE:
		puts(ROW_NUMBER(word) == ROW_NO_CODE ? "none" : "unsupported");
		break;
	case ROW_END:
		puts("end");
		break;
	case ROW_SIGNAL:
		puts("signal");
		break;
	default:
		rule = widen(machine, word);
		print_rule(&rule);
	}
}

int main(int argc, char **argv)
{
	struct elf_budget budget = { .bytes = BUDGET_BYTES };
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, error = 1;
	struct elf_image *image = fd >= 0 ? elf_image__open(fd, &budget) : NULL;
	struct cfi_rows rows = { 0 };
	struct cfi_section section;
	void *bytes = NULL;

	if (image)
		bytes = cfi__load(image, &section);
	if (bytes)
		error = cfi__read(&section, &rows);
	for (size_t i = 0; !error && i < rows.count; i++) {
		printf("%llx ", (unsigned long long)rows.all[i].address);
		print_word(section.machine, &rows, rows.all[i].word);
	}
	cfi_rows__free(&rows);
	free(bytes);
	elf_image__close(image);
	return error ? 1 : 0;
}
