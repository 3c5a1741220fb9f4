// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "architecture/architecture.h"
#include "python/python_version.h"
#include "reading/target_memory.h"

/* _Py_DebugOffsets begins with this and PY_VERSION_HEX (Include/internal/pycore_debug_offsets.h).
 */
#define DEBUG_COOKIE "xdebugpy"

/* The cache tag of the import system (Python/sysmodule.c); "cpython-38" for 3.8. */
#define CACHE_TAG "cpython-"

/* Every CPython prints this before it aborts (Python/pythonrun.c, pylifecycle.c). */
#define LAST_WORDS "Fatal Python error: "

/* The first version with a section .PyRuntime. */
#define SECTION_SINCE 0x030a0000

/* PyPy's own version in sys.version, "[PyPy 7.3.11 with GCC 12.2.0]".  It is in writable data. */
#define PYPY_VERSION	   "[PyPy "
#define PYPY_VERSION_BYTES 16

/* A program with more constants is not searched for a Python without symbols. */
#define CONSTANTS_BYTES_MAX (256 * 1024 * 1024)

/* The note of an image without a Python's constants.  Otherwise the note is the version. */
#define NO_PYTHON 1

#define RELEASE_LEVEL_FINAL 0xf

static const struct python_kind pypy = { "PyPy", "CPython" };
static const struct python_kind narrow = { "a 32-bit Python", "64-bit Python" };

/* Programs for other architectures, which run in an emulator.  It maps them as the kernel would. */
static const struct {
	uint16_t machine;
	struct python_kind kind;
} foreign[] = {
	{ EM_X86_64, { "an x86-64 Python", NULL } }, { EM_AARCH64, { "an aarch64 Python", NULL } },
	{ EM_386, { "a 32-bit x86 Python", NULL } }, { EM_ARM, { "a 32-bit Arm Python", NULL } },
	{ EM_RISCV, { "a RISC-V Python", NULL } },   { EM_PPC64, { "a POWER Python", NULL } },
	{ EM_MIPS, { "a MIPS Python", NULL } },
};

static const struct python_kind other = { "another architecture's Python", NULL };

bool python_version__find_runtime(struct elf_image *image, uint64_t *address)
{
	return elf_image__symbol(image, "_PyRuntime", address) ||
	       elf_image__section(image, ".PyRuntime", address);
}

static uint32_t version_hex(unsigned int major, unsigned int minor, unsigned int micro)
{
	return major << 24 | minor << 16 | (micro & 0xff) << 8 | RELEASE_LEVEL_FINAL << 4;
}

static uint32_t from_debug_offsets(pid_t pid, struct elf_image *image, uint64_t bias)
{
	uint64_t address, head[2];

	if (!python_version__find_runtime(image, &address) ||
	    target_memory__read(pid, address + bias, head, sizeof(head)) ||
	    memcmp(head, DEBUG_COOKIE, sizeof(head[0])) != 0)
		return 0;
	return head[1];
}

static uint32_t from_symbol(pid_t pid, struct elf_image *image, uint64_t bias)
{
	uint64_t address, version;

	if (!elf_image__symbol(image, "Py_Version", &address) ||
	    target_memory__read(pid, address + bias, &version, sizeof(version)))
		return 0;
	return version;
}

/* Searches for a NUL-terminated constant of PREFIX and digits. */
struct digits_search {
	const char *prefix;
	char digits[8];
};

static bool find_digits(const uint8_t *bytes, size_t length, uint64_t place, void *context)
{
	struct digits_search *search = context;
	size_t prefix_length = strlen(search->prefix);
	const uint8_t *at = bytes, *end = bytes + length;

	(void)place;
	while ((at = memmem(at, end - at, search->prefix, prefix_length))) {
		const uint8_t *digits = at + prefix_length;
		size_t count = 0;

		while (digits + count < end && isdigit(digits[count]))
			count++;
		if (count && count < sizeof(search->digits) && digits + count < end &&
		    (digits[count] == '\0' || digits[count] == '+') && !isdigit(at[-1]) &&
		    at[-1] != '.') {
			memcpy(search->digits, digits, count);
			search->digits[count] = '\0';
			return true;
		}
		at++;
	}
	return false;
}

/* PY_VERSION, "3.8.18", is a constant, or the end of a longer one. */
static uint32_t with_micro(struct elf_image *image, unsigned int major, unsigned int minor)
{
	char prefix[16];
	struct digits_search search = { .prefix = prefix };

	snprintf(prefix, sizeof(prefix), "%u.%u.", major, minor);
	if (!elf_image__search(image, false, find_digits, &search))
		return 0;
	return version_hex(major, minor, atoi(search.digits));
}

static uint32_t from_constants(struct elf_image *image)
{
	struct digits_search tag = { .prefix = CACHE_TAG };
	uint32_t version;

	if (!elf_image__search(image, false, find_digits, &tag))
		return with_micro(image, 2, 7);
	version = with_micro(image, tag.digits[0] - '0', atoi(tag.digits + 1));
	return version ? version : version_hex(tag.digits[0] - '0', atoi(tag.digits + 1), 0);
}

/* VERSION; 0 if it cannot be the version of a CPython. */
static uint32_t check(uint32_t version)
{
	uint32_t major = version >> 24;

	return major >= 2 && major <= 4 ? version : 0;
}

static bool find_last_words(const uint8_t *bytes, size_t length, uint64_t place, void *context)
{
	(void)place;
	(void)context;
	return memmem(bytes, length, LAST_WORDS, strlen(LAST_WORDS));
}

static bool has_many_constants(const struct elf_image *image)
{
	const Elf64_Phdr *segments = image->segments;
	uint64_t left = CONSTANTS_BYTES_MAX;

	for (size_t i = 0; i < image->header.e_phnum; i++) {
		if (segments[i].p_type != PT_LOAD || segments[i].p_flags & PF_W)
			continue;
		if (segments[i].p_filesz > left)
			return true;
		left -= segments[i].p_filesz;
	}
	return false;
}

static uint32_t look_for_unnamed(struct elf_image *image)
{
	uint32_t version = 0;

	if (elf_image__is_program(image) && !has_many_constants(image) &&
	    elf_image__search(image, false, find_last_words, NULL))
		version = check(from_constants(image));
	return version && version < SECTION_SINCE ? version : NO_PYTHON;
}

static bool find_pypy_version(const uint8_t *bytes, size_t length, uint64_t place, void *context)
{
	const uint8_t *at = memmem(bytes, length, PYPY_VERSION, strlen(PYPY_VERSION));
	unsigned int major, minor, micro;
	char text[PYPY_VERSION_BYTES + 1] = "";
	size_t left;

	(void)place;
	if (!at)
		return false;
	at += strlen(PYPY_VERSION);
	left = bytes + length - at;
	memcpy(text, at, left < PYPY_VERSION_BYTES ? left : PYPY_VERSION_BYTES);
	if (sscanf(text, "%3u.%3u.%3u", &major, &minor, &micro) != 3)
		return false;
	*(uint32_t *)context = version_hex(major & 0xff, minor & 0xff, micro);
	return true;
}

bool python_version__is_named(struct elf_image *image)
{
	uint64_t address;

	return python_version__find_runtime(image, &address) ||
	       elf_image__symbol(image, "PyInterpreterState_Head", &address);
}

/* Whether IMAGE is a stripped program with a CPython older than 3.10, shown only by its constants.
 */
static bool is_unnamed(struct elf_image *image)
{
	uint32_t *known = &image->note;

	/* The result is cached, as the search reads megabytes of the file. */
	if (!*known)
		*known = look_for_unnamed(image);
	return *known != NO_PYTHON;
}

static bool is_pypy(struct elf_image *image)
{
	uint64_t address;

	return elf_image__exported_symbol(image, "pypy_execute_source", &address);
}

bool python_version__is_any(struct elf_image *image)
{
	return python_version__is_named(image) || is_pypy(image) || is_unnamed(image);
}

uint32_t python_version__detect(pid_t pid, struct elf_image *image, uint64_t bias)
{
	uint32_t version = check(from_debug_offsets(pid, image, bias));
	uint32_t *known = &image->note;

	if (!version)
		version = check(from_symbol(pid, image, bias));
	if (version)
		return version;
	/* Cached too: it depends on the file alone. */
	if (!*known && is_pypy(image))
		elf_image__search(image, true, find_pypy_version, known);
	else if (!*known)
		*known = check(from_constants(image));
	return *known;
}

void python_version__format(uint32_t version, char text[PYTHON_VERSION_TEXT_MAX])
{
	static const char *const levels[16] = { [0xa] = "a", [0xb] = "b", [0xc] = "rc" };
	const char *level = levels[version >> 4 & 0xf];
	int length;

	if (!version) {
		snprintf(text, PYTHON_VERSION_TEXT_MAX, "(unknown)");
		return;
	}
	length = snprintf(text, PYTHON_VERSION_TEXT_MAX, "%u.%u.%u", version >> 24,
			  version >> 16 & 0xff, version >> 8 & 0xff);

	if (level)
		snprintf(text + length, PYTHON_VERSION_TEXT_MAX - length, "%s%u", level,
			 version & 0xf);
}

const struct python_kind *python_kind__of(struct elf_image *image)
{
	uint16_t machine = image->header.e_machine;

	if (is_pypy(image))
		return &pypy;
	if (elf_image__is_native(image))
		return NULL;
	if (machine == ARCHITECTURE.machine || machine == ARCHITECTURE.narrow_machine)
		return &narrow;
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		if (foreign[i].machine == machine)
			return &foreign[i].kind;
	return &other;
}
