// SPDX-License-Identifier: BSD-2-Clause
/*
 * many_mappings FOLDERS COUNT [churn]: maps a page of a file COUNT times. The file's path has
 * FOLDERS long folder names, and the kernel escapes each of their characters as four. Then it
 * sleeps, or with `churn` maps other parts of the file, 500 times per second.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES 250
#define PAGE	   4096UL
#define PAGES	   600UL
#define PAUSE_US   2000

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Makes a file and removes its path. The program's end removes its contents. */
static int make_file(int folders)
{
	char name[NAME_BYTES + 1] = "", top[] = "/tmp/many_mappings-XXXXXX";
	int fd;

	memset(name, '\n', NAME_BYTES);
	if (!mkdtemp(top) || chdir(top))
		fail(top);
	for (int i = 0; i < folders; i++)
		if (mkdir(name, 0700) || chdir(name))
			fail("mkdir");
	fd = open("file", O_CREAT | O_RDWR, 0600);
	if (fd < 0 || ftruncate(fd, PAGES * PAGE) || unlink("file"))
		fail("file");
	for (int i = 0; i < folders; i++)
		if (chdir("..") || rmdir(name))
			fail("rmdir");
	if (rmdir(top))
		fail("rmdir");
	return fd;
}

static void map_often(int fd, size_t count)
{
	char *memory = mmap(NULL, count * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	for (size_t i = 0; i < count; i++)
		if (mmap(memory + i * PAGE, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
			 fd, 0) == MAP_FAILED)
			fail("mmap");
}

static void churn(int fd)
{
	for (size_t i = 0;; i++) {
		size_t length = PAGE * (1 + i % (PAGES / 3));
		off_t offset = PAGE * (i / (PAGES / 3) % (2 * PAGES / 3));
		void *part = mmap(NULL, length, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, offset);

		usleep(PAUSE_US);
		if (part == MAP_FAILED || munmap(part, length))
			fail("mmap");
	}
}

int main(int argc, char **argv)
{
	int fd;

	if (argc < 3)
		return 2;
	fd = make_file(atoi(argv[1]));
	map_often(fd, atoi(argv[2]));
	puts("ready");
	fflush(stdout);
	if (argc > 3)
		churn(fd);
	for (;;)
		pause();
}
