// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/xalloc.h"
#include "events/cpu_events.h"
#include "system/cpus.h"

int cpu_events__open(struct cpu_events *events, struct perf_event_attr *attributes,
		     void (*set)(void *context, size_t index, struct perf_event_attr *attributes),
		     void *context)
{
	uint32_t *online;
	ssize_t count = cpus__online(&online);
	int error = 0;

	*events = (struct cpu_events){ 0 };
	if (count < 0)
		return count;
	events->events = xcalloc(count + 1, sizeof(*events->events));
	for (ssize_t i = 0; i < count && !error; i++) {
		struct cpu_event *event = &events->events[events->count];

		if (set)
			set(context, events->count, attributes);
		event->cpu = online[i];
		event->fd = syscall(SYS_perf_event_open, attributes, -1, online[i], -1,
				    PERF_FLAG_FD_CLOEXEC);
		if (event->fd >= 0)
			events->count++;
		else if (errno != ENODEV) /* a CPU may go offline in between */
			error = -errno;
	}
	free(online);
	if (!error && !events->count)
		error = -ENODEV;
	if (error)
		cpu_events__close(events);
	return error;
}

void cpu_events__close(struct cpu_events *events)
{
	for (size_t i = 0; i < events->count; i++) {
		bpf_link__destroy(events->events[i].link);
		close(events->events[i].fd);
	}
	free(events->events);
	*events = (struct cpu_events){ 0 };
}

int cpu_events__attach(void *run, const struct bpf_program *program)
{
	struct cpu_events *events = run;

	for (size_t i = 0; i < events->count; i++) {
		struct cpu_event *event = &events->events[i];
		/* The link closes the descriptor that it is given. */
		int fd = dup(event->fd);

		if (fd < 0)
			return -errno;
		event->link = bpf_program__attach_perf_event(program, fd);
		if (!event->link) {
			int error = errno;

			close(fd);
			return -error;
		}
	}
	return 0;
}

void cpu_events__detach(void *run)
{
	const struct cpu_events *events = run;

	for (size_t i = 0; i < events->count; i++)
		ioctl(events->events[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}
