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

/* A line: "ffffffff81000000 T _text" or "ffffffffc0000000 t init [module]".  Address 0: the line is
 * invalid, or its address is hidden. */
struct line {
	char text[NAME_BYTES + 64];
	uint64_t address;
	char kind, *name;
};

/* Takes the next line of FILE; false at its end. */
static bool read_line(FILE *file, struct line *line)
{
	char *end;

	if (!fgets(line->text, sizeof(line->text), file))
		return false;
	line->address = strtoull(line->text, &end, 16);
	if (end[0] != ' ' || !end[1] || end[2] != ' ') {
		line->address = 0;
		return true;
	}
	line->kind = end[1];
	line->name = end + 3;
	line->name[strcspn(line->name, " \t\n")] = '\0';
	return true;
}

bool kernel_symbols__are_shown(const char *path)
{
	FILE *file = fopen(path, "re");
	struct line line = { .address = 0 };

	while (file && !line.address && read_line(file, &line))
		;
	if (file)
		fclose(file);
	return line.address;
}

struct kernel_symbols *kernel_symbols__read(const char *path)
{
	struct kernel_symbols *symbols = xcalloc(1, sizeof(*symbols));
	FILE *file = fopen(path, "re");
	struct line line;

	while (file && read_line(file, &line))
		if (line.address)
			add_symbol(symbols, line.address, line.kind, line.name);
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
