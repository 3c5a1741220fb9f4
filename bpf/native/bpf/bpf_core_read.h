/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of libbpf's: the kernel's memory is the program's own here. */
#ifndef BPF_CORE_READ_H
#define BPF_CORE_READ_H

#include <stddef.h>
#include <string.h>

/* A field, or a field of what it points to. */
#define CORE_READ_ONE(source, field)	 ((source)->field)
#define CORE_READ_TWO(source, field, of) ((source)->field->of)
#define CORE_READ(one, two, name, ...)	 name
#define BPF_CORE_READ(source, ...)                           \
	CORE_READ(__VA_ARGS__, CORE_READ_TWO, CORE_READ_ONE) \
	(source, __VA_ARGS__)
#define bpf_core_read(to, size, from)		memcpy(to, from, size)
#define bpf_core_field_offset(type, field)	offsetof(type, field)
#define bpf_core_type_size(type)		sizeof(type)
#define bpf_core_field_exists(field)		true
#define bpf_core_enum_value_exists(type, value) has_helper((type)(value))

/* Whether the running kernel has the helper of this number. */
bool has_helper(enum bpf_func_id helper);

#endif
