// SPDX-License-Identifier: BSD-2-Clause
/*
 * A target chooses its files, and may cut or change them while they are read.  So
 * nothing is mapped, every number of the file is an offset that read_at() checks
 * against the file's size, every size has a bound of ours, and every chain ends.
 * What may be long is read in blocks, and from a budget that all files share.
 *
 * A symbol is looked up as the dynamic linker does it: program headers, PT_DYNAMIC,
 * the hash table, one chain of symbols.  That takes some ten small reads, whatever
 * the number of symbols, and needs no section headers.  Only what is not exported
 * is searched for in .symtab.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "architecture/architecture.h"
#include "base/hash_table.h"
#include "base/xalloc.h"
#include "target/elf_image.h"
#include "target/target_files.h"

/* Both multiples of a symbol's; what is looked for is not longer than the second. */
#define READ_BYTES    (4096 * sizeof(Elf64_Sym))
#define OVERLAP_BYTES (4 * sizeof(Elf64_Sym))

/* Of the names in a string table, so many may end alike. */
#define NAMESAKES_MAX 64

#define SECTION_NAMES_BYTES_MAX (16 * 1024 * 1024)

/* The kernel starts no program with more; sections have no such bound. */
#define SEGMENTS_MAX 1170

#define DYNAMIC_ENTRIES_MAX 1024

/* Linkers aim at chains of one or two. */
#define CHAIN_MAX 4096

#define NAME_BYTES_MAX 64

/* Where PT_DYNAMIC says that things are, as offsets in the file; 0: nowhere. */
struct dynamic {
	uint64_t symbols, strings, strings_size;
	uint64_t hash, gnu_hash;
};

/* A symbol that was looked for. */
struct known_symbol {
	char name[NAME_BYTES_MAX]; /* key */
	uint64_t address;
	bool found;
	UT_hash_handle hh;
};

struct elf_image {
	int fd;
	pid_t pid; /* on whose account it is read */
	uint64_t size;
	struct elf_budget *budget;
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	Elf64_Shdr *sections; /* NULL where there are none */
	struct dynamic dynamic;
	struct known_symbol *symbols;
	uint8_t *room; /* for what is being read: who waits for that may be left behind */
	uint32_t note;
};

static bool read_at(const struct elf_image *image, uint64_t offset, void *buffer, uint64_t length)
{
	if (offset > image->size || length > image->size - offset)
		return false;
	return target_file__read(image->pid, image->fd, buffer, length, offset);
}

/* Whether the file has the part, and it may be read. */
static bool spend(const struct elf_image *image, uint64_t offset, uint64_t length)
{
	if (!length || offset > image->size || length > image->size - offset)
		return false;
	if (length > image->budget->bytes) {
		image->budget->exceeded = true;
		return false;
	}
	image->budget->bytes -= length;
	return true;
}

/* IMAGE's until take_room() or free_room(). */
static uint8_t *make_room(struct elf_image *image, size_t size)
{
	image->room = xcalloc(1, size);
	return image->room;
}

static void *take_room(struct elf_image *image)
{
	void *room = image->room;

	image->room = NULL;
	return room;
}

static void free_room(struct elf_image *image)
{
	free(take_room(image));
}

/* A part of the file, or NULL; the caller frees. */
static void *load(struct elf_image *image, uint64_t offset, uint64_t length, uint64_t most)
{
	if (length > most || !spend(image, offset, length))
		return NULL;
	if (read_at(image, offset, make_room(image, length), length))
		return take_room(image);
	free_room(image);
	return NULL;
}

/* Calls VISIT with one block of a part of the file after another until it returns true; returns
 * whether it did.  A block begins with the end of the one before.  AT is its place in the part;
 * before its bytes is the one that is there in the file, or 0 where the part begins. */
static bool visit_blocks(struct elf_image *image, uint64_t offset, uint64_t length,
			 bool (*visit)(const uint8_t *bytes, size_t length, uint64_t at,
				       void *context),
			 void *context)
{
	uint8_t *block;
	bool stop = false;
	uint64_t at = 0;

	if (!spend(image, offset, length))
		return false;
	block = make_room(image, 1 + READ_BYTES) + 1;
	while (!stop) {
		size_t size = length - at < READ_BYTES ? length - at : READ_BYTES;

		if (!read_at(image, offset + at, block, size))
			break;
		stop = visit(block, size, at, context);
		if (at + size == length)
			break;
		at += size - OVERLAP_BYTES;
		block[-1] = block[size - OVERLAP_BYTES - 1];
	}
	free_room(image);
	return stop;
}

static bool check_header(const Elf64_Ehdr *header)
{
	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
	       header->e_machine == ARCHITECTURE.machine && header->e_phnum <= SEGMENTS_MAX &&
	       header->e_phentsize == sizeof(Elf64_Phdr);
}

/* The offset in the file of what it gives ADDRESS; 0 where that is not in the file. */
static uint64_t file_offset_of(const struct elf_image *image, uint64_t address)
{
	for (int i = 0; i < image->header.e_phnum; i++) {
		const Elf64_Phdr *segment = &image->segments[i];

		if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
		    address - segment->p_vaddr < segment->p_filesz)
			return segment->p_offset + (address - segment->p_vaddr);
	}
	return 0;
}

static void take_dynamic(struct elf_image *image, const Elf64_Dyn *entry)
{
	struct dynamic *dynamic = &image->dynamic;

	switch (entry->d_tag) {
	case DT_SYMTAB:
		dynamic->symbols = file_offset_of(image, entry->d_un.d_ptr);
		break;
	case DT_STRTAB:
		dynamic->strings = file_offset_of(image, entry->d_un.d_ptr);
		break;
	case DT_STRSZ:
		dynamic->strings_size = entry->d_un.d_val;
		break;
	case DT_HASH:
		dynamic->hash = file_offset_of(image, entry->d_un.d_ptr);
		break;
	case DT_GNU_HASH:
		dynamic->gnu_hash = file_offset_of(image, entry->d_un.d_ptr);
		break;
	}
}

static void load_dynamic(struct elf_image *image)
{
	const uint64_t most = DYNAMIC_ENTRIES_MAX * sizeof(Elf64_Dyn);

	for (int i = 0; i < image->header.e_phnum; i++) {
		const Elf64_Phdr *segment = &image->segments[i];
		uint64_t length = segment->p_filesz < most ? segment->p_filesz : most;
		Elf64_Dyn *entries;

		if (segment->p_type != PT_DYNAMIC)
			continue;
		entries = load(image, segment->p_offset, length, most);
		for (uint64_t at = 0; entries && at < length / sizeof(*entries); at++) {
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
	if (!read_at(image, 0, header, sizeof(*header)) || !check_header(header))
		goto cleanup;
	image->segments = load(image, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr),
			       SEGMENTS_MAX * sizeof(Elf64_Phdr));
	if (!image->segments)
		goto cleanup;
	load_dynamic(image);
	if (header->e_shentsize == sizeof(Elf64_Shdr))
		image->sections = load(image, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr),
				       UINT16_MAX * sizeof(Elf64_Shdr));
	return image;
cleanup:
	elf_image__close(image);
	return NULL;
}

static void forget_symbols(struct elf_image *image)
{
	struct known_symbol *symbol, *next;

	HASH_ITER (hh, image->symbols, symbol, next) {
		HASH_DEL(image->symbols, symbol);
		free(symbol);
	}
}

void elf_image__set_budget(struct elf_image *image, struct elf_budget *budget)
{
	image->budget = budget;
	image->pid = budget->pid;
}

const struct elf_budget *elf_image__budget(const struct elf_image *image)
{
	return image->budget;
}

void elf_image__close(struct elf_image *image)
{
	pid_t pid;
	int fd;

	if (!image)
		return;
	pid = image->pid;
	fd = image->fd;
	forget_symbols(image);
	free(image->sections);
	free(image->segments);
	free_room(image);
	free(image);
	target_file__close(pid, fd);
}

static bool is_defined(const Elf64_Sym *symbol)
{
	return symbol->st_shndx != SHN_UNDEF && symbol->st_value;
}

/* Whether the exported symbol INDEX is NAME, and defined here. */
static bool check_exported(const struct elf_image *image, uint32_t index, const char *name,
			   uint64_t *address)
{
	const struct dynamic *dynamic = &image->dynamic;
	size_t name_size = strlen(name) + 1;
	char found[NAME_BYTES_MAX];
	Elf64_Sym symbol;

	if (name_size > sizeof(found) ||
	    !read_at(image, dynamic->symbols + index * sizeof(symbol), &symbol, sizeof(symbol)) ||
	    !is_defined(&symbol) || symbol.st_name >= dynamic->strings_size ||
	    !read_at(image, dynamic->strings + symbol.st_name, found, name_size) ||
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

/* DT_GNU_HASH: four numbers, a Bloom filter of 64-bit words, the buckets, and for each symbol from
 * the first hashed one on its hash, whose lowest bit says that its chain ends. */
static bool find_by_gnu_hash(const struct elf_image *image, const char *name, uint64_t *address)
{
	struct {
		uint32_t buckets, first, filter_words, filter_shift;
	} head;
	uint32_t hash = gnu_hash(name), index, other;
	uint64_t at = image->dynamic.gnu_hash, buckets, chains;

	if (!read_at(image, at, &head, sizeof(head)) || !head.buckets)
		return false;
	buckets = at + sizeof(head) + (uint64_t)head.filter_words * sizeof(uint64_t);
	chains = buckets + (uint64_t)head.buckets * sizeof(uint32_t);
	if (!read_at(image, buckets + (hash % head.buckets) * sizeof(index), &index,
		     sizeof(index)) ||
	    index < head.first)
		return false;
	for (int i = 0; i < CHAIN_MAX; i++, index++) {
		if (!read_at(image, chains + (uint64_t)(index - head.first) * sizeof(other), &other,
			     sizeof(other)))
			return false;
		if ((other | 1) == (hash | 1) && check_exported(image, index, name, address))
			return true;
		if (other & 1)
			return false;
	}
	return false;
}

static uint32_t system_v_hash(const char *name)
{
	uint32_t hash = 0, high;

	for (; *name; name++) {
		hash = (hash << 4) + (uint8_t)*name;
		high = hash & 0xf0000000;
		hash = (hash ^ high >> 24) & ~high;
	}
	return hash;
}

/* DT_HASH: two numbers, the buckets, and for each symbol the next one of its chain. */
static bool find_by_system_v_hash(const struct elf_image *image, const char *name,
				  uint64_t *address)
{
	struct {
		uint32_t buckets, symbols;
	} head;
	uint64_t at = image->dynamic.hash + sizeof(head), chains;
	uint32_t index;

	if (!read_at(image, image->dynamic.hash, &head, sizeof(head)) || !head.buckets)
		return false;
	chains = at + (uint64_t)head.buckets * sizeof(index);
	at += (system_v_hash(name) % head.buckets) * sizeof(index);
	for (int i = 0; i < CHAIN_MAX; i++) {
		if (!read_at(image, at, &index, sizeof(index)) || !index)
			return false;
		if (check_exported(image, index, name, address))
			return true;
		at = chains + (uint64_t)index * sizeof(index);
	}
	return false;
}

bool elf_image__exported_symbol(struct elf_image *image, const char *name, uint64_t *address)
{
	const struct dynamic *dynamic = &image->dynamic;

	if (!dynamic->symbols || !dynamic->strings)
		return false;
	if (dynamic->gnu_hash)
		return find_by_gnu_hash(image, name, address);
	return dynamic->hash && find_by_system_v_hash(image, name, address);
}

/* A symbol that is looked for in .symtab, by where .strtab has its name. */
struct symbol_search {
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
	Elf64_Sym symbol;

	(void)at;
	for (; length >= sizeof(symbol); bytes += sizeof(symbol), length -= sizeof(symbol)) {
		memcpy(&symbol, bytes, sizeof(symbol));
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

/* In .symtab, whose names are in the section that it is linked to. */
static bool find_in_table(struct elf_image *image, const char *name, uint64_t *address)
{
	struct symbol_search search = { .name = name, .name_size = strlen(name) + 1 };
	const Elf64_Shdr *table = NULL, *strings;

	for (int i = 0; image->sections && i < image->header.e_shnum; i++)
		if (image->sections[i].sh_type == SHT_SYMTAB)
			table = &image->sections[i];
	if (!table || table->sh_link >= image->header.e_shnum || search.name_size > OVERLAP_BYTES)
		return false;
	strings = &image->sections[table->sh_link];
	visit_blocks(image, strings->sh_offset, strings->sh_size, find_names, &search);
	if (!search.count ||
	    !visit_blocks(image, table->sh_offset, table->sh_size, find_symbol, &search))
		return false;
	*address = search.address;
	return true;
}

/* What is looked for is few, and none of a target's choice. */
static void remember_symbol(struct elf_image *image, const char *name, bool found, uint64_t address)
{
	struct known_symbol *symbol = xcalloc(1, sizeof(*symbol));

	strncpy(symbol->name, name, sizeof(symbol->name) - 1);
	symbol->found = found;
	symbol->address = address;
	HASH_ADD_STR(image->symbols, name, symbol);
}

uint32_t *elf_image__note(struct elf_image *image)
{
	return &image->note;
}

bool elf_image__symbol(struct elf_image *image, const char *name, uint64_t *address)
{
	struct known_symbol *known;
	bool found;

	HASH_FIND_STR(image->symbols, name, known);
	if (known) {
		if (known->found)
			*address = known->address;
		return known->found;
	}
	found = elf_image__exported_symbol(image, name, address) ||
		find_in_table(image, name, address);
	/* What was left out may be it. */
	if (!image->budget->exceeded && strlen(name) < NAME_BYTES_MAX)
		remember_symbol(image, name, found, found ? *address : 0);
	return found;
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
	text = load(image, names->sh_offset, names->sh_size, SECTION_NAMES_BYTES_MAX);
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

bool elf_image__bias(const struct elf_image *image, uint64_t start, uint64_t file_offset,
		     bool executable, uint64_t *bias)
{
	uint64_t page_mask = ~(uint64_t)(sysconf(_SC_PAGESIZE) - 1);
	uint32_t flag = executable ? PF_X : PF_W;
	bool found = false;

	for (int i = 0; i < image->header.e_phnum; i++) {
		const Elf64_Phdr *segment = &image->segments[i];
		uint64_t from = segment->p_offset & page_mask;
		uint64_t length = segment->p_offset - from + segment->p_filesz;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & flag) ||
		    file_offset < from || file_offset - from >= length)
			continue;
		/* Where one ends and the next begins in the same page, the next is meant. */
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
		return read_at(image, 0, bytes, size);
	}
	return false;
}

bool elf_image__initial_bytes(const struct elf_image *image, uint64_t address, void *bytes,
			      size_t length)
{
	uint64_t offset = file_offset_of(image, address);

	return offset && read_at(image, offset, bytes, length);
}

struct constants_search {
	bool (*visit)(const uint8_t *bytes, size_t length, void *context);
	void *context;
};

static bool visit_constants(const uint8_t *bytes, size_t length, uint64_t at, void *context)
{
	const struct constants_search *search = context;

	(void)at;
	return search->visit(bytes, length, search->context);
}

bool elf_image__search_constants(struct elf_image *image,
				 bool (*visit)(const uint8_t *bytes, size_t length, void *context),
				 void *context)
{
	struct constants_search search = { visit, context };
	bool stop = false;

	for (int i = 0; !stop && i < image->header.e_phnum; i++) {
		const Elf64_Phdr *segment = &image->segments[i];

		if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W))
			stop = visit_blocks(image, segment->p_offset, segment->p_filesz,
					    visit_constants, &search);
	}
	return stop;
}
