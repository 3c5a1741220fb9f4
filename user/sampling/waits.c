// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "sampling/iteration.h"
#include "sampling/slots.h"
#include "sampling/waits.h"
#include "pybpfprof.skel.h" /* needs the types of the headers above */

int waits__open(const struct pybpfprof_bpf *bpf)
{
	union bpf_iter_link_info map = { .map.map_fd = bpf_map__fd(bpf->maps.waits) };
	const struct bpf_link_create_opts options = { .sz = sizeof(options),
						      .iter_info = &map,
						      .iter_info_len = sizeof(map) };
	int link = bpf_link_create(bpf_program__fd(bpf->progs.count_wait), 0, BPF_TRACE_ITER,
				   &options);

	return link < 0 ? -errno : link;
}

int waits__count(struct pybpfprof_bpf *bpf, int link, uint64_t until_ns)
{
	bpf->bss->waits_until = until_ns;
	return iteration__run(link);
}

static void keep(struct slots *slots, const struct wait *wait)
{
	slots__keep(slots, wait->slot, wait->hash);
	if (wait->queue_slot != NO_SLOT)
		slots__keep(slots, wait->queue_slot, wait->hash ^ QUEUE_HASH);
}

void waits__keep(const struct pybpfprof_bpf *bpf, struct slots *slots)
{
	int map = bpf_map__fd(bpf->maps.waits);
	struct wait wait;
	uint32_t thread;

	for (void *before = NULL; !bpf_map_get_next_key(map, before, &thread); before = &thread)
		if (!bpf_map_lookup_elem(map, &thread, &wait) && wait.since)
			keep(slots, &wait);
}
