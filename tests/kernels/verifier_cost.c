// SPDX-License-Identifier: BSD-2-Clause
/*
 * Preloaded into the profiler.  Prints the verifier's work for each BPF program, as "verifier:
 * PROGRAM INSTRUCTIONS".  If $BPF_OBJECT names a file, its programs are loaded instead, as another
 * compiler made them.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <bpf/libbpf.h>

#define PROGRAMS_MAX   64
#define LOG_SIZE       65536
#define LOG_STATISTICS 4

static void take_object(const char *path, struct bpf_object_skeleton *skeleton)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status)) {
		perror(path);
		exit(1);
	}
	skeleton->data_sz = status.st_size;
	skeleton->data = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
}

int bpf_object__open_skeleton(struct bpf_object_skeleton *skeleton,
			      const struct bpf_object_open_opts *options)
{
	int (*open_it)(struct bpf_object_skeleton *, const struct bpf_object_open_opts *) =
		dlsym(RTLD_NEXT, __func__);
	const char *path = getenv("BPF_OBJECT");

	if (path)
		take_object(path, skeleton);
	return open_it(skeleton, options);
}

int bpf_object__load_skeleton(struct bpf_object_skeleton *skeleton)
{
	int (*load)(struct bpf_object_skeleton *) = dlsym(RTLD_NEXT, __func__);
	static char logs[PROGRAMS_MAX][LOG_SIZE];
	struct bpf_program *program;
	size_t index = 0;
	int error;

	bpf_object__for_each_program (program, *skeleton->obj) {
		bpf_program__set_log_level(program, LOG_STATISTICS);
		bpf_program__set_log_buf(program, logs[index++ % PROGRAMS_MAX], LOG_SIZE);
	}
	error = load(skeleton);
	index = 0;
	bpf_object__for_each_program (program, *skeleton->obj) {
		const char *text = strstr(logs[index++ % PROGRAMS_MAX], "\nprocessed ");
		unsigned long instructions;

		if (text && sscanf(text, " processed %lu insns", &instructions) == 1)
			fprintf(stderr, "verifier: %s %lu\n", bpf_program__name(program),
				instructions);
	}
	return error;
}
