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

#define NAME "off-cpu"

struct off_cpu_run {
	struct bpf_link *link; /* NULL: not attached */
};

static bool parse(const char *name, size_t length, struct event *event)
{
	if (length != sizeof(NAME) - 1 || memcmp(name, NAME, length) != 0)
		return false;
	*event = (struct event){ .name = NAME, .period = 1 };
	return true;
}

static const char *list(size_t index)
{
	return index ? NULL : NAME;
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
	.unit = "nanoseconds",
	.at_switches = true,
	.parse = parse,
	.list = list,
	.open = open_run,
	.attach = attach,
	.detach = detach,
	.close = close_run,
};
