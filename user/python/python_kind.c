// SPDX-License-Identifier: BSD-2-Clause
#include "architecture/architecture.h"
#include "python/python_kind.h"
#include "python/python_version.h"

static const struct python_kind pypy = { "PyPy", "CPython" };
static const struct python_kind narrow = { "a 32-bit Python", "64-bit Python" };

/* What an emulator runs, which maps it as the kernel maps a program. */
static const struct {
	uint16_t machine;
	struct python_kind kind;
} foreign[] = {
	{ EM_X86_64, { "an x86-64 Python", NULL } }, { EM_AARCH64, { "an aarch64 Python", NULL } },
	{ EM_386, { "a 32-bit x86 Python", NULL } }, { EM_ARM, { "a 32-bit Arm Python", NULL } },
	{ EM_RISCV, { "a RISC-V Python", NULL } },   { EM_PPC64, { "a POWER Python", NULL } },
	{ EM_MIPS, { "a MIPS Python", NULL } },
};

static const struct python_kind other = { "another architecture's Python", NULL };

const struct python_kind *python_kind__of(struct elf_image *image)
{
	uint16_t machine = elf_image__machine(image);

	if (python_version__is_pypy(image))
		return &pypy;
	if (elf_image__is_native(image))
		return NULL;
	if (machine == ARCHITECTURE.machine || machine == ARCHITECTURE.narrow_machine)
		return &narrow;
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		if (foreign[i].machine == machine)
			return &foreign[i].kind;
	return &other;
}

const char *python_kind__supported(const struct python_kind *kind)
{
	return kind->supported ? kind->supported : ARCHITECTURE.python;
}
