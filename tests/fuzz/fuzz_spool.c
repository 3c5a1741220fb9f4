// SPDX-License-Identifier: BSD-2-Clause
/* The input: files in a store's folder "push", as anyone who can write to it may leave them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "input.h"
#include "push/queue.h"

/* In memory: on a disk, an input takes 20 ms. */
#define FOLDER "/dev/shm/fuzz-spool-XXXXXX"

#define FILES_MAX      16
#define NAME_MAX_BYTES 40

/* What happens to a request that is found. */
enum fate { RESTS, MARKED, REMOVED, FATES };

struct found {
	struct push_request *first;
	int64_t samples;
	uint64_t bytes;
};

static struct push_destinations destinations;
static struct input input;

/* Takes a file's name: the number in its bytes, or an arbitrary name. */
static void take_name(const char *bytes, size_t length, char name[NAME_MAX_BYTES + 1])
{
	uint64_t number = 0;
	size_t named = input__number(&input, 1);

	memcpy(&number, bytes + 8, length < 16 ? 0 : sizeof(number));
	if (named % 4 < 3) {
		snprintf(name, NAME_MAX_BYTES + 1, "%016llx%s", (unsigned long long)number,
			 named % 4 ? "" : ".sent");
		return;
	}
	input__take(&input, name, NAME_MAX_BYTES);
	name[NAME_MAX_BYTES] = '\0';
	for (char *at = name; *at; at++)
		if (*at == '/' || (*at == '.' && at == name))
			*at = '_';
}

static void put_file(int folder)
{
	char bytes[UINT8_MAX + 1] = "", name[NAME_MAX_BYTES + 1];
	size_t length = input__number(&input, 1);
	uint8_t kind;
	int fd;

	length = length < input.left ? length : input.left;
	input__take(&input, bytes, length);
	take_name(bytes, length, name);
	kind = input__number(&input, 1);
	if (kind == 1) {
		mkfifoat(folder, name, 0600);
		return;
	}
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK, 0600);
	if (fd < 0)
		return;
	CHECK(write(fd, bytes, length) == (ssize_t)length);
	if (kind == 2)
		(void)!ftruncate(fd, (off_t)input__number(&input, 5));
	close(fd);
}

static void take(void *context, struct push_request *request, bool sent)
{
	struct found *found = context;

	CHECK(request->file && !request->body && request->marked == sent);
	CHECK(request->destination < destinations.count);
	CHECK(!__builtin_add_overflow(found->samples, (int64_t)request->samples, &found->samples));
	CHECK(!__builtin_add_overflow(found->bytes, request->length, &found->bytes));
	CHECK(request->start_unix_ns >= 0);
	request->next = found->first;
	found->first = request;
}

static void use(struct spool *spool, struct push_request *request, enum fate fate)
{
	/* A request of 256 MiB is allowed, but slow to load. */
	if (request->length <= UINT16_MAX)
		spool__load(spool, request);
	switch (fate) {
	case RESTS:
		spool__rest(spool, request);
		break;
	case MARKED:
		spool__mark(spool, request);
		break;
	default:
		spool__remove(spool, request);
	}
}

/* Uses each request in FOLDER as the input says, or removes it. */
static void use_all(int folder, bool remove)
{
	struct spool *spool = spool__open(folder, &destinations);
	struct found found = { 0 };
	struct push_request *request, *mine = xcalloc(1, sizeof(*mine));

	CHECK(spool);
	spool__find(spool, take, &found);
	while ((request = found.first)) {
		found.first = request->next;
		use(spool, request, remove ? REMOVED : input__number(&input, 1) % FATES);
		free(request->body);
		free(request);
	}
	mine->body = xstrdup("mine");
	mine->length = strlen(mine->body);
	spool__put(spool, mine);
	CHECK(spool__load(spool, mine) && memcmp(mine->body, "mine", mine->length) == 0);
	if (remove)
		spool__remove(spool, mine);
	free(mine->body);
	free(mine);
	spool__close(spool);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char path[] = FOLDER, *push;
	int folder;

	if (!destinations.count) {
		log__set_level(LOG_ERROR);
		CHECK(!push_destinations__add(&destinations, "parca+http://a"));
		CHECK(!push_destinations__add(&destinations, "pyroscope+http://b tenant=c"));
	}
	input = (struct input){ bytes, size };
	CHECK(mkdtemp(path));
	folder = spool__folder(path);
	CHECK(folder >= 0);
	for (size_t i = 0; i < FILES_MAX && input.left; i++)
		put_file(folder);
	use_all(folder, false);
	use_all(folder, true);
	close(folder);
	/* Nothing is left. */
	push = xasprintf("%s/push", path);
	CHECK(!rmdir(push) && !rmdir(path));
	free(push);
	return 0;
}
