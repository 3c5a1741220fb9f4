// SPDX-License-Identifier: BSD-2-Clause
#include <sys/syscall.h>

#include "base/xalloc.h"
#include "events/system_call.h"
#include "naming/waits.h"
#include "pybpfprof.h"

static const struct {
	uint32_t number;
	const char *text;
} kinds[] = {
	{ SYS_nanosleep, "sleep" },   { SYS_clock_nanosleep, "sleep" },
	{ SYS_ppoll, "poll" },	      { SYS_pselect6, "poll" },
	{ SYS_epoll_pwait, "poll" },
#ifdef SYS_poll /* newer architectures have none of these */
	{ SYS_poll, "poll" },	      { SYS_select, "poll" },
	{ SYS_epoll_wait, "poll" },
#endif
#ifdef SYS_epoll_pwait2
	{ SYS_epoll_pwait2, "poll" },
#endif
	{ SYS_read, "read" },	      { SYS_pread64, "read" },
	{ SYS_readv, "read" },	      { SYS_preadv, "read" },
	{ SYS_recvfrom, "read" },     { SYS_recvmsg, "read" },
	{ SYS_recvmmsg, "read" },     { SYS_accept, "read" },
	{ SYS_accept4, "read" },      { SYS_write, "write" },
	{ SYS_pwrite64, "write" },    { SYS_writev, "write" },
	{ SYS_pwritev, "write" },     { SYS_sendto, "write" },
	{ SYS_sendmsg, "write" },     { SYS_sendmmsg, "write" },
	{ SYS_futex, "lock" },
};

static const char *word_of(uint32_t number)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].number == number)
			return kinds[i].text;
	return system_call__name(number);
}

char *wait__text(uint32_t wait)
{
	const char *word = wait >= WAIT_SYSTEM_CALL ? word_of(wait - WAIT_SYSTEM_CALL) : NULL;

	if (word)
		return xasprintf("[%s]", word);
	if (wait >= WAIT_SYSTEM_CALL)
		return xasprintf("[system call %u]", wait - WAIT_SYSTEM_CALL);
	return xstrdup(wait == WAIT_GIL		? "[waiting for the GIL]"
		       : wait == WAIT_STOPPED	? "[stopped]"
		       : wait == WAIT_SUSPENDED ? "[stopped for another thread]"
		       : wait == WAIT_RUNNABLE	? "[runnable, not running]"
		       : wait == WAIT_FAULT	? "[page fault]"
						: "[in the kernel]");
}
