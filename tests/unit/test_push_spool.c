// SPDX-License-Identifier: BSD-2-Clause
/* Requests that wait on disk, in a real folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "push/queue.h"

#define SECOND 1000000000LL
#define FIRST  "parca+http://a"
#define OTHER  "pyroscope+http://b/with/a/path"

struct test {
	char folder[32];
	int fd;
	struct push_destinations destinations;
	struct spool *spool;
	/* The requests found, as "1 2! ": the samples of each; "!" marks one being sent. */
	char found[256];
	struct push_request *last; /* the last one found */
};

static void open_spool(struct test *test)
{
	test->spool = spool__open(test->fd, &test->destinations);
	assert_non_null(test->spool);
}

static int set_up(void **state)
{
	struct test *test = xcalloc(1, sizeof(*test));

	log__set_level(LOG_ERROR);
	strcpy(test->folder, "/tmp/pybpfprof-spool-XXXXXX");
	assert_non_null(mkdtemp(test->folder));
	test->fd = spool__folder(test->folder);
	assert_true(test->fd >= 0);
	assert_null(push_destinations__add(&test->destinations, FIRST));
	assert_null(push_destinations__add(&test->destinations, OTHER));
	open_spool(test);
	*state = test;
	return 0;
}

static void free_request(struct push_request *request)
{
	if (request)
		free(request->body);
	free(request);
}

static int tear_down(void **state)
{
	struct test *test = *state;
	char *command = xasprintf("rm -rf %s", test->folder);

	free_request(test->last);
	spool__close(test->spool);
	close(test->fd);
	push_destinations__free(&test->destinations);
	assert_int_equal(system(command), 0);
	free(command);
	free(test);
	return 0;
}

static struct push_request *make(uint32_t destination, uint64_t samples, const char *body)
{
	struct push_request *request = xcalloc(1, sizeof(*request));

	request->destination = destination;
	request->samples = samples;
	request->start_unix_ns = 5 * SECOND;
	request->body = xstrdup(body);
	request->length = strlen(body);
	return request;
}

/* Puts a request on disk; its body is not kept in memory. */
static struct push_request *put(struct test *test, uint32_t destination, uint64_t samples,
				const char *body)
{
	struct push_request *request = make(destination, samples, body);

	spool__put(test->spool, request);
	assert_null(request->body);
	assert_true(request->file);
	return request;
}

static void take(void *context, struct push_request *request, bool sent)
{
	struct test *test = context;
	size_t length = strlen(test->found);

	assert_null(request->body);
	snprintf(test->found + length, sizeof(test->found) - length, "%d%s ", (int)request->samples,
		 sent ? "!" : "");
	free_request(test->last);
	test->last = request;
}

/* What another process would find. */
static const char *found(struct test *test)
{
	spool__close(test->spool);
	open_spool(test);
	test->found[0] = '\0';
	spool__find(test->spool, take, test);
	return test->found;
}

static void a_request_on_disk_is_found(void **state)
{
	struct test *test = *state;
	char path[64];
	struct stat status;

	assert_string_equal(found(test), "");
	free_request(put(test, 0, 1, "one"));
	free_request(put(test, 1, 2, "two, of another backend"));
	assert_string_equal(found(test), "1 2 ");
	assert_int_equal(test->last->destination, 1);
	assert_int_equal(test->last->start_unix_ns, 5 * SECOND);
	assert_int_equal(test->last->length, strlen("two, of another backend"));
	assert_true(spool__load(test->spool, test->last));
	assert_memory_equal(test->last->body, "two, of another backend", test->last->length);
	/* A new request comes after those found. */
	free_request(put(test, 0, 3, "three"));
	assert_string_equal(found(test), "1 2 3 ");
	snprintf(path, sizeof(path), "%s/push", test->folder);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0700);
}

static void a_request_being_sent_is_marked(void **state)
{
	struct test *test = *state;
	struct push_request *one = put(test, 0, 1, "one"), *two = put(test, 0, 2, "two");

	assert_true(spool__load(test->spool, one));
	spool__mark(test->spool, one);
	assert_string_equal(found(test), "1! 2 ");
	spool__rest(test->spool, one);
	assert_null(one->body);
	assert_string_equal(found(test), "1 2 ");
	spool__mark(test->spool, one);
	assert_true(spool__load(test->spool, one));
	spool__remove(test->spool, one);
	assert_string_equal(found(test), "2 ");
	spool__remove(test->spool, two);
	assert_string_equal(found(test), "");
	free_request(one);
	free_request(two);
}

/* Parts do not count until the whole is removed. */
static void parts_are_kept_in_place_of_the_whole(void **state)
{
	struct test *test = *state;
	struct push_request *whole = put(test, 1, 6, "all"), *later = put(test, 1, 9, "later");
	struct push_request *parts[3];

	for (unsigned int i = 0; i < 3; i++) {
		parts[i] = make(1, i + 1, "part");
		spool__put_part(test->spool, parts[i], whole, i + 1);
		assert_null(parts[i]->body);
	}
	assert_string_equal(found(test), "6 9 ");
	for (unsigned int i = 0; i < 3; i++) {
		parts[i]->body = xstrdup("part");
		spool__put_part(test->spool, parts[i], whole, i + 1);
	}
	spool__remove(test->spool, whole);
	assert_string_equal(found(test), "1 2 3 9 ");
	assert_true(spool__load(test->spool, parts[2]));
	spool__remove(test->spool, parts[0]);
	spool__remove(test->spool, later);
	assert_string_equal(found(test), "2 3 ");
	free_request(put(test, 1, 10, "the next one is none of them"));
	assert_string_equal(found(test), "2 3 10 ");
	for (unsigned int i = 0; i < 3; i++)
		free_request(parts[i]);
	free_request(whole);
	free_request(later);
}

/* Whether the request is marked as being sent or not.  The old body never stays beside it. */
static void a_new_body_replaces_the_old_one(void **state)
{
	struct test *test = *state;
	struct push_request *one = put(test, 1, 6, "all"), *two = put(test, 1, 9, "two");

	for (int round = 0; round < 2; round++) {
		assert_true(spool__load(test->spool, one));
		free(one->body);
		one->body = xstrdup("rest");
		one->length = strlen("rest");
		one->samples--;
		spool__replace(test->spool, one);
		assert_string_equal(one->body, "rest");
		assert_string_equal(found(test), round ? "4 9 " : "5 9 ");
		spool__mark(test->spool, one);
	}
	assert_string_equal(found(test), "4! 9 ");
	spool__rest(test->spool, one);
	assert_true(spool__load(test->spool, one));
	assert_memory_equal(one->body, "rest", one->length);
	/* A request in memory stays there. */
	free_request(two);
	two = make(0, 1, "memory");
	spool__replace(test->spool, two);
	assert_string_equal(found(test), "4 9 ");
	free_request(one);
	free_request(two);
}

static void damage(struct test *test, uint64_t number, const char *how)
{
	char *command = xasprintf("cd %s/push && f=%016llx && %s", test->folder,
				  (unsigned long long)number, how);

	assert_int_equal(system(command), 0);
	free(command);
}

/* Files as a crash of the machine, or another program, may leave them. */
static void damaged_files_are_not_taken(void **state)
{
	static const char *const damages[] = {
		": >$f",
		"truncate -s -1 $f",
		"echo more >>$f",
		"printf x | dd of=$f conv=notrunc 2>/dev/null",
		/* The length of the URL, and of the body. */
		"printf '\\377\\377' | dd of=$f conv=notrunc bs=1 seek=38 2>/dev/null",
		"printf '\\377\\377' | dd of=$f conv=notrunc bs=1 seek=46 2>/dev/null",
		/* Its number, twice; its samples; the start of its window. */
		"dd if=/dev/zero of=$f conv=notrunc bs=1 seek=8 count=8 2>/dev/null; mv $f "
		"0000000000000000",
		"printf '\\377\\377\\377\\377\\377\\377\\377\\377' | dd of=$f conv=notrunc bs=1 "
		"seek=8 2>/dev/null; mv $f ffffffffffffffff",
		"printf '\\177' | dd of=$f conv=notrunc bs=1 seek=23 2>/dev/null",
		"printf '\\377' | dd of=$f conv=notrunc bs=1 seek=31 2>/dev/null",
		/* A file of 1 TiB, all of it the URL, or the body. */
		"printf '\\312\\377\\377\\377\\377' | dd of=$f conv=notrunc bs=1 seek=32 "
		"2>/dev/null; truncate -s 1T $f",
		"printf '\\302\\377\\377\\377\\377' | dd of=$f conv=notrunc bs=1 seek=40 "
		"2>/dev/null; truncate -s 1T $f",
		"rm $f; mkfifo $f",
		"mv $f 0000000000000001x",
		"ln -sf /etc/passwd $f",
		"cp $f unwritten; rm $f",
	};
	struct test *test = *state;

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct push_request *broken = put(test, 0, 1, "a body"), *whole;

		whole = put(test, 1, 2, "another");
		damage(test, broken->file, damages[i]);
		assert_string_equal(found(test), "2 ");
		spool__remove(test->spool, whole);
		/* The damaged file was removed. */
		damage(test, broken->file, "test -z \"$(ls)\"");
		free_request(broken);
		free_request(whole);
	}
}

static void a_request_that_was_removed_is_not_loaded(void **state)
{
	struct test *test = *state;
	struct push_request *request = put(test, 0, 1, "one");

	damage(test, request->file, "rm $f");
	assert_false(spool__load(test->spool, request));
	free_request(request);
}

static void a_request_that_cannot_be_written_stays_in_memory(void **state)
{
	struct test *test = *state;
	struct push_request *request = make(0, 1, "one");

	damage(test, 0, "mkdir unwritten");
	log__set_level(LOG_ERROR);
	spool__put(test->spool, request);
	assert_string_equal(request->body, "one");
	assert_int_equal(request->file, 0);
	assert_true(spool__load(test->spool, request));
	spool__rest(test->spool, request);
	assert_non_null(request->body);
	damage(test, 0, "rmdir unwritten");
	free_request(request);
}

/* To open a pipe that has no reader would block. */
static void a_pipe_in_the_way_is_replaced(void **state)
{
	struct test *test = *state;

	damage(test, 0, "mkfifo unwritten");
	free_request(put(test, 0, 1, "one"));
	assert_string_equal(found(test), "1 ");
	assert_true(spool__load(test->spool, test->last));
}

static void a_request_that_became_a_pipe_is_not_loaded(void **state)
{
	struct test *test = *state;
	struct push_request *request = put(test, 0, 1, "one");

	damage(test, request->file, "rm $f; mkfifo $f");
	assert_false(spool__load(test->spool, request));
	free_request(request);
}

static void requests_for_removed_backends_are_not_found(void **state)
{
	struct test *test = *state;

	free_request(put(test, 0, 1, "one"));
	free_request(put(test, 1, 2, "two"));
	push_destinations__free(&test->destinations);
	assert_null(push_destinations__add(&test->destinations, OTHER));
	assert_string_equal(found(test), "2 ");
	assert_int_equal(test->last->destination, 0);
	assert_true(spool__load(test->spool, test->last));
	assert_memory_equal(test->last->body, "two", 3);
}

static void a_spool_that_is_not_needed_is_cleared(void **state)
{
	struct test *test = *state;
	char *path = xasprintf("%s/push", test->folder);

	free_request(put(test, 0, 1, "one"));
	free_request(put(test, 1, 2, "two"));
	spool__close(test->spool);
	test->spool = NULL;
	spool__clear(test->folder);
	assert_int_equal(access(path, F_OK), -1);
	/* To clear it again is no error. */
	spool__clear(test->folder);
	assert_int_equal(access(path, F_OK), -1);
	free(path);
}

/* Tenants share a URL, but a request of one is never sent for another. */
static void tenants_have_their_own_requests(void **state)
{
	struct test *test = *state;

	push_destinations__free(&test->destinations);
	assert_null(push_destinations__add(&test->destinations, FIRST " tenant=us"));
	assert_null(push_destinations__add(&test->destinations, FIRST " tenant=eu"));
	free_request(put(test, 0, 1, "of us"));
	free_request(put(test, 1, 2, "of eu"));
	push_destinations__free(&test->destinations);
	assert_null(push_destinations__add(&test->destinations, FIRST));
	assert_null(push_destinations__add(&test->destinations, FIRST " tenant=eu"));
	assert_string_equal(found(test), "2 ");
	assert_int_equal(test->last->destination, 1);
	assert_true(spool__load(test->spool, test->last));
	assert_memory_equal(test->last->body, "of eu", 5);
}

/* Requests that still wait stay on disk; those with an outcome are removed. */
static void a_queue_keeps_waiting_requests_on_disk(void **state)
{
	static const struct push_verdict delivered = { .action = PUSH_SETTLE };
	struct test *test = *state;
	const struct push_limits limits = { .bytes = 100, .spool = test->spool };
	struct push_counts counts = { 0 };
	struct push_queue *queue = push_queue__new(&limits, &counts, 1);
	const struct push_moment now = { SECOND, SECOND };

	for (uint64_t i = 1; i <= 4; i++)
		push_queue__add(queue, put(test, 0, i, "1234567890123456789012345678901"));
	/* The first one was evicted. */
	push_queue__settle(queue, push_queue__take(queue, &now), &delivered, &now);
	push_queue__take(queue, &now);
	push_queue__free(queue);
	assert_int_equal(counts.outcomes[PUSH_QUEUE_FULL].samples, 1);
	assert_int_equal(counts.outcomes[PUSH_DELIVERED].samples, 2);
	assert_int_equal(counts.outcomes[PUSH_UNKNOWN].samples, 3);
	assert_int_equal(counts.outcomes[PUSH_KEPT].samples, 4);
	assert_string_equal(found(test), "4 ");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_request_on_disk_is_found),
		TEST(a_request_being_sent_is_marked),
		TEST(parts_are_kept_in_place_of_the_whole),
		TEST(a_new_body_replaces_the_old_one),
		TEST(damaged_files_are_not_taken),
		TEST(a_request_that_was_removed_is_not_loaded),
		TEST(a_request_that_cannot_be_written_stays_in_memory),
		TEST(a_pipe_in_the_way_is_replaced),
		TEST(a_request_that_became_a_pipe_is_not_loaded),
		TEST(requests_for_removed_backends_are_not_found),
		TEST(a_spool_that_is_not_needed_is_cleared),
		TEST(tenants_have_their_own_requests),
		TEST(a_queue_keeps_waiting_requests_on_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
