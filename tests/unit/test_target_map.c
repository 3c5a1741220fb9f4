// SPDX-License-Identifier: BSD-2-Clause
/* What is written to BPF's maps, which are fakes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <bpf/libbpf.h>
#include <cmocka.h>

#include "sampling/target_map.h"
#include "pybpfprof.skel.h" /* after the headers that declare its types */

static size_t layouts;
static struct pybpfprof_bpf bpf;

/* These replace libbpf's functions. */
int bpf_map__update_elem(const struct bpf_map *map, const void *key, size_t key_bytes,
			 const void *value, size_t value_bytes, __u64 flags)
{
	(void)map;
	(void)key;
	(void)key_bytes;
	(void)value;
	(void)flags;
	layouts += value_bytes == sizeof(struct layout);
	return 0;
}

int bpf_map__lookup_elem(const struct bpf_map *map, const void *key, size_t key_bytes, void *value,
			 size_t value_bytes, __u64 flags)
{
	(void)map;
	(void)key;
	(void)key_bytes;
	(void)value;
	(void)value_bytes;
	(void)flags;
	return -ENOENT;
}

/* Puts process 7, with layout NUMBER. */
static int put(struct target_map *map, uint16_t number)
{
	const struct target_key key = { .kernel_pid = 7, .serial = 1 };
	const struct runtime runtime = { .layout.frame_code = number };
	uint64_t waited;

	return target_map__put(map, key, &runtime, &waited);
}

/* The error for too many layouts is not the one for too many processes. */
static void the_number_of_layouts_is_limited(void **state)
{
	struct target_map *map = target_map__new(&bpf);

	(void)state;
	for (uint16_t i = 0; i < LAYOUTS_MAX; i++)
		assert_int_equal(put(map, i), 0);
	assert_int_equal(put(map, LAYOUTS_MAX), -ENOSPC);
	assert_int_equal(put(map, 0), 0);
	assert_int_equal(put(map, LAYOUTS_MAX - 1), 0);
	assert_int_equal(layouts, LAYOUTS_MAX);
	target_map__free(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_number_of_layouts_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
