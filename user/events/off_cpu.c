// SPDX-License-Identifier: BSD-2-Clause
/*
 * Time off the CPU: bpf/waiting.bpf.h measures each wait.
 *
 * A sample is one wait, and its value is the length in nanoseconds.  So the event has no rate and a
 * period of 1, and outputs show the value.
 */
#include "events/events.h"
#include "events/linked_run.h"

static const struct event *list(size_t index)
{
	static const struct event event = { .name = "off-cpu", .unit = "nanoseconds", .period = 1 };

	return index ? NULL : &event;
}

const struct event_source event_off_cpu = {
	.program = PROGRAM_SWITCHES,
	.list = list,
	.open = linked_run__open,
	.attach = linked_run__attach,
	.detach = linked_run__detach,
	.close = linked_run__close,
};
