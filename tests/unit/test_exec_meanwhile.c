// SPDX-License-Identifier: BSD-2-Clause
/* Looks at a process in the middle of an exec.  Its program is on a FUSE file system of this test,
 * which delays one page of the file. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/xalloc.h"
#include "sampling/targets.h"

#define PAGE_BYTES    4096
#define REQUEST_BYTES (128 * 1024)
#define PROGRAM	      "/bin/sleep"
#define PROGRAM_NODE  2
#define VALID_S	      60

/* The file system.  It has one file, PROGRAM, under any name. */
static struct {
	char folder[32];
	int fd;
	uint8_t *bytes;
	size_t size;
	uint64_t kept;	     /* the page that is delayed */
	sem_t asked, may_go; /* for that page */
	pthread_t thread;
	pid_t child; /* executes PROGRAM */
} server;

/* The last page of the data.  An exec clears its end after it has mapped the whole program. */
static uint64_t last_data_page(const uint8_t *bytes)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
	const Elf64_Phdr *parts = (const Elf64_Phdr *)(bytes + header->e_phoff);

	for (int i = 0; i < header->e_phnum; i++)
		if (parts[i].p_type == PT_LOAD && parts[i].p_memsz > parts[i].p_filesz)
			return (parts[i].p_offset + parts[i].p_filesz) / PAGE_BYTES * PAGE_BYTES;
	return 0;
}

static struct fuse_attr attributes(uint64_t node)
{
	bool is_program = node == PROGRAM_NODE;

	return (struct fuse_attr){ .ino = node,
				   .size = is_program ? server.size : 0,
				   .mode = (is_program ? S_IFREG : S_IFDIR) | 0755,
				   .nlink = 1,
				   .blksize = PAGE_BYTES };
}

static void answer(const struct fuse_in_header *request, int error, const void *data, size_t size)
{
	uint8_t bytes[REQUEST_BYTES];
	struct fuse_out_header header = { sizeof(header) + size, error, request->unique };

	memcpy(bytes, &header, sizeof(header));
	if (size)
		memcpy(bytes + sizeof(header), data, size);
	/* An interrupted request waits for no answer. */
	if (write(server.fd, bytes, header.len) < 0)
		assert_int_equal(errno, ENOENT);
}

static void answer_read(const struct fuse_in_header *request)
{
	const struct fuse_read_in *wanted = (const struct fuse_read_in *)(request + 1);
	uint64_t start = wanted->offset < server.size ? wanted->offset : server.size;
	uint64_t left = server.size - start;

	if (start == server.kept) {
		sem_post(&server.asked);
		while (sem_wait(&server.may_go))
			;
	}
	answer(request, 0, server.bytes + start, wanted->size < left ? wanted->size : left);
}

static void serve_one(const struct fuse_in_header *request)
{
	/* max_readahead is 0: the kernel reads nothing ahead. */
	const struct fuse_init_out init = { .major = 7, .minor = 31, .max_write = PAGE_BYTES };
	const struct fuse_open_out opened = { .open_flags = FOPEN_DIRECT_IO };
	const struct fuse_entry_out entry = { .nodeid = PROGRAM_NODE,
					      .entry_valid = VALID_S,
					      .attr_valid = VALID_S,
					      .attr = attributes(PROGRAM_NODE) };
	const struct fuse_attr_out attr = { .attr_valid = VALID_S,
					    .attr = attributes(request->nodeid) };

	switch (request->opcode) {
	case FUSE_INIT:
		answer(request, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		answer(request, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		answer(request, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		answer(request, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		answer_read(request);
		break;
	case FUSE_FORGET:
		break;
	default:
		answer(request, -ENOSYS, NULL, 0);
	}
}

static void *serve(void *context)
{
	static _Alignas(uint64_t) uint8_t request[REQUEST_BYTES];

	(void)context;
	while (read(server.fd, request, sizeof(request)) > 0)
		serve_one((const struct fuse_in_header *)request);
	return NULL;
}

static void read_program(void)
{
	int fd = open(PROGRAM, O_RDONLY | O_CLOEXEC);
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	server.size = status.st_size;
	server.bytes = xmalloc(server.size);
	assert_int_equal(read(fd, server.bytes, server.size), server.size);
	close(fd);
	server.kept = last_data_page(server.bytes);
}

/* If no file system can be mounted, server.fd is -1. */
static int start_server(void **state)
{
	char options[64];

	(void)state;
	server.fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (server.fd < 0 || unshare(CLONE_NEWNS)) {
		server.fd = -1;
		return 0;
	}
	read_program();
	assert_int_equal(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	strcpy(server.folder, "/tmp/test_exec-XXXXXX");
	assert_non_null(mkdtemp(server.folder));
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", server.fd);
	assert_int_equal(mount("program", server.folder, "fuse", 0, options), 0);
	sem_init(&server.asked, 0, 0);
	sem_init(&server.may_go, 0, 0);
	return pthread_create(&server.thread, NULL, serve, NULL);
}

static int stop_server(void **state)
{
	(void)state;
	if (server.fd < 0)
		return 0;
	sem_post(&server.may_go);
	if (server.child > 0) {
		kill(server.child, SIGKILL);
		waitpid(server.child, NULL, 0);
	}
	umount2(server.folder, MNT_DETACH);
	pthread_join(server.thread, NULL);
	close(server.fd);
	rmdir(server.folder);
	free(server.bytes);
	return 0;
}

/* All of its program is mapped, but the exec is not complete, so the look has to be repeated. */
static void the_look_is_retried_until_the_exec_is_complete(void **state)
{
	char path[64];
	struct target_process *target;
	uint64_t signature = 0;

	(void)state;
	if (server.fd < 0)
		skip();
	snprintf(path, sizeof(path), "%s/program", server.folder);
	server.child = fork();
	if (!server.child) {
		execl(path, path, "1000", NULL);
		_exit(1);
	}
	while (sem_wait(&server.asked))
		;
	assert_int_equal(target__look(server.child, &signature, &target), -EAGAIN);
	assert_int_equal(signature, 0);
	sem_post(&server.may_go);
	while (target__look(server.child, &signature, &target) == -EAGAIN)
		usleep(1000);
	assert_int_equal(target__look(server.child, &(uint64_t){ 0 }, &target), -ENOEXEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_look_is_retried_until_the_exec_is_complete,
						start_server, stop_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
