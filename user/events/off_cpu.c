// SPDX-License-Identifier: BSD-2-Clause
/*
 * Time off the CPU: bpf/waiting.bpf.h measures each wait.
 *
 * A sample is one wait, and its value is the length in nanoseconds.  So the event has no rate and a
 * period of 1, and outputs show the value.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "base/xalloc.h"
#include "events/events.h"

struct off_cpu_run {
	struct bpf_link *link; /* NULL: not attached */
};

static const struct event *list(size_t index)
{
	static const struct event event = { .name = "off-cpu", .unit = "nanoseconds", .period = 1 };

	return index ? NULL : &event;
}

static int open_run(const struct event *event, struct event_rate rate, void **run)
{
	(void)event;
	(void)rate;
	*run = xcalloc(1, sizeof(struct off_cpu_run));
	return 0;
}

static int attach(void *run, const struct bpf_program *program)
{
	struct off_cpu_run *opened = run;

	opened->link = bpf_program__attach(program);
	return opened->link ? 0 : -errno;
}

static void detach(void *run)
{
	struct off_cpu_run *opened = run;

	bpf_link__destroy(opened->link);
	opened->link = NULL;
}

static void close_run(void *run)
{
	detach(run);
	free(run);
}

const struct event_source event_off_cpu = {
	.program = PROGRAM_SWITCHES,
	.list = list,
	.open = open_run,
	.attach = attach,
	.detach = detach,
	.close = close_run,
};
