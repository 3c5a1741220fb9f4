// SPDX-License-Identifier: BSD-2-Clause
/*
 * A function is found by its symbol, a USDT probe by its note (<sys/sdt.h>): each place of a probe
 * has a note with its address, that of its counter, the provider and the name.
 *
 * A trap costs about 1 us where the kernel emulates the instruction, and several times as much
 * where it steps through it.  So only an emulated one is trapped: the first in the function's
 * straight beginning.  The functions of struct architecture know both.
 *
 * The file is the target's, and may change or be made to fit.  It is read once, with a time limit,
 * and libelf sees only that copy.
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
#include "reading/target_files.h"

#define FILE_BYTES_MAX (1024LL * 1024 * 1024)

/* How much of a function is looked at. */
#define BEGINNING_BYTES 64

/* As many copies of one USDT probe are trapped. */
#define PLACES_MAX 256

#define HIDDEN_VERSION 0x8000
#define NOTE_OWNER     "stapsdt"
#define NOTE_TYPE      3

/* A search of one file. */
struct search {
	const struct probe_name *name;
	struct probe_places *found;
	uint8_t *bytes;
	size_t size;
	Elf *elf;
	struct near near;
	size_t capacity;
};

/* Reads all of the file. */
static char *read_file(pid_t pid, struct search *search)
{
	const char *path = search->name->path;
	char *name = xasprintf("/proc/%d/root%s", pid, path);
	int fd = target_file__open(pid, name);
	int64_t size = fd < 0 ? fd : target_file__size(pid, fd);

	free(name);
	search->found->fd = fd;
	if (size < 0)
		return xasprintf("%s cannot be read: %s", path, strerror(-size));
	if (size > FILE_BYTES_MAX)
		return xasprintf("%s is too large", path);
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

static Elf_Data *section_data(Elf *elf, uint32_t type, GElf_Shdr *header)
{
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));)
		if (gelf_getshdr(section, header) && header->sh_type == type)
			return elf_getdata(section, NULL);
	return NULL;
}

/* Finds the function in the symbol table of TYPE.  Returns how many different ones have the name;
 * of an exported one only the default version counts. */
static size_t find_symbol(struct search *search, uint32_t type, GElf_Sym *function)
{
	GElf_Shdr header, ignored;
	Elf_Data *table = section_data(search->elf, type, &header), *versions = NULL;
	GElf_Versym version;
	GElf_Sym symbol;
	size_t found = 0;
	const char *name;

	if (type == SHT_DYNSYM)
		versions = section_data(search->elf, SHT_GNU_versym, &ignored);
	for (int i = 0; table && gelf_getsym(table, i, &symbol); i++) {
		unsigned char kind = GELF_ST_TYPE(symbol.st_info);

		if ((kind != STT_FUNC && kind != STT_GNU_IFUNC) || !symbol.st_value ||
		    symbol.st_shndx == SHN_UNDEF ||
		    !(name = elf_strptr(search->elf, header.sh_link, symbol.st_name)))
			continue;
		near__try(&search->near, name);
		if (strcmp(name, search->name->name) != 0 ||
		    (versions && gelf_getversym(versions, i, &version) && version & HIDDEN_VERSION))
			continue;
		if (found && symbol.st_value == function->st_value)
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
	if (!count)
		return xasprintf("%s has no function '%s'%s%s%s", path, name,
				 search->near.best ? ": did you mean " : "",
				 search->near.best ?: "", search->near.best ? "?" : "");
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

/* How far what is loaded was moved after the notes were written (prelink). */
static uint64_t moved_by(const struct search *search, uint64_t base)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;
	const char *name;

	if (elf_getshdrstrndx(search->elf, &names))
		return 0;
	while ((section = elf_nextscn(search->elf, section))) {
		name = gelf_getshdr(section, &header)
			       ? elf_strptr(search->elf, names, header.sh_name)
			       : NULL;
		if (name && strcmp(name, ".stapsdt.base") == 0)
			return header.sh_addr - base;
	}
	return 0;
}

/* Takes a note of a USDT probe, if it is of the one.  Returns whether it is and cannot be
 * trapped. */
static bool take_note(struct search *search, const uint8_t *note, size_t bytes)
{
	uint64_t words[3], moved, counter = 0; /* the address, the base, the counter */
	const char *provider = (const char *)note + sizeof(words), *name;
	size_t room;

	if (bytes <= sizeof(words))
		return false;
	room = bytes - sizeof(words);
	name = memchr(provider, '\0', room);
	if (!name++ || !memchr(name, '\0', room - (name - provider)))
		return false;
	if (strcmp(provider, search->name->provider) != 0)
		return false;
	near__try(&search->near, name);
	if (strcmp(name, search->name->name) != 0 || search->found->count == PLACES_MAX)
		return false;
	memcpy(words, note, sizeof(words));
	moved = moved_by(search, words[1]);
	if (words[2] && !find_offset(search, words[2] + moved, true, &counter))
		return true;
	return !add_place(search, words[0] + moved, 1, counter);
}

static char *find_usdt(struct search *search)
{
	const struct probe_name *wanted = search->name;
	GElf_Shdr header;
	size_t refused = 0;

	for (Elf_Scn *section = NULL; (section = elf_nextscn(search->elf, section));) {
		Elf_Data *data = gelf_getshdr(section, &header) && header.sh_type == SHT_NOTE
					 ? elf_getdata(section, NULL)
					 : NULL;
		size_t name, note;
		GElf_Nhdr head;

		for (size_t at = 0, next;
		     data && (next = gelf_getnote(data, at, &head, &name, &note)); at = next) {
			const uint8_t *bytes = data->d_buf;

			if (head.n_type == NOTE_TYPE && head.n_namesz == sizeof(NOTE_OWNER) &&
			    memcmp(bytes + name, NOTE_OWNER, sizeof(NOTE_OWNER)) == 0)
				refused += take_note(search, bytes + note, head.n_descsz);
		}
	}
	if (search->found->count)
		return NULL;
	if (refused)
		return xasprintf("the probe %s:%s of %s cannot be trapped: it is at no instruction "
				 "that the kernel emulates",
				 wanted->provider, wanted->name, wanted->path);
	return xasprintf("%s has no probe '%s:%s'%s%s%s", wanted->path, wanted->provider,
			 wanted->name, search->near.best ? ": did you mean " : "",
			 search->near.best ?: "", search->near.best ? "?" : "");
}

char *probe_places__find(pid_t pid, const struct probe_name *name, struct probe_places *found)
{
	struct search search = { .name = name, .found = found, .near = NEAR(name->name) };
	char *wrong;

	*found = (struct probe_places){ .fd = -1 };
	wrong = read_file(pid, &search) ?: open_elf(&search);
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
		close(found->fd);
	free(found->places);
	*found = (struct probe_places){ .fd = -1 };
}
