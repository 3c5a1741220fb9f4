/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces a function of another module in a test (ld's --wrap). */
#ifndef PYBPFPROF_WRAP_H
#define PYBPFPROF_WRAP_H

#define WRAP(type, name, ...)            \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

#endif
