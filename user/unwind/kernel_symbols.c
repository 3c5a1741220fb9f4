// SPDX-License-Identifier: BSD-2-Clause
/*
 * kallsyms gives no sizes: a symbol reaches to the next one.  Data symbols and end marks are kept,
 * without their names: they end the last function of the kernel or of a module.
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

/* Beyond the kernel's own KSYM_NAME_LEN. */
#define NAME_BYTES 1024

/* A symbol reaches no further than that: what lies behind a section's end is none's. */
#define SYMBOL_BYTES_MAX (1024 * 1024)

struct symbol {
	uint64_t address; /* first: they are looked up by it */
	size_t name;	  /* where it begins in NAMES; 0 for what is no code */
	bool is_code;
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
	bool is_code = strchr("tTwW", kind);

	symbols->all =
		xgrow(symbols->all, &symbols->capacity, symbols->count + 1, sizeof(*symbols->all));
	symbols->all[symbols->count++] = (struct symbol){
		.address = address,
		.name = is_code ? add_name(symbols, name) : 0,
		.is_code = is_code,
	};
}

/* Of several at one address the code comes last, and the one that was listed first of it. */
static int compare(const void *left, const void *right)
{
	const struct symbol *a = left, *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->is_code != b->is_code)
		return a->is_code ? 1 : -1;
	return (a->name < b->name) - (a->name > b->name);
}

/* A line: "ffffffff81000000 T _text" or "ffffffffc0000000 t init [module]".  An address of 0 is
 * none, or hidden. */
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

/* The last symbol at ADDRESS or before; NULL: there is none. */
static const struct symbol *find(const struct kernel_symbols *symbols, uint64_t address)
{
	size_t count =
		sorted__count_up_to(symbols->all, symbols->count, sizeof(*symbols->all), address);

	return count ? &symbols->all[count - 1] : NULL;
}

char *kernel_symbols__name(const struct kernel_symbols *symbols, uint64_t address)
{
	const struct symbol *symbol = symbols ? find(symbols, address) : NULL;

	if (!symbol || !symbol->is_code || address - symbol->address > SYMBOL_BYTES_MAX)
		return xstrdup(UNKNOWN_TEXT);
	return xasprintf("%s" SUFFIX, symbols->names + symbol->name);
}
