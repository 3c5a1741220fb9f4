/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of libbpf's: the kernel's memory is the program's own here. */
#ifndef BPF_CORE_READ_H
#define BPF_CORE_READ_H

#define BPF_CORE_READ(source, field) ((source)->field)

#endif
