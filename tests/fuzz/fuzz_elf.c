// SPDX-License-Identifier: BSD-2-Clause
/* The input: an ELF file, which is also the memory of its process; or a name; or code. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "architecture/architecture.h"
#include "elf/elf_image.h"
#include "events/probe_places.h"
#include "input.h"
#include "offsets.h"
#include "python/python_image.h"
#include "unwind/cfi.h"
#include "unwind/plumbing.h"
#include "unwind/symbols.h"

#define PID	     0
#define BUDGET_BYTES (1024 * 1024 * 1024)
#define VERSION_3_13 0x030d0500

static void look_around(struct elf_image *image)
{
	static const char *const names[] = { "_PyRuntime", "PyCode_Type", "a", "" };
	char version[PYTHON_VERSION_TEXT_MAX];
	uint64_t address = 0, bias;
	struct runtime runtime;
	uint8_t head[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		elf_image__exported_symbol(image, names[i], &address);
		elf_image__symbol(image, names[i], &address);
		elf_image__section(image, names[i], &address);
	}
	elf_image__initial_bytes(image, address, head, sizeof(head));
	elf_image__first_bytes(image, head, sizeof(head), &address);
	for (int executable = 0; executable <= 1; executable++)
		elf_segments__bias(image->segments, image->header.e_phnum, 0x400000, address,
				   executable, &bias);
	python_image__format_version(python_image__version(PID, image, 0), version);
	python_image__examine(PID, image, 0, &runtime);
}

static void read_frames(struct elf_image *image)
{
	struct cfi_rows rows = { 0 };
	struct cfi_section section;
	void *bytes = cfi__load(image, &section);

	if (bytes)
		cfi__read(&section, &rows);
	cfi_rows__free(&rows);
	free(bytes);
}

static void read_names(struct elf_image *image)
{
	struct symbols *symbols = symbols__read(image, BUDGET_BYTES);
	uint64_t before = 0, start, size, found;
	char hex[ELF_BUILD_ID_HEX_BYTES];

	CHECK(!elf_image__build_id(image, hex) || strlen(hex) < sizeof(hex));
	for (size_t i = 0; i < symbols__count(symbols); i++) {
		const char *name = symbols__at(symbols, i, &start, &size);
		char *shown = symbols__demangle(name);

		CHECK(name[0] && size && start > before);
		CHECK(symbols__name(symbols, start, &found, &size) == name && found == start);
		CHECK(strlen(shown) <= SYMBOLS_NAME_BYTES_MAX);
		CHECK(!plumbing__is_eval_loop(name) || plumbing__is_name(name));
		free(shown);
		before = start;
	}
	symbols__free(symbols);
}

static char path[] = "/tmp/fuzz_elf.XXXXXX";

static void remove_file(void)
{
	unlink(path);
}

/* Looks for probes in a file of these bytes. */
static void find_probes(const uint8_t *bytes, size_t size)
{
	static int fd = -1;
	const struct probe_name names[] = { { path, NULL, "a" }, { path, "a", "a" } };
	struct probe_places found = NO_PROBE_PLACES;

	if (fd < 0) {
		fd = mkstemp(path);
		atexit(remove_file);
	}
	CHECK(fd >= 0 && !ftruncate(fd, 0) && pwrite(fd, bytes, size, 0) == (ssize_t)size);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *wrong = probe_places__find(getpid(), &names[i], &found);

		CHECK(wrong || found.count);
		free(wrong);
		probe_places__free(&found);
	}
}

/* Reads the same bytes as a mangled name. */
static void read_as_name(const uint8_t *bytes, size_t size)
{
	char name[SYMBOLS_NAME_BYTES_MAX + 1] = "_Z", *shown;

	if (size > sizeof(name) - 3)
		size = sizeof(name) - 3;
	memcpy(name + 2, bytes, size);
	shown = symbols__demangle(name);
	CHECK(strlen(shown) <= SYMBOLS_NAME_BYTES_MAX);
	free(shown);
}

/* Reads the same bytes as code. */
static void decode(const uint8_t *code, size_t length)
{
	struct entry_gap gap;
	struct offsets offsets;
	struct layout layout;
	uint64_t variable;
	size_t skipped;

	x86_architecture.decode_variable(code, length, 0x1000, &variable);
	CHECK(!x86_architecture.find_trap(code, length, &skipped) || skipped < length);
	arm64_architecture.decode_variable(code, length, 0x1000, &variable);
	arm64_architecture.decode_thread_area(code, length, &variable);
	CHECK(!offsets__lookup(VERSION_3_13, BUILD_WITH_GIL, &offsets) &&
	      !offsets__layout(&offsets, &layout));
	arm64_architecture.decode_entry_gap(code, length, &layout, &gap);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct elf_budget budget = { .bytes = BUDGET_BYTES };
	struct elf_image *image;

	CHECK(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	memory__set(bytes, size, 0);
	image = elf_image__open(fd, &budget);
	if (image) {
		look_around(image);
		read_frames(image);
		read_names(image);
	}
	elf_image__close(image);
	find_probes(bytes, size);
	decode(bytes, size);
	read_as_name(bytes, size);
	return 0;
}
