// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "base/xalloc.h"
#include "events/linked_run.h"

int linked_run__open(const struct event *event, struct event_rate rate, void **run)
{
	struct linked_run *opened = xcalloc(1, sizeof(*opened));

	(void)rate;
	memcpy(opened->tracepoint, event->attach, sizeof(opened->tracepoint));
	*run = opened;
	return 0;
}

int linked_run__attach(void *run, const struct bpf_program *program)
{
	struct linked_run *opened = run;

	opened->link = *opened->tracepoint
			       ? bpf_program__attach_raw_tracepoint(program, opened->tracepoint)
			       : bpf_program__attach(program);
	return opened->link ? 0 : -errno;
}

void linked_run__detach(void *run)
{
	struct linked_run *opened = run;

	if (!opened->link)
		return;
	bpf_link__destroy(opened->link);
	opened->link = NULL;
}

void linked_run__close(void *run)
{
	linked_run__detach(run);
	free(run);
}
