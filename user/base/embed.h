/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that are embedded in the program. */
#ifndef PYBPFPROF_EMBED_H
#define PYBPFPROF_EMBED_H

#include <stdint.h>

struct embedded {
	const char *text;
	const uint64_t *size;
};

/* Embeds the file PATH as SYMBOL_text, and its size as SYMBOL_size. */
#define EMBED(symbol, path)                                                                 \
	extern const char symbol##_text[] __attribute__((visibility("hidden")));            \
	extern const uint64_t symbol##_size __attribute__((visibility("hidden")));          \
	__asm__(".pushsection .rodata\n" #symbol "_text:\n\t.incbin \"" path "\"\n" #symbol \
		"_end:\n\t.balign 8\n" #symbol "_size:\n\t.quad " #symbol "_end - " #symbol \
		"_text\n\t.popsection\n")

#endif
