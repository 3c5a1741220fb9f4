/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * x86-64: the thread pointer is the base of FS, and pthread_self() is its value
 * in glibc and musl alike.  Both set it by arch_prctl or clone, which leave it
 * in the task as well, so that it is right there while the task runs.
 */
#ifndef THREAD_POINTER_BPF_H
#define THREAD_POINTER_BPF_H

#define USER_ADDRESS_BITS 47

#define THREAD_POINTER thread.fsbase

#endif
