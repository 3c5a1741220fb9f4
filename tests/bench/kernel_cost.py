# SPDX-License-Identifier: BSD-2-Clause
"""Time in the kernel, from the kernel's statistics of loaded BPF programs."""

import collections
import contextlib
import ctypes
import glob
import os
import platform

SYS_BPF = {"x86_64": 321, "aarch64": 280}
BPF_ENABLE_STATS, RUN_TIME = 32, 0
PERF_EVENT, TRACING = 7, 26  # BPF_PROG_TYPE_...

Cost = collections.namedtuple("Cost", "nanoseconds runs")


@contextlib.contextmanager
def statistics():
    """Lets the kernel count runs of BPF programs and their time in this context.  With
    kernel.bpf_stats_enabled, the first of several users would switch it off for all."""
    what = ctypes.c_uint32(RUN_TIME)
    libc = ctypes.CDLL(None, use_errno=True)
    held = libc.syscall(SYS_BPF[platform.machine()], BPF_ENABLE_STATS, ctypes.byref(what),
                        ctypes.sizeof(what))
    if held < 0:
        raise OSError(ctypes.get_errno(), "the kernel does not count what BPF programs take")
    try:
        yield
    finally:
        os.close(held)


def read(pid, kind=PERF_EVENT):
    """The time and runs of process PID's programs of that kind, since they were loaded."""
    programs = {}
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as fdinfo:
            fields = dict(line.split(":", 1) for line in fdinfo if ":" in line)
            if int(fields.get("prog_type", 0)) == kind:
                programs[fields["prog_id"]] = int(fields["run_time_ns"]), int(fields["run_cnt"])
    return Cost(*map(sum, zip(*programs.values()))) if programs else Cost(0, 0)
