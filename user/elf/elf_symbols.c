// SPDX-License-Identifier: BSD-2-Clause
/*
 * An exported symbol is looked up as the dynamic linker does it: program headers, PT_DYNAMIC,
 * DT_GNU_HASH, one chain of symbols.  That takes about ten small reads, however many symbols there
 * are, and no section headers.  Other symbols are searched for in .symtab.  Without DT_GNU_HASH,
 * .dynsym is searched in the same way.
 */
#include <string.h>

#include "elf/elf_parts.h"

/* As many names in a string table may end with the same text. */
#define NAMESAKES_MAX 64

/* Linkers aim at chains of one or two. */
#define CHAIN_MAX 4096

static bool is_defined(const Elf64_Sym *symbol)
{
	return symbol->st_shndx != SHN_UNDEF && symbol->st_value;
}

/* Whether the exported symbol INDEX is called NAME, and is defined in this file. */
static bool check_exported(const struct elf_image *image, uint32_t index, const char *name,
			   uint64_t *address)
{
	uint64_t size = elf_parts__size_of(image, &ELF_SYMBOL);
	size_t name_size = strlen(name) + 1;
	char found[ELF_NAME_BYTES_MAX];
	uint8_t bytes[sizeof(Elf64_Sym)];
	Elf64_Sym symbol;

	if (name_size > sizeof(found) ||
	    !elf_parts__read(image, image->dynamic.symbols + index * size, bytes, size))
		return false;
	elf_parts__widen(image, &ELF_SYMBOL, bytes, &symbol);
	if (!is_defined(&symbol) || symbol.st_name >= image->dynamic.strings_size ||
	    !elf_parts__read(image, image->dynamic.strings + symbol.st_name, found, name_size) ||
	    memcmp(found, name, name_size) != 0)
		return false;
	*address = symbol.st_value;
	return true;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

/* DT_GNU_HASH: this header, a Bloom filter of addresses, the buckets, and a hash per symbol from
 * number FIRST on.  The lowest bit of a hash ends its chain. */
struct gnu_hash_table {
	uint32_t buckets, first, filter_words, filter_shift;
};

static bool find_by_gnu_hash(const struct elf_image *image, const char *name, uint64_t *address)
{
	size_t word = image->narrow ? sizeof(Elf32_Addr) : sizeof(Elf64_Addr);
	uint64_t at = image->dynamic.gnu_hash, buckets, chains;
	uint32_t hash = gnu_hash(name), index, other;
	struct gnu_hash_table head;

	if (!elf_parts__read(image, at, &head, sizeof(head)) || !head.buckets)
		return false;
	buckets = at + sizeof(head) + (uint64_t)head.filter_words * word;
	chains = buckets + (uint64_t)head.buckets * sizeof(index);
	if (!elf_parts__read(image, buckets + (hash % head.buckets) * sizeof(index), &index,
			     sizeof(index)) ||
	    index < head.first)
		return false;
	for (int i = 0; i < CHAIN_MAX; i++, index++) {
		if (!elf_parts__read(image, chains + (uint64_t)(index - head.first) * sizeof(other),
				     &other, sizeof(other)))
			return false;
		if ((other | 1) == (hash | 1) && check_exported(image, index, name, address))
			return true;
		if (other & 1)
			return false;
	}
	return false;
}

/* A search of a symbol table, by the offsets of the name in the string table. */
struct symbol_search {
	const struct elf_image *image;
	const char *name;
	size_t name_size;
	size_t count;
	uint64_t names[NAMESAKES_MAX];
	uint64_t address;
};

static bool find_names(const uint8_t *bytes, size_t length, uint64_t at, void *context)
{
	struct symbol_search *search = context;
	const uint8_t *next = bytes, *end = bytes + length;

	while (search->count < NAMESAKES_MAX &&
	       (next = memmem(next, end - next, search->name, search->name_size)))
		search->names[search->count++] = at + (next++ - bytes);
	return search->count == NAMESAKES_MAX;
}

static bool find_symbol(const uint8_t *bytes, size_t length, uint64_t at, void *context)
{
	struct symbol_search *search = context;
	size_t size = elf_parts__size_of(search->image, &ELF_SYMBOL);
	Elf64_Sym symbol;

	(void)at;
	for (; length >= size; bytes += size, length -= size) {
		elf_parts__widen(search->image, &ELF_SYMBOL, bytes, &symbol);
		if (!is_defined(&symbol))
			continue;
		for (size_t i = 0; i < search->count; i++)
			if (search->names[i] == symbol.st_name) {
				search->address = symbol.st_value;
				return true;
			}
	}
	return false;
}

/* The names are in the section that the table links to. */
bool elf_symbols__find_table(const struct elf_image *image, uint32_t type,
			     struct symbol_table *table)
{
	const Elf64_Shdr *section = NULL, *strings;

	for (int i = 0; image->sections && i < image->header.e_shnum; i++)
		if (image->sections[i].sh_type == type)
			section = &image->sections[i];
	if (!section || section->sh_link >= image->header.e_shnum)
		return false;
	strings = &image->sections[section->sh_link];
	*table = (struct symbol_table){
		.symbols = section->sh_offset,
		.count = section->sh_size / elf_parts__size_of(image, &ELF_SYMBOL),
		.strings = strings->sh_offset,
		.strings_bytes = strings->sh_size,
	};
	return true;
}

/* Searches the symbol table of TYPE, in blocks. */
static bool find_in_table(struct elf_image *image, uint32_t type, const char *name,
			  uint64_t *address)
{
	struct symbol_search search = { .image = image,
					.name = name,
					.name_size = strlen(name) + 1 };
	struct symbol_table table;

	if (search.name_size > OVERLAP_BYTES || !elf_symbols__find_table(image, type, &table))
		return false;
	elf_parts__visit(image, table.strings, table.strings_bytes, find_names, &search);
	if (!search.count || !elf_parts__visit(image, table.symbols,
					       table.count * elf_parts__size_of(image, &ELF_SYMBOL),
					       find_symbol, &search))
		return false;
	*address = search.address;
	return true;
}

bool elf_image__exported_symbol(struct elf_image *image, const char *name, uint64_t *address)
{
	if (image->dynamic.symbols && image->dynamic.strings && image->dynamic.gnu_hash)
		return find_by_gnu_hash(image, name, address);
	return find_in_table(image, SHT_DYNSYM, name, address);
}

bool elf_image__symbol(struct elf_image *image, const char *name, uint64_t *address)
{
	size_t i = 0;
	bool found;

	while (i < image->known_count && strcmp(image->known[i].name, name) != 0)
		i++;
	if (i < image->known_count) {
		if (image->known[i].found)
			*address = image->known[i].address;
		return image->known[i].found;
	}
	found = elf_image__exported_symbol(image, name, address) ||
		find_in_table(image, SHT_SYMTAB, name, address);
	/* A part that was not read may have it. */
	if (!image->budget->exceeded && i < ELF_KNOWN_SYMBOLS_MAX &&
	    strlen(name) < ELF_NAME_BYTES_MAX) {
		strcpy(image->known[i].name, name);
		image->known[i].found = found;
		image->known[i].address = found ? *address : 0;
		image->known_count++;
	}
	return found;
}
