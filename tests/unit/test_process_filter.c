// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "processes/process_filter.h"

#define ID "4f0dfa1f6c6d9d7a0a9a7b8e0f5d2c61b3e4d5c6f7a8b9c0d1e2f3a4b5c6d7e8"

static const struct identity web = {
	.short_name = "gunicorn",
	.comm = "python3",
	.uid = 1000,
	.user = "web",
	.cgroups = "4:memory:/batch\n0::/kubepods/pod1/" ID "\n",
	.cgroup = "/kubepods/pod1/" ID,
	.container_id = ID,
};

static const struct identity runner = { .short_name = "uvicorn shop:app", .user = "web" };
static const struct identity script = { .short_name = "shop app.py", .user = "web" };

/* Only its user is known. */
static const struct identity dark = { .uid = 7, .user = "7" };

static const struct identity named = { .container_id = "feed5", .uid = 7, .user = "7" };

static const struct identity short_named = { .container_id = "web", .uid = 7, .user = "7" };

/* A filter with the rules KIND, TEXT, KIND, TEXT and so on, up to NULL. */
static struct process_filter make(const char *kind, ...)
{
	struct process_filter filter = { 0 };
	va_list list;

	va_start(list, kind);
	for (; kind; kind = va_arg(list, const char *))
		assert_null(process_filter__add(&filter, kind, va_arg(list, const char *)));
	va_end(list);
	return filter;
}

static bool wants(struct process_filter filter, const struct identity *identity)
{
	bool wanted = process_filter__wants(&filter, identity);

	process_filter__free(&filter);
	return wanted;
}

static void test_none(void **state)
{
	struct process_filter filter = { 0 };

	(void)state;
	assert_true(process_filter__is_empty(&filter));
	assert_true(process_filter__wants(&filter, &web));
	assert_true(process_filter__wants(&filter, &dark));
	assert_null(process_filter__add(&filter, "exclude", "uid=1"));
	assert_false(process_filter__is_empty(&filter));
	process_filter__free(&filter);
	assert_true(process_filter__is_empty(&filter));
}

static void test_comm(void **state)
{
	(void)state;
	assert_true(wants(make("comm", "gunicorn", NULL), &web));
	assert_true(wants(make("comm", "g*n", NULL), &web));
	assert_true(wants(make("comm", "python[23]", NULL), &web));
	assert_false(wants(make("comm", "gunicor", NULL), &web));
	assert_false(wants(make("comm", "celery", NULL), &web));
	assert_false(wants(make("comm", "*", NULL), &dark));
	assert_true(wants(make("comm", "uvicorn", NULL), &runner));
	assert_true(wants(make("comm", "uvicorn shop:*", NULL), &runner));
	assert_false(wants(make("comm", "uvicorn blog:app", NULL), &runner));
	assert_false(wants(make("comm", "shop", NULL), &script));
}

static void test_cgroup(void **state)
{
	(void)state;
	assert_true(wants(make("cgroup", "/kubepods", NULL), &web));
	assert_true(wants(make("cgroup", "/kubepods/pod1/", NULL), &web));
	/* The cgroup may be of any hierarchy. */
	assert_true(wants(make("cgroup", "/batch", NULL), &web));
	assert_true(wants(make("cgroup", "/", NULL), &web));
	assert_false(wants(make("cgroup", "/kubepods/pod", NULL), &web));
	assert_false(wants(make("cgroup", "/kubepods/pod2", NULL), &web));
	assert_false(wants(make("cgroup", "/", NULL), &dark));
}

static void test_container(void **state)
{
	(void)state;
	assert_true(wants(make("container", ID, NULL), &web));
	assert_true(wants(make("container", "4f0d", NULL), &web));
	assert_true(wants(make("container", "docker://" ID, NULL), &web));
	assert_true(wants(make("container", "containerd://4f0dfa1f6c6d", NULL), &web));
	assert_false(wants(make("container", "docker://4f0", NULL), &web));
	assert_false(wants(make("container", "4f0e", NULL), &web));
	assert_false(wants(make("container", ID "0", NULL), &web));
	assert_false(wants(make("container", "4f0d", NULL), &dark));
	assert_true(wants(make("container", "feed5", NULL), &named));
	assert_false(wants(make("container", "feed", NULL), &named));
	/* A container's name, which a user chose, must match in full. */
	assert_true(wants(make("container", "web", NULL), &short_named));
	assert_false(wants(make("container", "we", NULL), &short_named));
	assert_false(wants(make("container", "lxc://db", NULL), &short_named));
}

static void test_uid(void **state)
{
	static const struct identity roots = { .uid = 0, .user = "root" };

	(void)state;
	assert_true(wants(make("uid", "1000", NULL), &web));
	assert_true(wants(make("uid", "7", NULL), &dark));
	assert_true(wants(make("uid", "root", NULL), &roots));
	assert_false(wants(make("uid", "root", NULL), &web));
	assert_false(wants(make("uid", "100", NULL), &web));
}

static void test_several(void **state)
{
	(void)state;
	assert_true(wants(make("comm", "celery", "comm", "gunicorn", NULL), &web));
	assert_true(wants(make("comm", "gunicorn", "comm", "celery", NULL), &web));
	assert_true(wants(
		make("comm", "celery", "comm", "gunicorn", "uid", "1", "uid", "1000", NULL), &web));
	assert_false(wants(make("comm", "gunicorn", "uid", "1", NULL), &web));
	assert_false(wants(make("container", "4f0d", "cgroup", "/other", NULL), &web));
}

static void test_excluded(void **state)
{
	(void)state;
	assert_false(wants(make("exclude", "comm=guni*", NULL), &web));
	assert_false(wants(make("exclude", "cgroup=/kubepods", NULL), &web));
	assert_false(wants(make("exclude", "container=4f0d", NULL), &web));
	assert_false(wants(make("exclude", "uid=1000", NULL), &web));
	assert_true(wants(make("exclude", "uid=1", "exclude", "comm=celery", NULL), &web));
	/* An exclusion wins, in any order of the rules. */
	assert_false(wants(make("exclude", "uid=1000", "comm", "gunicorn", NULL), &web));
	assert_false(wants(make("comm", "gunicorn", "exclude", "uid=1000", NULL), &web));
	assert_true(wants(make("exclude", "comm=*", "exclude", "cgroup=/", NULL), &dark));
	assert_true(wants(make("exclude", "comm=a=b", NULL), &web));
}

/* Of a process that ended before it was read, only its command line is known. */
static void test_ended(void **state)
{
	const struct identity ended = { .short_name = "job.py" };
	const struct {
		const char *kind, *text;
		bool wants, can_tell;
	} cases[] = {
		{ "comm", "job*", true, true },	     { "comm", "python*", false, false },
		{ "uid", "0", false, false },	     { "cgroup", "/", false, false },
		{ "exclude", "uid=0", true, false }, { "exclude", "comm=job*", false, false },
	};
	struct process_filter filter = { 0 };

	(void)state;
	assert_true(process_filter__can_tell(&filter, &ended));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		filter = make(cases[i].kind, cases[i].text, NULL);
		assert_int_equal(process_filter__wants(&filter, &ended), cases[i].wants);
		assert_int_equal(process_filter__can_tell(&filter, &ended), cases[i].can_tell);
		assert_true(process_filter__can_tell(&filter, &web));
		process_filter__free(&filter);
	}
	filter = make("comm", "job*", "uid", "0", NULL);
	assert_false(process_filter__can_tell(&filter, &ended));
	process_filter__free(&filter);
}

static void check_refused(const char *kind, const char *text, const char *error)
{
	struct process_filter filter = { 0 };
	char *found = process_filter__add(&filter, kind, text);

	assert_non_null(found);
	assert_string_equal(found, error);
	assert_true(process_filter__is_empty(&filter));
	process_filter__free(&filter);
	free(found);
}

#define NO_EXCLUSION "' is not comm=GLOB, cgroup=PATH, container=ID or uid=USER"
#define NO_USER	     "' is neither a number nor a name in /etc/passwd"

static void test_refused(void **state)
{
	(void)state;
	check_refused("comm", "", "the name pattern is empty");
	check_refused("cgroup", "", "cgroup '' is not a path: it must begin with /");
	check_refused("cgroup", "a/b", "cgroup 'a/b' is not a path: it must begin with /");
	check_refused("cgroup", "/sys/fs/nothing",
		      "cgroup '/sys/fs/nothing' is not in a cgroup hierarchy mounted here");
	check_refused("container", "", "container '' is not an ID");
	check_refused("container", "docker://", "container 'docker://' is not an ID");
	check_refused("container", "docker/web", "container 'docker/web' is not an ID");
	check_refused("container", "4f0",
		      "container '4f0' is too short for an ID: give at least 4 digits, or "
		      "lxc://4f0 if it is a full name");
	check_refused("exclude", "container=db",
		      "container 'db' is too short for an ID: give at least 4 digits, or lxc://db "
		      "if it is a full name");
	check_refused("uid", "", "user '" NO_USER);
	check_refused("uid", "no one", "user 'no one" NO_USER);
	check_refused("uid", "-1", "user '-1" NO_USER);
	check_refused("uid", "1x", "user '1x" NO_USER);
	check_refused("uid", "4294967295", "user '4294967295" NO_USER);
	check_refused("uid", "99999999999999999999", "user '99999999999999999999" NO_USER);
	check_refused("exclude", "", "exclusion '" NO_EXCLUSION);
	check_refused("exclude", "comm", "exclusion 'comm" NO_EXCLUSION);
	check_refused("exclude", "=x", "exclusion '=x" NO_EXCLUSION);
	check_refused("exclude", "exclude=uid=1", "exclusion 'exclude=uid=1" NO_EXCLUSION);
	check_refused("exclude", "uid=no one", "user 'no one" NO_USER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),	 cmocka_unit_test(test_comm),
		cmocka_unit_test(test_cgroup),	 cmocka_unit_test(test_container),
		cmocka_unit_test(test_uid),	 cmocka_unit_test(test_several),
		cmocka_unit_test(test_excluded), cmocka_unit_test(test_ended),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
