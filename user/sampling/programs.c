// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/membarrier.h>

#include "base/now.h"
#include "processes/pid_namespace.h"
#include "sampling/programs.h"
#include "pybpfprof.skel.h" /* needs the types of the headers above */

struct bpf_program *programs__of(const struct pybpfprof_bpf *bpf, const struct event *event,
				 uint32_t number)
{
	struct bpf_program *const programs[][EVENTS_MAX] = {
		[PROGRAM_PERF_EVENT] = { bpf->progs.sample, bpf->progs.sample_1,
					 bpf->progs.sample_2, bpf->progs.sample_3 },
		[PROGRAM_TRACEPOINT] = { bpf->progs.tracepoint, bpf->progs.tracepoint_1,
					 bpf->progs.tracepoint_2, bpf->progs.tracepoint_3 },
		[PROGRAM_PROBE] = { bpf->progs.probe, bpf->progs.probe_1, bpf->progs.probe_2,
				    bpf->progs.probe_3 },
	};
	enum event_program program = event->source->program;

	return program == PROGRAM_SWITCHES ? bpf->progs.off_cpu : programs[program][number];
}

void programs__await(const volatile struct cpu_counters *counters, uint32_t cpus)
{
	int64_t until = now_ns() + 1000 * 1000 * 1000LL;

	/* Where one CPU is online this waits for nothing, and a program may have been preempted. */
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		for (size_t event = 0; event < EVENTS_MAX; event++)
			while (counters[cpu].of[event].working && now_ns() < until)
				usleep(1000);
}

bool programs__measure_waits(const struct pybpfprof_bpf *bpf)
{
	return bpf_program__autoload(bpf->progs.off_cpu);
}

/* Chooses the programs that events need beside their own, and those that follow processes. */
static int choose_others(struct pybpfprof_bpf *bpf, const struct sampler_scope *scope,
			 bool with_mappings)
{
	bool follows = scope->following != FOLLOW_NONE, waits = programs__measure_waits(bpf);
	const struct {
		struct bpf_program *program;
		bool wanted;
	} choices[] = {
		{ bpf->progs.find_process, !pid_namespace__is_first() },
		{ bpf->progs.follow_fork, follows },
		{ bpf->progs.follow_mapping, follows && with_mappings },
		{ bpf->progs.count_gil_queue, bpf->rodata->config.blamed },
		{ bpf->progs.count_wait, waits },
		{ bpf->progs.list_blocked, waits },
		{ bpf->progs.end_sleep, waits && scope->split_run_queue },
	};
	int error = 0;

	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]) && !error; i++)
		error = bpf_program__set_autoload(choices[i].program, choices[i].wanted);
	return error;
}

int programs__choose(struct pybpfprof_bpf *bpf, const struct sampler_scope *scope,
		     bool with_mappings)
{
	int error = 0;

	for (uint32_t i = 0; i < scope->event_count && !error; i++)
		error = bpf_program__set_autoload(programs__of(bpf, &scope->events[i], i), true);
	return error ?: choose_others(bpf, scope, with_mappings);
}

int programs__try(const char *place, enum bpf_attach_type type)
{
	struct bpf_prog_load_opts options = { .sz = sizeof(options), .expected_attach_type = type };
	const struct bpf_insn nothing[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K },
					    { .code = BPF_JMP | BPF_EXIT } };
	int id = libbpf_find_vmlinux_btf_id(place, type), fd;

	if (id < 0)
		return id;
	options.attach_btf_id = id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, NULL, "GPL", nothing, 2, &options);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}
