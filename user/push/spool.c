// SPDX-License-Identifier: BSD-2-Clause
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/small_file.h"
#include "base/xalloc.h"
#include "push/queue.h"
#include "push/spool.h"
#include "store/folder_lock.h"

#define FOLDER	  "push"
#define UNWRITTEN "unwritten"
#define SENT	  ".sent"

/* Changes with the format of files, and with the format of requests to any backend. */
#define MAGIC 0x32687375706e7970ULL

/* Requests have multiples of this as their numbers; parts add theirs. */
#define PARTS	   0x10000ULL
#define NUMBER_MAX ((uint64_t)INT64_MAX)

/* No request has more, and sums of them do not overflow. */
#define BODY_BYTES_MAX	    (256ULL << 20)
#define REQUEST_SAMPLES_MAX (1ULL << 40)

/* The head of a file; the destination's name and the body follow. */
struct head {
	uint64_t magic;
	uint64_t number; /* in steps of PARTS */
	uint64_t samples;
	int64_t start_unix_ns;
	uint64_t name_length, length;
};

struct spool {
	int folder;
	const struct push_destinations *destinations;
	uint64_t last; /* number of the last request */
	bool failing;  /* the last request stayed in memory */
};

/* A file name: a number, perhaps SENT. */
struct name {
	char text[48];
};

static struct name name_of(uint64_t number, bool sent)
{
	struct name name;

	snprintf(name.text, sizeof(name.text), "%016" PRIx64 "%s", number, sent ? SENT : "");
	return name;
}

int spool__folder(const char *folder)
{
	char *path = xasprintf("%s/" FOLDER, folder);
	int fd = -1;

	if ((!mkdir(folder, 0700) || errno == EEXIST) && (!mkdir(path, 0700) || errno == EEXIST))
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	free(path);
	return fd;
}

struct spool *spool__open(int folder, const struct push_destinations *destinations)
{
	struct spool *spool;
	int fd;

	if (folder < 0)
		return NULL;
	fd = folder_lock__take(folder, ".");
	if (fd < 0) {
		log__warning("profiles to push wait in memory only: the store's folder "
			     "\"" FOLDER "\" is unusable: %s",
			     errno == EWOULDBLOCK ? "another agent uses it" : strerror(errno));
		return NULL;
	}
	spool = xcalloc(1, sizeof(*spool));
	spool->folder = fd;
	spool->destinations = destinations;
	return spool;
}

void spool__close(struct spool *spool)
{
	if (!spool)
		return;
	close(spool->folder);
	free(spool);
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(((const struct name *)left)->text, ((const struct name *)right)->text);
}

/* All files, oldest first; the caller frees them. */
static struct name *list(const struct spool *spool, size_t *count)
{
	int fd = openat(spool->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	struct name *names = NULL;
	const struct dirent *entry;
	size_t capacity = 0;

	*count = 0;
	while (folder && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof(names->text))
			continue;
		names = xgrow(names, &capacity, *count + 1, sizeof(*names));
		strcpy(names[(*count)++].text, entry->d_name);
	}
	if (folder)
		closedir(folder);
	if (*count)
		qsort(names, *count, sizeof(*names), compare_names);
	return names;
}

/* Opens a regular file.  A pipe must not block. */
static int open_file(const struct spool *spool, const char *name, uint64_t *size)
{
	int fd = openat(spool->folder, name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat status;

	if (fd < 0)
		return -1;
	if (fstat(fd, &status) || !S_ISREG(status.st_mode)) {
		close(fd);
		return -1;
	}
	*size = (uint64_t)status.st_size;
	return fd;
}

static bool is_named(int fd, const struct head *head, const char *name)
{
	char *read;
	bool same;

	if (head->name_length != strlen(name))
		return false;
	read = xmalloc(head->name_length + 1);
	same = !small_file__read_all(fd, read, head->name_length, sizeof(*head)) &&
	       memcmp(read, name, head->name_length) == 0;
	free(read);
	return same;
}

/* The index of the destination that HEAD names, or the number of destinations. */
static size_t find_destination(const struct spool *spool, int fd, const struct head *head)
{
	const struct push_destinations *destinations = spool->destinations;
	size_t i = 0;

	while (i < destinations->count && !is_named(fd, head, destinations->list[i].name))
		i++;
	return i;
}

/* Whether HEAD is plausible for a file of SIZE. */
static bool is_whole(const struct head *head, uint64_t size)
{
	uint64_t rest = size - sizeof(*head);

	return size >= sizeof(*head) && head->magic == MAGIC && head->name_length <= rest &&
	       head->length == rest - head->name_length && head->length <= BODY_BYTES_MAX &&
	       head->number && head->number <= NUMBER_MAX && head->samples <= REQUEST_SAMPLES_MAX &&
	       head->start_unix_ns >= 0;
}

/* The request in file NAME; NULL if it is damaged or for no configured destination. */
static struct push_request *read_head(const struct spool *spool, const char *name)
{
	struct push_request *request = NULL;
	struct head head = { 0 };
	uint64_t size = 0;
	size_t destination;
	int fd = open_file(spool, name, &size);

	if (fd < 0)
		return NULL;
	if (!small_file__read_all(fd, &head, sizeof(head), 0) && is_whole(&head, size)) {
		destination = find_destination(spool, fd, &head);
		if (destination < spool->destinations->count) {
			request = xcalloc(1, sizeof(*request));
			request->destination = (uint32_t)destination;
			request->file = head.number;
			request->length = head.length;
			request->samples = head.samples;
			request->start_unix_ns = head.start_unix_ns;
		}
	}
	close(fd);
	return request;
}

static bool is_part_of(uint64_t number, uint64_t whole)
{
	return !(whole % PARTS) && number != whole && number - number % PARTS == whole;
}

void spool__find(struct spool *spool,
		 void (*take)(void *context, struct push_request *request, bool sent),
		 void *context)
{
	size_t count = 0, removed = 0;
	struct name *names = spool ? list(spool, &count) : NULL;
	uint64_t whole = 0;

	for (size_t i = 0; i < count; i++) {
		struct push_request *request = read_head(spool, names[i].text);
		bool sent = strstr(names[i].text, SENT);

		if (request && strcmp(name_of(request->file, sent).text, names[i].text) == 0 &&
		    !is_part_of(request->file, whole)) {
			spool->last = request->file;
			whole = request->file;
			request->marked = sent;
			take(context, request, sent);
			continue;
		}
		free(request);
		removed += !unlinkat(spool->folder, names[i].text, 0) &&
			   strcmp(names[i].text, UNWRITTEN) != 0;
	}
	if (removed)
		log__warning("removed %zu requests that were incomplete, or for backends no longer "
			     "configured",
			     removed);
	free(names);
}

void spool__clear(const char *folder)
{
	const struct push_destinations none = { 0 };
	char *path = xasprintf("%s/" FOLDER, folder);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct spool *spool = spool__open(fd, &none);

	spool__find(spool, NULL, NULL);
	if (spool)
		rmdir(path);
	spool__close(spool);
	if (fd >= 0)
		close(fd);
	free(path);
}

static bool write_file(const struct spool *spool, const struct push_request *request)
{
	const char *name = spool->destinations->list[request->destination].name;
	const struct head head = {
		MAGIC,	      request->file,  request->samples, request->start_unix_ns,
		strlen(name), request->length
	};
	bool written;
	int fd;

	if (request->length > BODY_BYTES_MAX || request->file > NUMBER_MAX) {
		errno = EFBIG;
		return false;
	}
	/* Always a new file: an existing one may be a pipe. */
	unlinkat(spool->folder, UNWRITTEN, 0);
	fd = openat(spool->folder, UNWRITTEN, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	written = !small_file__write_all(fd, &head, sizeof(head)) &&
		  !small_file__write_all(fd, name, head.name_length) &&
		  !small_file__write_all(fd, request->body, request->length);
	close(fd);
	return written && !renameat(spool->folder, UNWRITTEN, spool->folder,
				    name_of(request->file, false).text);
}

static void put(struct spool *spool, struct push_request *request, uint64_t number)
{
	request->file = number;
	if (write_file(spool, request)) {
		free(request->body);
		request->body = NULL;
		spool->failing = false;
		return;
	}
	if (!spool->failing)
		log__warning("profiles to push wait in memory only: cannot write to the store: %s",
			     strerror(errno));
	unlinkat(spool->folder, UNWRITTEN, 0);
	request->file = 0;
	spool->failing = true;
}

void spool__put(struct spool *spool, struct push_request *request)
{
	if (!spool)
		return;
	spool->last += PARTS - spool->last % PARTS;
	put(spool, request, spool->last);
}

void spool__put_part(struct spool *spool, struct push_request *part,
		     const struct push_request *whole, unsigned int number)
{
	if (spool && whole->file)
		put(spool, part, whole->file + number);
}

bool spool__load(struct spool *spool, struct push_request *request)
{
	const struct push_destination *destination;
	uint64_t size;
	bool got;
	int fd;

	if (!spool || !request->file || request->body)
		return request->body;
	destination = &spool->destinations->list[request->destination];
	fd = open_file(spool, name_of(request->file, request->marked).text, &size);
	if (fd < 0)
		return false;
	request->body = xmalloc(request->length);
	got = !small_file__read_all(fd, request->body, request->length,
				    (off_t)(sizeof(struct head) + strlen(destination->name)));
	close(fd);
	return got;
}

static void set_mark(struct spool *spool, struct push_request *request, bool marked)
{
	if (!spool || !request->file || request->marked == marked)
		return;
	if (!renameat(spool->folder, name_of(request->file, request->marked).text, spool->folder,
		      name_of(request->file, marked).text))
		request->marked = marked;
}

void spool__mark(struct spool *spool, struct push_request *request)
{
	set_mark(spool, request, true);
}

void spool__replace(struct spool *spool, struct push_request *request)
{
	if (!spool || !request->file)
		return;
	set_mark(spool, request, false);
	if (write_file(spool, request))
		return;
	spool__remove(spool, request);
	request->file = 0;
}

void spool__rest(struct spool *spool, struct push_request *request)
{
	if (!spool || !request->file)
		return;
	set_mark(spool, request, false);
	free(request->body);
	request->body = NULL;
}

void spool__remove(struct spool *spool, struct push_request *request)
{
	if (spool && request->file)
		unlinkat(spool->folder, name_of(request->file, request->marked).text, 0);
}
