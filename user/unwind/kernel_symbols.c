// SPDX-License-Identifier: BSD-2-Clause
/*
 * kallsyms has no sizes: a symbol extends to the next one.  Data symbols and end marks are kept
 * without their names, because they end the last function of the kernel or of a module.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "base/xalloc.h"
#include "unwind/kernel_symbols.h"

#define UNKNOWN_TEXT "[kernel]"
#define SUFFIX	     "_[k]"

/* More than the kernel's KSYM_NAME_LEN. */
#define NAME_BYTES 1024

/* No symbol is longer: memory behind the end of a section belongs to none. */
#define SYMBOL_BYTES_MAX (1024 * 1024)

#define NO_CODE SIZE_MAX

struct symbol {
	uint64_t address; /* first, for look-ups */
	size_t name;	  /* its offset in NAMES, or NO_CODE */
};

struct kernel_symbols {
	struct symbol *all; /* by address */
	size_t count, capacity;
	char *names;
	size_t names_bytes, names_capacity;
};

static size_t add_name(struct kernel_symbols *symbols, const char *name)
{
	size_t at = symbols->names_bytes, bytes = strlen(name) + 1;

	symbols->names = xgrow(symbols->names, &symbols->names_capacity, at + bytes, 1);
	memcpy(symbols->names + at, name, bytes);
	symbols->names_bytes += bytes;
	return at;
}

static void add_symbol(struct kernel_symbols *symbols, uint64_t address, char kind,
		       const char *name)
{
	symbols->all =
		xgrow(symbols->all, &symbols->capacity, symbols->count + 1, sizeof(*symbols->all));
	symbols->all[symbols->count++] = (struct symbol){
		.address = address,
		.name = strchr("tTwW", kind) ? add_name(symbols, name) : NO_CODE,
	};
}

/* By address.  Of one address the code comes last, and of that the symbol that was listed first. */
static int compare(const void *left, const void *right)
{
	const struct symbol *a = left, *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return (a->name < b->name) - (a->name > b->name);
}

struct kernel_symbols *kernel_symbols__read(const char *path)
{
	struct kernel_symbols *symbols = xcalloc(1, sizeof(*symbols));
	FILE *file = fopen(path, "re");
	char line[NAME_BYTES + 64], *end;

	/* "ffffffff81000000 T _text" or "ffffffffc0000000 t init [module]" */
	while (file && fgets(line, sizeof(line), file)) {
		uint64_t address = strtoull(line, &end, 16);

		if (!address || end[0] != ' ' || !end[1] || end[2] != ' ')
			continue;
		end[3 + strcspn(end + 3, " \t\n")] = '\0';
		add_symbol(symbols, address, end[1], end + 3);
	}
	if (file)
		fclose(file);
	if (!symbols->count) {
		kernel_symbols__free(symbols);
		return NULL;
	}
	qsort(symbols->all, symbols->count, sizeof(*symbols->all), compare);
	return symbols;
}

void kernel_symbols__free(struct kernel_symbols *symbols)
{
	if (!symbols)
		return;
	free(symbols->all);
	free(symbols->names);
	free(symbols);
}

bool kernel_symbols__find(const struct kernel_symbols *symbols, const char *name, uint64_t *start,
			  uint64_t *end)
{
	for (size_t i = 0; i < symbols->count; i++) {
		const struct symbol *symbol = &symbols->all[i];

		if (symbol->name == NO_CODE || strcmp(symbols->names + symbol->name, name) != 0)
			continue;
		*start = *end = symbol->address;
		for (size_t next = i; next < symbols->count && *end == *start; next++)
			*end = symbols->all[next].address;
		return true;
	}
	return false;
}

char *kernel_symbols__name(const struct kernel_symbols *symbols, uint64_t address)
{
	size_t count = symbols ? sorted__count_up_to(symbols->all, symbols->count,
						     sizeof(*symbols->all), address)
			       : 0;
	const struct symbol *symbol = count ? &symbols->all[count - 1] : NULL;

	if (!symbol || symbol->name == NO_CODE || address - symbol->address > SYMBOL_BYTES_MAX)
		return xstrdup(UNKNOWN_TEXT);
	return xasprintf("%s" SUFFIX, symbols->names + symbol->name);
}
