// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "processes/command_name.h"

/* The words of a command line, each with its NUL. */
#define LINE(words) words, sizeof(words)

struct named {
	const char *words;
	size_t length;
	const char *executable, *name;
};

static void check(const struct named *table, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		/* A copy of exactly this size: AddressSanitizer detects a read beyond it. */
		char *words = malloc(table[i].length ? table[i].length : 1);
		char *name;

		memcpy(words, table[i].words, table[i].length);
		name = command_name__of(words, table[i].length, table[i].executable);
		if (table[i].name)
			assert_string_equal(name, table[i].name);
		else
			assert_null(name);
		free(name);
		free(words);
	}
}

#define CHECK(table) check(table, sizeof(table) / sizeof((table)[0]))

static void test_scripts(void **state)
{
	static const struct named table[] = {
		{ LINE("python3\0web.py"), "python3.12", "web.py" },
		{ LINE("python3\0/srv/app/web.py\0--port\08000"), "python3.12", "web.py" },
		{ LINE("/usr/bin/python3\0/usr/local/bin/celery\0-A\0app\0worker"), "python3.11",
		  "celery app" },
		{ LINE("/usr/bin/python3\0/usr/bin/gunicorn\0-m\0007\0app:app"), "python3.11",
		  "gunicorn app:app" },
		{ LINE("python3\0app.pyz"), "python3.12", "app.pyz" },
		{ LINE("python3\0/srv/app/"), "python3.12", "app" },
		{ LINE("python3\0app//"), "python3.12", "app" },
		{ LINE("python3\0/"), "python3.12", "/" },
		{ LINE("python3\0--\0-m"), "python3.12", "-m" },
		{ LINE("python3\0-B\0--\0web.py"), "python3.12", "web.py" },
		{ LINE("python2.7\0-3\0-t\0-Q\0new\0web.py"), "python2.7", "web.py" },
		{ LINE("python2.7\0-Qnew\0web.py"), "python2.7", "web.py" },
		{ LINE("python3\0-W\0error\0-Xdev\0-X\0importtime\0web.py"), "python3.12",
		  "web.py" },
		{ LINE("python3\0-bWerror\0web.py"), "python3.12", "web.py" },
		{ LINE("python3\0-bW\0error\0web.py"), "python3.12", "web.py" },
		{ LINE("python3\0-ISsuPq\0web.py"), "python3.12", "web.py" },
		{ LINE("python3\0--check-hash-based-pycs\0always\0web.py"), "python3.12",
		  "web.py" },
		/* The caller may choose any argv[0]. */
		{ LINE("worker\0web.py"), "python3.12", "web.py" },
		{ LINE("python3\0web.py"), NULL, "web.py" },
		{ LINE("/opt/python/bin/python3.14t\0web.py"), "ld-linux-x86-64.so.2", "web.py" },
		{ LINE("/usr/libexec/platform-python\0-Es\0/usr/sbin/tuned\0-l"),
		  "platform-python3.6", "tuned" },
		{ LINE("python3-dbg\0web.py"), "python3.11d", "web.py" },
		{ LINE("./python3.13-nogil\0web.py"), "python3.13-nogil", "web.py" },
		{ LINE("python3.13-freethreaded\0web.py"), NULL, "web.py" },
		{ LINE("python3.13t-dbg\0web.py"), NULL, "web.py" },
		{ LINE("python3.13-nogil-dbg\0web.py"), NULL, "web.py" },
		{ LINE("python3-config\0web.py"), NULL, "python3-config" },
	};

	(void)state;
	CHECK(table);
}

static void test_folders_of_applications(void **state)
{
	static const struct named table[] = {
		{ LINE("python3\0app/__main__.py"), "python3.12", "app" },
		{ LINE("python3\0/srv/app/__main__.py"), "python3.12", "app" },
		{ LINE("python3\0/srv/app/.//./__main__.py"), "python3.12", "app" },
		{ LINE("python3\0./app/__main__.py"), "python3.12", "app" },
		{ LINE("python3\0.app/__main__.py"), "python3.12", ".app" },
		{ LINE("python3\0a/__main__.py"), "python3.12", "a" },
		{ LINE("python3\0app./__main__.py"), "python3.12", "app." },
		{ LINE("python3\0__main__.py"), "python3.12", "__main__.py" },
		{ LINE("python3\0./__main__.py"), "python3.12", "__main__.py" },
		{ LINE("python3\0././/__main__.py"), "python3.12", "__main__.py" },
		{ LINE("python3\0../__main__.py"), "python3.12", "__main__.py" },
		{ LINE("python3\0app/../__main__.py"), "python3.12", "__main__.py" },
		{ LINE("python3\0/__main__.py"), "python3.12", "__main__.py" },
		{ LINE("python3\0/./__main__.py"), "python3.12", "__main__.py" },
	};

	(void)state;
	CHECK(table);
}

#define LOADER "/lib64/ld-linux-x86-64.so.2"

static void test_dynamic_linkers(void **state)
{
	static const struct named table[] = {
		{ LINE(LOADER "\0/usr/bin/python3\0web.py"), "ld-linux-x86-64.so.2", "web.py" },
		{ LINE(LOADER "\0/usr/bin/python3\0-m\0http.server"), NULL, "http.server" },
		{ LINE(LOADER "\0--inhibit-cache\0--library-path\0/opt/lib\0--preload\0x.so\0"
			      "--argv0\0python3\0/usr/bin/python3\0web.py"),
		  "ld-linux-x86-64.so.2", "web.py" },
		{ LINE("/lib/ld-musl-x86_64.so.1\0--library-path=/opt/lib\0--\0"
		       "/usr/bin/python3\0web.py"),
		  "ld-musl-x86_64.so.1", "web.py" },
		{ LINE(LOADER "\0/usr/bin/python3"), "ld-linux-x86-64.so.2", "python3" },
		{ LINE(LOADER "\0./worker\0web.py"), "ld-linux-x86-64.so.2", "worker" },
		{ LINE(LOADER "\0--preload"), "ld-linux-x86-64.so.2", "ld-linux-x86-64.so.2" },
		{ LINE(LOADER), "ld-linux-x86-64.so.2", "ld-linux-x86-64.so.2" },
		{ LINE(LOADER), NULL, "ld-linux-x86-64.so.2" },
	};

	(void)state;
	CHECK(table);
}

static void test_modules(void **state)
{
	static const struct named table[] = {
		{ LINE("python3\0-m\0http.server\08000"), "python3.12", "http.server" },
		{ LINE("python3\0-mhttp.server"), "python3.12", "http.server" },
		{ LINE("python3\0-Em\0gunicorn\0app:app"), "python3.12", "gunicorn app:app" },
		{ LINE("python3\0-X\0m\0-um\0pkg.mod"), "python3.12", "pkg.mod" },
		{ LINE("python3\0-Xm\0-W\0c\0-mpkg"), "python3.12", "pkg" },
		{ LINE("python3\0-m"), "python3.12", "python3.12" },
	};

	(void)state;
	CHECK(table);
}

static void test_program_texts(void **state)
{
	static const struct named table[] = {
		{ LINE("python3\0-c\0import app; app.run()\0web.py"), "python3.12", "-c" },
		{ LINE("python3\0-cimport app"), "python3.12", "-c" },
		{ LINE("python3\0-uc\0import app"), "python3.12", "-c" },
		{ LINE("python3\0-c\0"), "python3.12", "-c" },
		{ LINE("python3\0-c\0from multiprocessing.spawn import spawn_main; "
		       "spawn_main(tracker_fd=5, pipe_handle=7)\0--multiprocessing-fork"),
		  "python3.12", "multiprocessing.spawn" },
		{ LINE("python3\0-c\0import sys; from multiprocessing.forkserver import main; "
		       "main(5, 7, [])"),
		  "python3.14", "multiprocessing.forkserver" },
		{ LINE("python3\0-c\0import sys; main()"), "python3.14", "-c" },
		{ LINE("python3\0-s\0-c\0from multiprocessing.resource_tracker import "
		       "main;main(4)"),
		  "python3.12", "multiprocessing.resource_tracker" },
	};

	(void)state;
	CHECK(table);
}

static void test_standard_input(void **state)
{
	static const struct named table[] = {
		{ LINE("python3"), "python3.12", "python3.12" },
		{ LINE("/usr/bin/python3"), NULL, "python3" },
		{ LINE("python3\0-"), "python3.12", "python3.12" },
		{ LINE("python3\0-u\0-\0argument"), "python3.12", "python3.12" },
		{ LINE("python3\0--\0-\0argument"), "python3.12", "python3.12" },
		{ LINE("python3\0-i"), "python3.12", "python3.12" },
		{ LINE("python3\0-W"), "python3.12", "python3.12" },
		{ LINE("python3\0--"), "python3.12", "python3.12" },
		{ LINE("python3\0\0\0"), "python3.12", "python3.12" },
	};

	(void)state;
	CHECK(table);
}

static void test_titles_and_other_programs(void **state)
{
	static const struct named table[] = {
		{ LINE("gunicorn: worker [app:app]\0\0\0\0"), "python3.12", "gunicorn app:app" },
		{ LINE("gunicorn: master [/srv/app]"), "python3.12", "gunicorn app" },
		{ LINE("gunicorn: master [gunicorn]"), "python3.12", "gunicorn" },
		{ LINE("gunicorn: master [app"), "python3.12", "gunicorn" },
		{ LINE("[celeryd: celery@host:MainProcess] -active- (worker -A app)\0\0"),
		  "python3.12", "celeryd" },
		{ LINE("ray::IDLE\0\0"), "python3.12", "ray" },
		{ LINE("python: worker 3\0\0"), "python3.12", "python" },
		{ LINE("uWSGI worker 1"), "uwsgi", "uWSGI" },
		{ LINE("/usr/bin/uwsgi\0--http\0:80"), "uwsgi", "uwsgi" },
		{ LINE("/opt/My App/bin/tool"), "tool", "tool" },
		{ LINE("./host\0web.py"), "host", "host" },
		{ LINE("bin/host\0web.py"), "host", "host" },
		{ LINE("/opt/app/bin/app-python\0web.py"), "app-python", "app-python" },
		{ LINE("[\0"), "app", "app" },
		{ LINE(""), "app", "app" },
	};

	(void)state;
	CHECK(table);
}

static void test_missing_and_cut_command_lines(void **state)
{
	static const struct named table[] = {
		{ "", 0, NULL, NULL },
		{ "", 0, "python3.12", "python3.12" },
		{ "", 0, "", NULL },
		{ "\0\0\0", 3, NULL, NULL },
		/* Cut. */
		{ "python3", 7, NULL, NULL },
		{ "python3\0/srv/we", 15, "python3.12", "python3.12" },
		{ "python3\0-m\0pkg.mo", 17, "python3.12", "python3.12" },
		{ "python3\0-c\0import app; ap", 25, "python3.12", "-c" },
		{ "python3\0-W\0erro", 15, "python3.12", "python3.12" },
	};

	(void)state;
	CHECK(table);
}

static void test_runners(void **state)
{
	static const struct named table[] = {
		{ LINE("python3\0/usr/bin/uvicorn\0--host\0::\0--reload\0shop:app\0--port\080"),
		  "python3.12", "uvicorn shop:app" },
		{ LINE("python3\0-m\0uvicorn\0--port=80\0--no-access-log\0shop:app"), "python3.12",
		  "uvicorn shop:app" },
		{ LINE("python3\0gunicorn\0-w4\0-RD\0-b\0[::]:80\0shop:create('key')"),
		  "python3.12", "gunicorn shop:create" },
		{ LINE("python3\0gunicorn\0--daemon\0--\0shop"), "python3.12", "gunicorn shop" },
		{ LINE("python3\0hypercorn\0-b\0:80\0asgi:shop:app"), "python3.12",
		  "hypercorn asgi:shop:app" },
		{ LINE("python3\0daphne\0-e\0ssl:443:privateKey=key.pem\0shop.asgi:application"),
		  "python3.12", "daphne shop.asgi:application" },
		{ LINE("python3\0celery\0worker\0--app=shop.tasks\0-l\0info"), "python3.12",
		  "celery shop.tasks" },
		{ LINE("python3\0celery\0-Ashop\0beat"), "python3.12", "celery shop" },
		{ LINE("python3\0flask\0--app\0/srv/shop.py:create('x')\0run"), "python3.12",
		  "flask shop.py:create" },
		{ LINE("python3\0/srv/shop/manage.py\0runserver\00:80"), "python3.12",
		  "manage.py runserver" },
		{ LINE("python3\0-m\0django\0migrate"), "python3.12", "django migrate" },
		{ LINE("python3\0/usr/bin/airflow\0scheduler"), "python3.12", "airflow scheduler" },
		/* The application is not clear. */
		{ LINE("python3\0gunicorn\0-c\0config.py"), "python3.12", "gunicorn" },
		{ LINE("python3\0gunicorn\0--of-tomorrow\0shop:app"), "python3.12", "gunicorn" },
		{ LINE("python3\0uvicorn\0postgres://me:secret@host"), "python3.12", "uvicorn" },
		{ LINE("python3\0celery\0worker\0--\0-A\0shop"), "python3.12", "celery" },
		{ LINE("python3\0flask\0run\0--app"), "python3.12", "flask" },
		{ LINE("python3\0flask\0--app\0../"), "python3.12", "flask" },
		{ LINE("python3\0manage.py\0--help"), "python3.12", "manage.py" },
		{ LINE("python3\0manage.py"), "python3.12", "manage.py" },
		{ LINE("python3\0uvicorn.py\0shop:app"), "python3.12", "uvicorn.py" },
		/* Cut. */
		{ "python3\0uvicorn\0shop:a", 22, "python3.12", "uvicorn" },
		{ "python3\0flask\0--app\0sho", 23, "python3.12", "flask" },
	};

	(void)state;
	CHECK(table);
}

static void test_kinds(void **state)
{
	static const struct {
		const char *words;
		size_t length;
		const char *executable;
		enum command_kind kind;
	} table[] = {
		{ LINE("python3\0-c\0from multiprocessing.spawn import spawn_main; spawn_main()\0"
		       "--multiprocessing-fork"),
		  "python3.12", COMMAND_WORKER },
		{ LINE("python3\0-u\0-c\0import sys;exec(eval(sys.stdin.readline()))"), NULL,
		  COMMAND_WORKER },
		{ LINE("python3\0-m\0joblib.externals.loky.backend.popen_loky_posix\0--pipe\00"),
		  "python3.12", COMMAND_WORKER },
		{ LINE("python3\0/lib/torch/_inductor/compile_worker/__main__.py\0--workers=8"),
		  "python3.12", COMMAND_WORKER },
		{ LINE("python3\0web.py\0-c\0x"), "python3.12", COMMAND_PYTHON },
		{ LINE("python3\0-m\0popen_loky_posix"), "python3.12", COMMAND_PYTHON },
		{ LINE("python3"), "python3.12", COMMAND_PYTHON },
		{ LINE("python3\0/root/.pex/unzipped_pexes/1/0a1b\0x"), "python3.12",
		  COMMAND_UNPACKED },
		{ LINE("/root/.pex/venvs/s/0a/venv/bin/python\0-sE\0/root/.pex/venvs/1/0a/1b/pex"),
		  "python3.12", COMMAND_UNPACKED },
		{ LINE("python3\0/srv/venvs/web.py"), "python3.12", COMMAND_PYTHON },
		{ LINE("gunicorn: master [app]\0\0"), "python3.12", COMMAND_PYTHON },
		{ LINE("sh\0-c\0true"), "dash", COMMAND_OTHER },
		{ LINE("/usr/bin/uwsgi\0--http\0:80"), "uwsgi", COMMAND_OTHER },
		{ "", 0, NULL, COMMAND_OTHER },
		{ "python3\0-c\0import ap", 20, NULL, COMMAND_WORKER },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(
			command_name__kind(table[i].words, table[i].length, table[i].executable),
			table[i].kind);
}

static void test_a_long_name_is_cut(void **state)
{
	char words[3000], *name;

	(void)state;
	memset(words, 'm', sizeof(words));
	memcpy(words, "python3\0-m", 11);
	words[sizeof(words) - 1] = '\0';
	name = command_name__of(words, sizeof(words), "python3.12");
	assert_int_equal(strlen(name), 255);
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scripts),
		cmocka_unit_test(test_folders_of_applications),
		cmocka_unit_test(test_dynamic_linkers),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_program_texts),
		cmocka_unit_test(test_standard_input),
		cmocka_unit_test(test_titles_and_other_programs),
		cmocka_unit_test(test_missing_and_cut_command_lines),
		cmocka_unit_test(test_runners),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_a_long_name_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
