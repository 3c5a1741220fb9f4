// SPDX-License-Identifier: BSD-2-Clause
/*
 * A symbol of size 0, as in assembler code, is ignored: the end of its function is unknown.  No
 * name is better than a wrong one.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "base/xalloc.h"
#include "elf/elf_parts.h"
#include "reading/reader.h"
#include "unwind/symbols.h"

/* Functions may overlap.  A look-up skips at most this number of functions that begin closer to the
 * address. */
#define NESTED_MAX 16

struct function {
	uint64_t start;	     /* first, for look-ups */
	uint32_t size, name; /* offset of the name in NAMES */
};

struct symbols {
	struct function *functions; /* by address */
	size_t count;
	char *names;
	size_t names_bytes;
};

/* A symbol of a function.  Several may have the same address. */
struct candidate {
	uint64_t start;
	uint32_t size, name; /* offset of the name in the file's strings */
	uint32_t index;
	uint16_t length;
	uint8_t rank;
};

struct selection {
	const char *strings;
	uint64_t strings_bytes;
	struct candidate *candidates;
	size_t count, capacity;
	uint64_t bytes, bytes_max; /* of the names of all symbols */
};

static bool is_function(const Elf64_Sym *symbol)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
	       symbol->st_shndx != SHN_ABS && symbol->st_value && symbol->st_size &&
	       symbol->st_size <= UINT32_MAX && symbol->st_value <= UINT64_MAX - symbol->st_size;
}

static uint8_t rank_of(const Elf64_Sym *symbol)
{
	switch (ELF64_ST_BIND(symbol->st_info)) {
	case STB_LOCAL:
		return 2;
	case STB_WEAK:
		return 1;
	default:
		return 0;
	}
}

/* The length of the name at OFFSET without its version; 0 if there is none.  Counts its bytes,
 * because many symbols of a hostile file may share a long name. */
static size_t name_length(struct selection *selection, uint32_t offset)
{
	const char *name = selection->strings + offset, *version;
	size_t most = SYMBOLS_NAME_BYTES_MAX + 1, length;

	if (offset >= selection->strings_bytes)
		return 0;
	if (most > selection->strings_bytes - offset)
		most = selection->strings_bytes - offset;
	length = strnlen(name, most);
	selection->bytes += length + 1;
	if (!length || length == most)
		return 0;
	version = memchr(name + 1, '@', length - 1);
	return version ? (size_t)(version - name) : length;
}

static void collect(struct selection *selection, const Elf64_Sym *entries, size_t count)
{
	for (size_t i = 0; i < count && selection->bytes < selection->bytes_max; i++) {
		const Elf64_Sym *entry = &entries[i];
		size_t length = is_function(entry) ? name_length(selection, entry->st_name) : 0;

		if (!length)
			continue;
		selection->candidates = xgrow(selection->candidates, &selection->capacity,
					      selection->count + 1, sizeof(struct candidate));
		selection->candidates[selection->count++] = (struct candidate){
			.start = entry->st_value,
			.size = entry->st_size,
			.name = entry->st_name,
			.index = i,
			.length = length,
			.rank = rank_of(entry),
		};
	}
}

/* By address; of one address the best name first. */
static int compare(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank - b->rank;
	if (a->length != b->length)
		return a->length - b->length;
	return (a->index > b->index) - (a->index < b->index);
}

/* Takes the best name for each address. */
static struct symbols *make(struct selection *selection)
{
	struct symbols *symbols = xcalloc(1, sizeof(*symbols));
	struct candidate *all = selection->candidates;

	qsort(all, selection->count, sizeof(*all), compare);
	symbols->names = xmalloc(selection->bytes);
	symbols->functions = xreallocarray(NULL, selection->count, sizeof(*symbols->functions));
	for (size_t i = 0; i < selection->count; i++) {
		char *name = symbols->names + symbols->names_bytes;

		if (i && all[i - 1].start == all[i].start)
			continue;
		symbols->functions[symbols->count++] =
			(struct function){ all[i].start, all[i].size, symbols->names_bytes };
		memcpy(name, selection->strings + all[i].name, all[i].length);
		name[all[i].length] = '\0';
		symbols->names_bytes += all[i].length + 1;
	}
	symbols->names = xreallocarray(symbols->names, symbols->names_bytes, 1);
	symbols->functions =
		xreallocarray(symbols->functions, symbols->count, sizeof(*symbols->functions));
	return symbols;
}

static struct symbols *read_table(struct elf_image *image, const struct symbol_table *table,
				  uint64_t bytes_max)
{
	struct selection selection = { .strings_bytes = table->strings_bytes,
				       .bytes_max = bytes_max };
	struct symbols *symbols = NULL;
	Elf64_Sym *entries;
	char *strings;

	if (table->count > bytes_max / sizeof(*entries) ||
	    table->strings_bytes > bytes_max - table->count * sizeof(*entries))
		return NULL;
	entries = reader__lend(
		elf_parts__load(image, table->symbols, table->count * sizeof(*entries), bytes_max));
	if (!entries)
		return NULL;
	strings = elf_parts__load(image, table->strings, table->strings_bytes, bytes_max);
	reader__take_back(entries);
	if (strings) {
		selection.strings = strings;
		collect(&selection, entries, table->count);
	}
	free(entries);
	if (selection.count)
		symbols = make(&selection);
	free(selection.candidates);
	free(strings);
	return symbols;
}

struct symbols *symbols__read(struct elf_image *image, uint64_t bytes_max)
{
	struct symbols *symbols = NULL;
	struct symbol_table table;

	if (!elf_image__is_native(image))
		return NULL;
	if (elf_symbols__find_table(image, SHT_SYMTAB, &table))
		symbols = read_table(image, &table, bytes_max);
	if (!symbols && elf_symbols__find_table(image, SHT_DYNSYM, &table))
		symbols = read_table(image, &table, bytes_max);
	return symbols;
}

void symbols__free(struct symbols *symbols)
{
	if (!symbols)
		return;
	free(symbols->functions);
	free(symbols->names);
	free(symbols);
}

uint64_t symbols__bytes(const struct symbols *symbols)
{
	return symbols ? sizeof(*symbols) + symbols->names_bytes +
				 symbols->count * sizeof(*symbols->functions)
		       : 0;
}

size_t symbols__count(const struct symbols *symbols)
{
	return symbols ? symbols->count : 0;
}

const char *symbols__at(const struct symbols *symbols, size_t index, uint64_t *start,
			uint64_t *size)
{
	const struct function *function = &symbols->functions[index];

	*start = function->start;
	*size = function->size;
	return symbols->names + function->name;
}

const char *symbols__name(const struct symbols *symbols, uint64_t address, uint64_t *start,
			  uint64_t *size)
{
	size_t index = symbols ? sorted__count_up_to(symbols->functions, symbols->count,
						     sizeof(*symbols->functions), address)
			       : 0;

	for (int i = 0; i <= NESTED_MAX && index--; i++) {
		const struct function *function = &symbols->functions[index];

		if (address - function->start < function->size)
			return symbols__at(symbols, index, start, size);
	}
	return NULL;
}

/* Whether NAME ends in ".WORD" or ".WORD.NUMBER"; *AT is the length before that. */
static bool ends_in_suffix(const char *name, size_t length, size_t *at)
{
	static const char *const words[] = { "cold",	 "part", "constprop", "isra",
					     "lto_priv", "llvm", "warm",      "org" };
	size_t end = length, begin;

	while (end && isdigit((unsigned char)name[end - 1]))
		end--;
	if (end == length || !end || name[end - 1] != '.')
		end = length;
	else
		end--;
	begin = end;
	while (begin && name[begin - 1] != '.')
		begin--;
	for (size_t i = 0; begin > 1 && i < sizeof(words) / sizeof(words[0]); i++)
		if (end - begin == strlen(words[i]) &&
		    memcmp(name + begin, words[i], end - begin) == 0) {
			*at = begin - 1;
			return true;
		}
	return false;
}

size_t symbols__base_length(const char *name)
{
	size_t length = strlen(name);

	while (memchr(name, '.', length) && ends_in_suffix(name, length, &length))
		;
	return length;
}
