// SPDX-License-Identifier: BSD-2-Clause
/* Code objects at one address, one after another: told apart in definitions, and in samples where
 * that is asked for. */
#include <string.h>

#include "harness.h"

/* What the versions that number code objects say; the others ignore it. */
static uint32_t version_of(const struct image *image, uint32_t version)
{
	return image->offsets.code_version == OFFSET_ABSENT ? 0 : version;
}

static void set_version(const struct image *image, uint32_t number, uint32_t version)
{
	if (image->offsets.code_version != OFFSET_ABSENT)
		memcpy((void *)(CODE(number) + image->offsets.code_version), &version,
		       sizeof(version));
}

static void set_code(const struct image *image, uint32_t number, uint64_t name, uint32_t first_line)
{
	const struct offsets *offsets = &image->offsets;
	uint64_t code = CODE(number);

	image__set(code, offsets->code_name, name);
	image__set(code, offsets->code_filename, 0x7f00);
	image__set(code, offsets->code_linetable, 0x7f10);
	memcpy((void *)(code + offsets->code_firstlineno), &first_line, sizeof(first_line));
}

static void defines_with_identities(void **state)
{
	struct image *image = *state;
	const struct definition *sent;

	for (uint32_t i = 0; i < 40; i++) {
		set_code(image, i, 0x1000 + i, 7 * i);
		set_version(image, i, 3 * i);
	}
	harness__python_thread(image, image__interp(image), 0, 40);
	kernel__sample();
	assert_int_equal(kernel.definition_count, 1);
	sent = kernel.definitions[0];
	assert_int_equal(sent->depth, 40);
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(
			sent->frames[39 - i].identity,
			code_identity(0x1000 + i, 0x7f00, 0x7f10, 7 * i, version_of(image, 3 * i)));
}

/* To read them in each sample would cost more than the walk. */
static void reads_them_once_for_a_stack(void **state)
{
	struct image *image = *state;
	unsigned long without;

	set_code(image, 0, 1, 1);
	harness__python_thread(image, image__interp(image), 0, 1);
	kernel__sample();
	kernel__sample();
	without = kernel.reads;
	set_code(image, 0, 2, 2);
	kernel__sample();
	assert_int_equal(kernel.reads, without);
	assert_int_equal(kernel.definition_count, 1);
}

static void tells_samples_apart(void **state)
{
	struct image *image = *state;
	__u64 hash;

	set_code(image, 3, 1, 1);
	set_version(image, 3, 0);
	harness__python_thread(image, image__interp(image), 0, 5);
	kernel__sample();
	kernel__identify(TGID);
	hash = kernel__sample().hash;
	assert_int_equal(kernel__sample().hash, hash);
	assert_int_equal(kernel.definition_count, 2);
	set_code(image, 3, 1, 2);
	assert_int_not_equal(kernel__sample().hash, hash);
	assert_int_equal(kernel.definition_count, 3);
	assert_int_equal(kernel.definitions[2]->frames[1].identity,
			 code_identity(1, 0x7f00, 0x7f10, 2, 0));
	hash = kernel__sample().hash;
	set_version(image, 3, 1);
	assert_int_equal(kernel__sample().hash != hash, version_of(image, 1));
}

static void does_without_what_cannot_be_read(void **state)
{
	struct image *image = *state;
	uint64_t nowhere = image__nowhere(image);
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);

	image__call(image, tstate, nowhere, 0);
	image__call(image, tstate, CODE(1), 1);
	kernel__sample();
	assert_int_equal(kernel.definition_count, 1);
	assert_int_equal(kernel.definitions[0]->depth, 2);
	assert_int_equal(kernel.definitions[0]->frames[1].identity, 0);
	assert_int_not_equal(kernel.definitions[0]->frames[0].identity, 0);
}

int main(void)
{
	const struct check checks[] = {
		CHECK(defines_with_identities),
		CHECK(reads_them_once_for_a_stack),
		CHECK(tells_samples_apart),
		CHECK(does_without_what_cannot_be_read),
	};

	return harness__run(checks, sizeof(checks) / sizeof(checks[0]));
}
