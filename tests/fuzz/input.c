// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <string.h>
#include <time.h>

#include "debug_offsets_images.h"
#include "input.h"
#include "reading/reader.h"
#include "reading/target_memory.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* The end of memory; and the least memory that can be read, so long reads stay fast. */
#define ADDRESS_LIMIT (1ULL << 46)
#define MEMORY_MIN    64

#define READ_BYTES_MAX (4 * 1024 * 1024)

#define MADE_TABLES 0x80
#define PATCHES_MAX 8
#define IMAGE_WORDS 256

/* How long a read of the clock takes. */
#define LOOK_NS 500000

static int64_t now_ns;

static struct {
	const uint8_t *bytes;
	size_t size;
	unsigned int every, reads;
} memory;

void input__take(struct input *input, void *part, size_t size)
{
	size_t taken = size < input->left ? size : input->left;

	memset(part, 0, size);
	memcpy(part, input->next, taken);
	input->next += taken;
	input->left -= taken;
}

uint64_t input__number(struct input *input, size_t width)
{
	uint64_t number = 0;

	input__take(input, &number, width);
	return number;
}

static bool take_known(unsigned int choice, struct offsets *offsets)
{
	static const uint32_t versions[] = {
		0x020712f0, 0x03060ff0, 0x030700f0, 0x030710f0, 0x030812f0, 0x030912f0, 0x030a0df0,
		0x030b07f0, 0x030c01f0, 0x030d00f0, 0x030e00f0, 0x030f00f0, 0x031000f0,
	};
	uint32_t version = versions[choice % ARRAY_SIZE(versions)];

	return !offsets__lookup(version, choice / ARRAY_SIZE(versions) % 2, offsets);
}

/* Applies one of the real tables with some of its numbers changed. */
static bool take_made(struct input *input, unsigned int choice, struct offsets *offsets)
{
	static const struct {
		const uint64_t *words;
		size_t size;
	} images[] = {
		{ image_3_13_0, sizeof(image_3_13_0) },
		{ image_3_14_10, sizeof(image_3_14_10) },
		{ image_3_15_2, sizeof(image_3_15_2) },
		{ image_3_13_18t, sizeof(image_3_13_18t) },
		{ image_3_14_10t, sizeof(image_3_14_10t) },
		{ image_3_15_2t, sizeof(image_3_15_2t) },
	};
	size_t size = images[choice % ARRAY_SIZE(images)].size;
	unsigned int patches = input__number(input, 1) % (PATCHES_MAX + 1);
	uint64_t words[IMAGE_WORDS];

	memcpy(words, images[choice % ARRAY_SIZE(images)].words, size);
	while (patches--) {
		size_t index = input__number(input, 1);

		words[index % (size / sizeof(*words))] = input__number(input, 4);
	}
	return offsets__lookup(words[1], words[2] & 1, offsets) != -ENOTSUP &&
	       !debug_offsets__apply((const uint8_t *)words, size, offsets);
}

bool input__take_offsets(struct input *input, struct offsets *offsets)
{
	unsigned int choice = input__number(input, 1);

	return choice & MADE_TABLES ? take_made(input, choice & ~MADE_TABLES, offsets)
				    : take_known(choice, offsets);
}

void memory__set(const uint8_t *bytes, size_t size, unsigned int every)
{
	memory.bytes = bytes;
	memory.size = size;
	memory.every = every;
	memory.reads = 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_nanosleep(const struct timespec *requested, struct timespec *left);

/* The linker directs calls of clock_gettime() and nanosleep() here, so that runs are fast and
 * reproducible. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	now_ns += LOOK_NS;
	*now = (struct timespec){ now_ns / 1000000000, now_ns % 1000000000 };
	return 0;
}

int __wrap_nanosleep(const struct timespec *requested, struct timespec *left)
{
	(void)left;
	now_ns += requested->tv_sec * 1000000000LL + requested->tv_nsec;
	return 0;
}

/* Replaces user/reading/reader.c: reads complete at once. */
int reader__begin(void)
{
	return 0;
}

void *reader__desk(void)
{
	static uint64_t desk[READER_DESK_BYTES / sizeof(uint64_t)];

	return desk;
}

int64_t reader__run(pid_t pid, int64_t (*work)(void *desk))
{
	(void)pid;
	return work(reader__desk());
}

void reader__send(void (*errand)(void *context), void *context)
{
	errand(context);
}

void reader__hold(int fd)
{
	(void)fd;
}

void *reader__lend(void *lent)
{
	return lent;
}

void *reader__take_back(void *lent)
{
	return lent;
}

bool reader__answers(pid_t pid)
{
	(void)pid;
	return true;
}

uint64_t reader__missed(pid_t pid)
{
	(void)pid;
	return 0;
}

bool reader__has_given_up(pid_t pid)
{
	(void)pid;
	return false;
}

void reader__wait(pid_t pid)
{
	(void)pid;
}

void reader__give_up(void)
{
}

void reader__forget(pid_t pid)
{
	(void)pid;
}

void reader__relieve(void)
{
}

/* From here on replaces user/target/target_memory.c. */
int target_memory__read(pid_t pid, uint64_t address, void *buffer, size_t length)
{
	uint8_t *to = buffer;

	(void)pid;
	if (memory.size < MEMORY_MIN || length > READ_BYTES_MAX || address >= ADDRESS_LIMIT)
		return -EFAULT;
	for (size_t at = address % memory.size, done = 0, part; done < length; done += part) {
		part = memory.size - at < length - done ? memory.size - at : length - done;
		memcpy(to + done, memory.bytes + at, part);
		at = 0;
	}
	if (memory.every && length && ++memory.reads % memory.every == 0)
		to[memory.reads % length] ^= memory.reads;
	return 0;
}

int target_memory__read_pointer(pid_t pid, uint64_t address, uint64_t *pointer)
{
	return target_memory__read(pid, address, pointer, sizeof(*pointer));
}

void target_memory__page_in(pid_t pid, uint64_t address)
{
	uint64_t word;

	target_memory__read(pid, address, &word, sizeof(word));
}

void target_memory__read_each(pid_t pid, const uint64_t *addresses, size_t count, void *buffer,
			      size_t size, bool *readable)
{
	for (size_t i = 0; i < count; i++)
		readable[i] =
			!target_memory__read(pid, addresses[i], (uint8_t *)buffer + i * size, size);
}

void target_memory__read_parts(pid_t pid, struct memory_part *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		parts[i].readable =
			!target_memory__read(pid, parts[i].address, parts[i].buffer, parts[i].size);
}
