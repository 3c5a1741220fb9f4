/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks of `pybpfprof check`: a table in checks.c, the functions where they belong. */
#ifndef PYBPFPROF_CHECKS_H
#define PYBPFPROF_CHECKS_H

#include <stdbool.h>

#include "check/findings.h"
#include "check/trial.h"
#include "recording/privileges.h"

#define NOT_STARTED "record does not start"

/* Runs a trial for a caller with these NEEDS, then all checks of its results. */
void checks__run(struct findings *findings, const struct trial_needs *needs);

/* Adds OBSTACLE as missing, and frees it; returns whether there was one. */
bool checks__add_obstacle(struct findings *findings, struct obstacle obstacle);

/* kernel.c */
void check_kernel(const struct trial *trial, struct findings *findings);
void check_btf(const struct trial *trial, struct findings *findings);
void check_jit(const struct trial *trial, struct findings *findings);
void check_ring_buffer(const struct trial *trial, struct findings *findings);
void check_lockdown(const struct trial *trial, struct findings *findings);
void check_kernel_symbols(const struct trial *trial, struct findings *findings);
void check_perf_events(const struct trial *trial, struct findings *findings);
void check_uprobes(const struct trial *trial, struct findings *findings);
void check_tracefs(const struct trial *trial, struct findings *findings);
void check_mappings(const struct trial *trial, struct findings *findings);

/* permissions.c */
void check_container(const struct trial *trial, struct findings *findings);
void check_pid_namespace(const struct trial *trial, struct findings *findings);
void check_user_namespace(const struct trial *trial, struct findings *findings);
void check_capabilities(const struct trial *trial, struct findings *findings);
void check_ptrace_scope(const struct trial *trial, struct findings *findings);
void check_perf_event_paranoid(const struct trial *trial, struct findings *findings);
void check_unprivileged_bpf(const struct trial *trial, struct findings *findings);

/* limits.c */
void check_sample_rate(const struct trial *trial, struct findings *findings);
void check_cpu_time(const struct trial *trial, struct findings *findings);
void check_locked_memory(const struct trial *trial, struct findings *findings);
void check_memory(const struct trial *trial, struct findings *findings);
void check_open_files(const struct trial *trial, struct findings *findings);
void check_file_size(const struct trial *trial, struct findings *findings);

/* attempts.c */
void check_processes(const struct trial *trial, struct findings *findings);
void check_signals(const struct trial *trial, struct findings *findings);
void check_program(const struct trial *trial, struct findings *findings);
void check_native_frames(const struct trial *trial, struct findings *findings);
void check_sample(const struct trial *trial, struct findings *findings);

#endif
