// SPDX-License-Identifier: BSD-2-Clause
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "architecture/architecture.h"
#include "base/xalloc.h"
#include "elf/elf_parts.h"
#include "reading/target_files.h"

#define SECTION_NAMES_BYTES_MAX (16 * 1024 * 1024)

/* The kernel starts no program with more. */
#define SEGMENTS_MAX 1170

#define DYNAMIC_ENTRIES_MAX 1024

/* Compilers and linkers write about five. */
#define NOTES_MAX 64

/* The class matters, too: an x32 file is a 32-bit file for x86-64. */
bool elf_image__is_native(const struct elf_image *image)
{
	return !image->narrow && image->header.e_machine == ARCHITECTURE.machine;
}

/* Reads and checks the header.  A 32-bit header is shorter, but no file with a segment is shorter
 * than a 64-bit header. */
static bool read_header(struct elf_image *image)
{
	Elf64_Ehdr *header = &image->header;
	uint8_t bytes[sizeof(*header)];

	if (!elf_parts__read(image, 0, bytes, sizeof(bytes)) ||
	    memcmp(bytes, ELFMAG, SELFMAG) != 0 || bytes[EI_DATA] != ELFDATA2LSB ||
	    (bytes[EI_CLASS] != ELFCLASS64 && bytes[EI_CLASS] != ELFCLASS32))
		return false;
	image->narrow = bytes[EI_CLASS] == ELFCLASS32;
	elf_parts__widen(image, &ELF_HEADER, bytes, header);
	return header->e_phnum <= SEGMENTS_MAX &&
	       header->e_phentsize == elf_parts__size_of(image, &ELF_SEGMENT);
}

/* The segment whose part of the file holds ADDRESS, or NULL. */
static const Elf64_Phdr *find_segment(const struct elf_image *image, uint64_t address)
{
	for (int i = 0; i < image->header.e_phnum; i++) {
		const Elf64_Phdr *segment = &image->segments[i];

		if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
		    address - segment->p_vaddr < segment->p_filesz)
			return segment;
	}
	return NULL;
}

/* The file offset of ADDRESS; 0 if it is not in the file. */
static uint64_t file_offset_of(const struct elf_image *image, uint64_t address)
{
	const Elf64_Phdr *segment = find_segment(image, address);

	return segment ? segment->p_offset + (address - segment->p_vaddr) : 0;
}

static void take_dynamic(struct elf_image *image, const Elf64_Dyn *entry)
{
	switch (entry->d_tag) {
	case DT_SYMTAB:
		image->dynamic.symbols = file_offset_of(image, entry->d_un.d_ptr);
		break;
	case DT_STRTAB:
		image->dynamic.strings = file_offset_of(image, entry->d_un.d_ptr);
		break;
	case DT_STRSZ:
		image->dynamic.strings_size = entry->d_un.d_val;
		break;
	case DT_GNU_HASH:
		image->dynamic.gnu_hash = file_offset_of(image, entry->d_un.d_ptr);
		break;
	case DT_DEBUG:
		image->dynamic.debug = true;
		break;
	}
}

static void load_dynamic(struct elf_image *image)
{
	for (int i = 0; i < image->header.e_phnum; i++) {
		const Elf64_Phdr *segment = &image->segments[i];
		uint64_t count = segment->p_filesz / elf_parts__size_of(image, &ELF_DYNAMIC);
		Elf64_Dyn *entries;

		if (segment->p_type != PT_DYNAMIC)
			continue;
		if (count > DYNAMIC_ENTRIES_MAX)
			count = DYNAMIC_ENTRIES_MAX;
		entries = elf_parts__load_table(image, &ELF_DYNAMIC, segment->p_offset, count);
		for (uint64_t at = 0; entries && at < count; at++) {
			if (entries[at].d_tag == DT_NULL)
				break;
			take_dynamic(image, &entries[at]);
		}
		free(entries);
		return;
	}
}

struct elf_image *elf_image__open(int fd, struct elf_budget *budget)
{
	struct elf_image *image = xcalloc(1, sizeof(*image));
	Elf64_Ehdr *header = &image->header;
	int64_t size = target_file__size(budget->pid, fd);

	image->fd = fd;
	elf_image__set_budget(image, budget);
	image->size = size > 0 ? size : 0;
	if (!read_header(image))
		goto cleanup;
	image->segments =
		elf_parts__load_table(image, &ELF_SEGMENT, header->e_phoff, header->e_phnum);
	if (!image->segments)
		goto cleanup;
	load_dynamic(image);
	if (header->e_shentsize == elf_parts__size_of(image, &ELF_SECTION))
		image->sections = elf_parts__load_table(image, &ELF_SECTION, header->e_shoff,
							header->e_shnum);
	return image;
cleanup:
	elf_image__close(image);
	return NULL;
}

void elf_image__set_budget(struct elf_image *image, struct elf_budget *budget)
{
	image->budget = budget;
	image->pid = budget->pid;
}

void elf_image__close(struct elf_image *image)
{
	pid_t pid;
	int fd;

	if (!image)
		return;
	pid = image->pid;
	fd = image->fd;
	free(image->sections);
	free(image->segments);
	free(image);
	target_file__close(pid, fd);
}

bool elf_image__is_program(const struct elf_image *image)
{
	return image->header.e_type == ET_EXEC || image->dynamic.debug;
}

bool elf_image__section(struct elf_image *image, const char *name, uint64_t *address)
{
	const Elf64_Ehdr *header = &image->header;
	const Elf64_Shdr *sections = image->sections, *names;
	size_t name_size = strlen(name) + 1;
	bool found = false;
	char *text;

	if (!sections || header->e_shstrndx >= header->e_shnum)
		return false;
	names = &sections[header->e_shstrndx];
	text = elf_parts__load(image, names->sh_offset, names->sh_size, SECTION_NAMES_BYTES_MAX);
	for (int i = 0; text && !found && i < header->e_shnum; i++) {
		found = sections[i].sh_addr && sections[i].sh_name < names->sh_size &&
			name_size <= names->sh_size - sections[i].sh_name &&
			memcmp(text + sections[i].sh_name, name, name_size) == 0;
		if (found)
			*address = sections[i].sh_addr;
	}
	free(text);
	return found;
}

bool elf_segments__bias(const Elf64_Phdr *segments, size_t count, uint64_t start,
			uint64_t file_offset, bool executable, uint64_t *bias)
{
	uint64_t page_mask = ~(uint64_t)(sysconf(_SC_PAGESIZE) - 1);
	uint32_t flag = executable ? PF_X : PF_W;
	bool found = false;

	for (size_t i = 0; i < count; i++) {
		const Elf64_Phdr *segment = &segments[i];
		uint64_t from = segment->p_offset & page_mask;
		uint64_t length = segment->p_offset - from + segment->p_filesz;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & flag) ||
		    file_offset < from || file_offset - from >= length)
			continue;
		/* If one segment ends and the next begins in this page, the mapping is the next
		 * one's. */
		*bias = start - file_offset + segment->p_offset - segment->p_vaddr;
		found = true;
	}
	return found;
}

bool elf_image__first_bytes(const struct elf_image *image, void *bytes, size_t size,
			    uint64_t *address)
{
	for (int i = 0; i < image->header.e_phnum; i++) {
		const Elf64_Phdr *segment = &image->segments[i];

		if (segment->p_type != PT_LOAD || segment->p_offset || segment->p_filesz < size)
			continue;
		*address = segment->p_vaddr;
		return elf_parts__read(image, 0, bytes, size);
	}
	return false;
}

bool elf_image__initial_bytes(const struct elf_image *image, uint64_t address, void *bytes,
			      size_t length)
{
	uint64_t offset = file_offset_of(image, address);

	return offset && elf_parts__read(image, offset, bytes, length);
}

/* The size of the section that begins at ADDRESS, in bytes; 0 if there is none. */
static uint64_t section_size(const struct elf_image *image, uint64_t address)
{
	for (int i = 0; image->sections && i < image->header.e_shnum; i++) {
		const Elf64_Shdr *section = &image->sections[i];

		if (section->sh_addr == address && section->sh_type != SHT_NOBITS &&
		    section->sh_size)
			return section->sh_size;
	}
	return 0;
}

void *elf_image__load(struct elf_image *image, uint64_t address, uint64_t most, size_t *size)
{
	const Elf64_Phdr *segment = find_segment(image, address);
	uint64_t into, left;

	if (!segment)
		return NULL;
	into = address - segment->p_vaddr;
	left = segment->p_filesz - into;
	*size = section_size(image, address);
	if (!*size)
		*size = left < most ? left : most;
	return *size <= left ? elf_parts__load(image, segment->p_offset + into, *size, most) : NULL;
}

bool elf_image__search(struct elf_image *image, bool writable, elf_image__visit visit,
		       void *context)
{
	bool stop = false;

	for (int i = 0; !stop && i < image->header.e_phnum; i++) {
		const Elf64_Phdr *segment = &image->segments[i];

		if (segment->p_type == PT_LOAD && writable == !!(segment->p_flags & PF_W))
			stop = elf_parts__visit(image, segment->p_offset, segment->p_filesz, visit,
						context);
	}
	return stop;
}

/* Formats the build ID of LENGTH bytes at OFFSET. */
static bool take_build_id(const struct elf_image *image, uint64_t offset, uint32_t length,
			  char hex[ELF_BUILD_ID_HEX_BYTES])
{
	uint8_t bytes[(ELF_BUILD_ID_HEX_BYTES - 1) / 2];

	if (!length || length > sizeof(bytes) || !elf_parts__read(image, offset, bytes, length))
		return false;
	for (uint32_t i = 0; i < length; i++)
		sprintf(hex + 2 * i, "%02x", bytes[i]);
	return true;
}

/* Looks for a build ID in SEGMENT.  *NOTES is how many notes may still be read. */
static bool find_build_id(const struct elf_image *image, const Elf64_Phdr *segment, int *notes,
			  char hex[ELF_BUILD_ID_HEX_BYTES])
{
	uint64_t mask = segment->p_align == 8 ? 7 : 3, at = 0;
	Elf64_Nhdr note;
	char name[sizeof(ELF_NOTE_GNU)];

	for (; at < segment->p_filesz && *notes; (*notes)--) {
		uint64_t start = segment->p_offset + at, text;

		if (!elf_parts__read(image, start, &note, sizeof(note)))
			return false;
		text = (sizeof(note) + note.n_namesz + mask) & ~mask;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(name) &&
		    elf_parts__read(image, start + sizeof(note), name, sizeof(name)) &&
		    memcmp(name, ELF_NOTE_GNU, sizeof(name)) == 0)
			return take_build_id(image, start + text, note.n_descsz, hex);
		at += (text + note.n_descsz + mask) & ~mask;
	}
	return false;
}

bool elf_image__build_id(const struct elf_image *image, char hex[ELF_BUILD_ID_HEX_BYTES])
{
	int notes = NOTES_MAX;

	for (int i = 0; i < image->header.e_phnum; i++)
		if (image->segments[i].p_type == PT_NOTE &&
		    find_build_id(image, &image->segments[i], &notes, hex))
			return true;
	return false;
}
