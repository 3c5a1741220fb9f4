// SPDX-License-Identifier: BSD-2-Clause
/*
 * To be preloaded: changes the mapping of a file's code. REMAP_FILE is a part of the
 * file's name, or "" for the program. REMAP=anonymous replaces the code by a copy without
 * a file, as programs do to get huge pages. REMAP=split changes the protection of its
 * first and of a middle page, which splits the mapping.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096UL

static void fail(const char *what)
{
	perror(what);
	_exit(1);
}

static void replace(char *start, size_t length)
{
	char *copy = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		fail("mmap");
	memcpy(copy, start, length);
	if (mprotect(copy, length, PROT_READ | PROT_EXEC) ||
	    mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, start) == MAP_FAILED)
		fail("mremap");
}

static void split(char *start, size_t length)
{
	char *middle = start + length / 2 / PAGE * PAGE;

	if (mprotect(start, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) ||
	    mprotect(middle, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
		fail("mprotect");
}

static int change(struct dl_phdr_info *object, size_t size, void *context)
{
	const char *part = getenv("REMAP_FILE"), *how = getenv("REMAP");

	(void)size;
	(void)context;
	if (*part ? !strstr(object->dlpi_name, part) : *object->dlpi_name)
		return 0;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uintptr_t start = (object->dlpi_addr + segment->p_vaddr) & ~(PAGE - 1);
		uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_memsz;
		size_t length = ((end + PAGE - 1) & ~(PAGE - 1)) - start;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		(strcmp(how, "split") ? replace : split)((char *)start, length);
	}
	return 1;
}

__attribute__((constructor)) static void start(void)
{
	if (!dl_iterate_phdr(change, NULL))
		fail("REMAP_FILE");
}
