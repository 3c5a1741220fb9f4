// SPDX-License-Identifier: BSD-2-Clause
/*
 * Up to 3.6 the list of interpreters begins in a static variable, interp_head,
 * which a stripped file does not name.  PyInterpreterState_Head is named in each,
 * and does nothing but return that variable.  What compilers make of it is one
 * load from an address relative to the code, a return, and perhaps what makes and
 * removes a stack frame or marks where calls may lead to.  Code that does anything
 * else is not understood, and says nothing.
 */
#include <errno.h>

#include "architecture/architecture.h"
#include "python/interpreter_list.h"
#include "target/target_memory.h"

/* What the longest of these functions takes, rounded up. */
#define CODE_BYTES 32

int interpreter_list__find(pid_t pid, struct elf_image *image, uint64_t bias, uint64_t *address)
{
	uint8_t code[CODE_BYTES];
	uint64_t symbol;
	int error;

	if (elf_image__symbol(image, "interp_head", &symbol)) {
		*address = symbol + bias;
		return 0;
	}
	if (!elf_image__symbol(image, "PyInterpreterState_Head", &symbol))
		return -ENODATA;
	error = target_memory__read(pid, symbol + bias, code, sizeof(code));
	if (error)
		return error;
	return ARCHITECTURE.decode_variable(code, sizeof(code), symbol + bias, address) ? 0
											: -ENODATA;
}
