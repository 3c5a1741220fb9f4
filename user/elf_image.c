// SPDX-License-Identifier: BSD-2-Clause
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf_image.h"
#include "xalloc.h"

/* The code and constants of the largest program that embeds Python are smaller. */
#define SEGMENT_BYTES_MAX (256 * 1024 * 1024)

#define PAGE_MASK (~(uint64_t)4095)

struct elf_image {
	int fd;
	Elf *elf;
};

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#endif

struct elf_image *elf_image__open(int fd)
{
	struct elf_image *image = xcalloc(1, sizeof(*image));
	GElf_Ehdr header;

	elf_version(EV_CURRENT);
	image->fd = fd;
	/* Not mapped: a file that is cut while it is read must not kill us. */
	image->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (image->elf && elf_kind(image->elf) == ELF_K_ELF &&
	    gelf_getclass(image->elf) == ELFCLASS64 && gelf_getehdr(image->elf, &header) &&
	    header.e_machine == MACHINE)
		return image;
	elf_image__close(image);
	return NULL;
}

void elf_image__close(struct elf_image *image)
{
	if (!image)
		return;
	elf_end(image->elf);
	close(image->fd);
	free(image);
}

static bool find_in_section(struct elf_image *image, Elf_Scn *section, const GElf_Shdr *header,
			    const char *name, uint64_t *address)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;
	const char *found;

	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
		if (symbol.st_shndx == SHN_UNDEF || !symbol.st_value)
			continue;
		found = elf_strptr(image->elf, header->sh_link, symbol.st_name);
		if (found && strcmp(found, name) == 0) {
			*address = symbol.st_value;
			return true;
		}
	}
	return false;
}

static bool find_in_sections(struct elf_image *image, uint32_t type, const char *name,
			     uint64_t *address)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(image->elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == type &&
		    find_in_section(image, section, &header, name, address))
			return true;
	return false;
}

bool elf_image__symbol(struct elf_image *image, const char *name, uint64_t *address)
{
	return find_in_sections(image, SHT_DYNSYM, name, address) ||
	       find_in_sections(image, SHT_SYMTAB, name, address);
}

/* The next segment to be loaded, from *INDEX on. */
static bool next_load(struct elf_image *image, size_t *index, GElf_Phdr *header)
{
	size_t count;

	if (elf_getphdrnum(image->elf, &count))
		return false;
	while (*index < count)
		if (gelf_getphdr(image->elf, (*index)++, header) && header->p_type == PT_LOAD)
			return true;
	return false;
}

bool elf_image__bias(struct elf_image *image, uint64_t start, uint64_t file_offset, uint64_t *bias)
{
	size_t index = 0;
	GElf_Phdr header;

	while (next_load(image, &index, &header)) {
		uint64_t from = header.p_offset & PAGE_MASK;

		if (!(header.p_flags & PF_X) || file_offset < from ||
		    file_offset >= header.p_offset + header.p_filesz)
			continue;
		*bias = start - ((header.p_vaddr & PAGE_MASK) + (file_offset - from));
		return true;
	}
	return false;
}

bool elf_image__search_constants(struct elf_image *image,
				 bool (*visit)(const uint8_t *bytes, size_t length, void *context),
				 void *context)
{
	size_t index = 0;
	bool stop = false;
	GElf_Phdr header;

	while (!stop && next_load(image, &index, &header)) {
		uint8_t *bytes;
		ssize_t got;

		if (header.p_flags & PF_W || header.p_filesz > SEGMENT_BYTES_MAX)
			continue;
		bytes = xmalloc(header.p_filesz);
		got = pread(image->fd, bytes, header.p_filesz, header.p_offset);
		if (got > 0)
			stop = visit(bytes, got, context);
		free(bytes);
	}
	return stop;
}
