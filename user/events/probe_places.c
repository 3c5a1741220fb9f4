// SPDX-License-Identifier: BSD-2-Clause
/*
 * A function is found by its symbol, a USDT probe by its note (<sys/sdt.h>): each place of a probe
 * has a note with its address, that of its counter, the provider and the name.
 *
 * A trap costs about 1 us where the kernel emulates the instruction, and several times as much
 * where it steps through it.  So only an emulated one is trapped: the first in the function's
 * straight beginning (find_trap of struct architecture).
 *
 * The file is the target's, and may be made to harm.  It is read once, with a time limit, and
 * libelf sees only that copy.  Strings are not taken from libelf: it checks the rest of the table
 * for each.
 */
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "architecture/architecture.h"
#include "base/near.h"
#include "base/xalloc.h"
#include "events/probe_places.h"
#include "reading/root_folder.h"

#define FILE_BYTES_MAX (1024LL * 1024 * 1024)

/* How much of a function is looked at. */
#define BEGINNING_BYTES 128

/* At most this many copies of a USDT probe are looked at. */
#define PLACES_MAX 256

#define HIDDEN_VERSION 0x8000
#define NOTE_OWNER     "stapsdt"
#define NOTE_TYPE      3
#define BASE_SECTION   ".stapsdt.base"

/* A search of one file. */
struct search {
	const struct probe_name *name;
	struct probe_places *found;
	uint8_t *bytes;
	size_t size;
	Elf *elf;
	bool suggests; /* only looks for names like the one */
	struct near near;
	size_t capacity;
	bool has_base;
	uint64_t base; /* of the notes, where they were loaded in the end */
};

/* Opens the file.  Links are followed as the process sees them.  A descriptor or -errno. */
static int open_file(pid_t pid, const char *path)
{
	struct file_identity ignored;
	int root = root_folder__open_alone(pid, &ignored), fd;

	if (root < 0)
		return root;
	fd = target_file__open_in(pid, root, path);
	close(root);
	return fd;
}

/* Reads all of the file FD. */
static char *read_file(pid_t pid, int fd, struct search *search)
{
	const char *path = search->name->path;
	int64_t size = target_file__size(pid, fd);

	if (size < 0)
		return xasprintf("%s cannot be read: %s", path, strerror(-size));
	if (size > FILE_BYTES_MAX)
		return xasprintf("%s has more than 1 GiB", path);
	search->size = size;
	search->bytes = malloc(size + 1);
	if (!search->bytes)
		return xasprintf("%s cannot be read: %s", path, strerror(ENOMEM));
	if (!target_file__read(pid, fd, search->bytes, size, 0))
		return xasprintf("%s cannot be read", path);
	return NULL;
}

static char *open_elf(struct search *search)
{
	GElf_Ehdr header;

	elf_version(EV_CURRENT);
	search->elf = elf_memory((char *)search->bytes, search->size);
	if (!search->elf || !gelf_getehdr(search->elf, &header) ||
	    gelf_getclass(search->elf) != ELFCLASS64 || header.e_machine != ARCHITECTURE.machine)
		return xasprintf("%s is no program or library for this machine",
				 search->name->path);
	return NULL;
}

/* The place in the file of what is loaded at ADDRESS, executable or WRITABLE; whether there is
 * one. */
static bool find_offset(const struct search *search, uint64_t address, bool writable,
			uint64_t *offset)
{
	size_t count = 0;
	GElf_Phdr segment;

	elf_getphdrnum(search->elf, &count);
	for (size_t i = 0; i < count && gelf_getphdr(search->elf, i, &segment); i++) {
		*offset = segment.p_offset + (address - segment.p_vaddr);
		if (segment.p_type == PT_LOAD && (segment.p_flags & (writable ? PF_W : PF_X)) &&
		    address - segment.p_vaddr < segment.p_filesz && *offset < search->size)
			return true;
	}
	return false;
}

/* Adds the first instruction from ADDRESS on, within LENGTH bytes, that may be trapped; whether
 * there is one. */
static bool add_place(struct search *search, uint64_t address, size_t length, uint64_t counter)
{
	struct probe_places *found = search->found;
	struct probe_place place = { .counter = counter };
	size_t skipped;

	if (!find_offset(search, address, false, &place.offset))
		return false;
	if (length > search->size - place.offset)
		length = search->size - place.offset;
	if (!ARCHITECTURE.find_trap(search->bytes + place.offset, length, &skipped))
		return false;
	place.offset += skipped;
	found->places =
		xgrow(found->places, &search->capacity, found->count + 1, sizeof(*found->places));
	found->places[found->count++] = place;
	return true;
}

/* The contents of SECTION; NULL: it has none. */
static Elf_Data *section_data(Elf_Scn *section, GElf_Shdr *header)
{
	return section && gelf_getshdr(section, header) ? elf_getdata(section, NULL) : NULL;
}

static Elf_Data *data_of_type(Elf *elf, uint32_t type, GElf_Shdr *header)
{
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));)
		if (gelf_getshdr(section, header) && header->sh_type == type)
			return section_data(section, header);
	return NULL;
}

/* A table of symbols.  The names end with a NUL. */
struct symbols {
	Elf_Data *table, *names, *versions; /* VERSIONS: NULL if there are none */
};

static bool open_symbols(Elf *elf, uint32_t type, struct symbols *symbols)
{
	GElf_Shdr header, ignored;

	*symbols = (struct symbols){ .table = data_of_type(elf, type, &header) };
	if (!symbols->table)
		return false;
	symbols->names = section_data(elf_getscn(elf, header.sh_link), &ignored);
	if (type == SHT_DYNSYM)
		symbols->versions = data_of_type(elf, SHT_GNU_versym, &ignored);
	return symbols->names && symbols->names->d_size &&
	       !((const char *)symbols->names->d_buf)[symbols->names->d_size - 1];
}

/* Reads symbol INDEX.  Returns its name if it is a function of the file; NULL if not, and if it is
 * no default version. */
static const char *function_name(const struct symbols *symbols, int index, GElf_Sym *symbol)
{
	unsigned char type = GELF_ST_TYPE(symbol->st_info);
	GElf_Versym version;

	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || !symbol->st_value ||
	    symbol->st_shndx == SHN_UNDEF || symbol->st_name >= symbols->names->d_size)
		return NULL;
	if (symbols->versions && gelf_getversym(symbols->versions, index, &version) &&
	    version & HIDDEN_VERSION)
		return NULL;
	return (const char *)symbols->names->d_buf + symbol->st_name;
}

/* Finds the function in the symbol table of TYPE.  Returns how many different ones have the
 * name. */
static size_t find_symbol(struct search *search, uint32_t type, GElf_Sym *function)
{
	struct symbols symbols;
	size_t found = 0;
	GElf_Sym symbol;

	if (!open_symbols(search->elf, type, &symbols))
		return 0;
	for (int i = 0; gelf_getsym(symbols.table, i, &symbol); i++) {
		const char *name = function_name(&symbols, i, &symbol);

		if (name && search->suggests)
			near__try(&search->near, name);
		if (!name || strcmp(name, search->name->name) != 0 ||
		    (found && symbol.st_value == function->st_value))
			continue;
		*function = symbol;
		found++;
	}
	return found;
}

static char *find_function(struct search *search)
{
	const char *path = search->name->path, *name = search->name->name;
	size_t length, count;
	GElf_Sym function;

	count = find_symbol(search, SHT_DYNSYM, &function)
			?: find_symbol(search, SHT_SYMTAB, &function);
	if (!count) {
		search->suggests = true;
		find_symbol(search, SHT_DYNSYM, &function);
		find_symbol(search, SHT_SYMTAB, &function);
		return near__suggest(xasprintf("%s has no function '%s'", path, name),
				     search->near.best);
	}
	if (count > 1)
		return xasprintf("%s has %zu functions '%s'", path, count, name);
	if (GELF_ST_TYPE(function.st_info) == STT_GNU_IFUNC)
		return xasprintf("%s of %s only chooses a function, once: use the name of that one",
				 name, path);
	length = function.st_size && function.st_size < BEGINNING_BYTES ? function.st_size
									: BEGINNING_BYTES;
	if (add_place(search, function.st_value, length, 0))
		return NULL;
	return xasprintf("%s of %s cannot be trapped: the kernel emulates none of its first "
			 "instructions",
			 name, path);
}

/* Finds where the notes' base was loaded in the end, if that is known. */
static void find_base(struct search *search)
{
	Elf_Scn *section = NULL;
	const char *name;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(search->elf, &names))
		return;
	while (!search->has_base && (section = elf_nextscn(search->elf, section))) {
		name = gelf_getshdr(section, &header)
			       ? elf_strptr(search->elf, names, header.sh_name)
			       : NULL;
		search->has_base = name && strcmp(name, BASE_SECTION) == 0;
		search->base = header.sh_addr;
	}
}

/* Takes a note of a USDT probe, if it is of the one. */
static void take_note(struct search *search, const uint8_t *note, size_t bytes)
{
	uint64_t words[3], moved, counter = 0; /* the address, the base, the counter */
	const char *provider = (const char *)note + sizeof(words), *name;
	size_t room;

	if (bytes <= sizeof(words))
		return;
	room = bytes - sizeof(words);
	name = memchr(provider, '\0', room);
	if (!name++ || !memchr(name, '\0', room - (name - provider)) ||
	    strcmp(provider, search->name->provider) != 0)
		return;
	near__try(&search->near, name);
	if (strcmp(name, search->name->name) != 0)
		return;
	memcpy(words, note, sizeof(words));
	/* prelink moves what is loaded, but not what the notes say. */
	moved = search->has_base && words[1] ? search->base - words[1] : 0;
	if ((words[2] && !find_offset(search, words[2] + moved, true, &counter)) ||
	    !add_place(search, words[0] + moved, 1, counter))
		search->found->refused++;
}

/* Takes the notes of DATA. */
static void take_notes(struct search *search, Elf_Data *data)
{
	const struct probe_places *found = search->found;
	const uint8_t *bytes = data->d_buf;
	size_t name, note;
	GElf_Nhdr head;

	for (size_t at = 0, next; found->count + found->refused < PLACES_MAX &&
				  (next = gelf_getnote(data, at, &head, &name, &note));
	     at = next)
		if (head.n_type == NOTE_TYPE && head.n_namesz == sizeof(NOTE_OWNER) &&
		    memcmp(bytes + name, NOTE_OWNER, sizeof(NOTE_OWNER)) == 0)
			take_note(search, bytes + note, head.n_descsz);
}

static char *find_usdt(struct search *search)
{
	const struct probe_name *wanted = search->name;
	GElf_Shdr header;
	Elf_Data *data;

	find_base(search);
	for (Elf_Scn *section = NULL; (section = elf_nextscn(search->elf, section));) {
		data = section_data(section, &header);
		if (data && header.sh_type == SHT_NOTE)
			take_notes(search, data);
	}
	if (search->found->count)
		return NULL;
	if (search->found->refused)
		return xasprintf("the probe %s:%s of %s cannot be trapped: it is at no instruction "
				 "that the kernel emulates",
				 wanted->provider, wanted->name, wanted->path);
	return near__suggest(
		xasprintf("%s has no probe '%s:%s'", wanted->path, wanted->provider, wanted->name),
		search->near.best);
}

char *probe_places__find(pid_t pid, const struct probe_name *name, struct probe_places *found)
{
	struct search search = { .name = name, .found = found, .near = NEAR(name->name) };
	struct file_identity identity = { 0 };
	int fd = open_file(pid, name->path);
	char *wrong;

	if (fd < 0)
		return xasprintf("%s cannot be read: %s", name->path, strerror(-fd));
	target_file__identify(fd, &identity);
	if (found->count && memcmp(&identity, &found->identity, sizeof(identity)) == 0) {
		target_file__close(pid, fd);
		return NULL;
	}
	probe_places__free(found);
	*found = (struct probe_places){ .fd = fd, .pid = pid, .identity = identity };
	wrong = read_file(pid, fd, &search) ?: open_elf(&search);
	if (!wrong)
		wrong = name->provider ? find_usdt(&search) : find_function(&search);
	elf_end(search.elf);
	free(search.bytes);
	if (wrong)
		probe_places__free(found);
	return wrong;
}

void probe_places__free(struct probe_places *found)
{
	if (found->fd >= 0)
		target_file__close(found->pid, found->fd);
	free(found->places);
	*found = NO_PROBE_PLACES;
}
