# SPDX-License-Identifier: BSD-2-Clause
"""Time in the kernel, from its own statistics of the BPF programs that are loaded."""

import collections
import contextlib
import glob

SWITCH = "/proc/sys/kernel/bpf_stats_enabled"
PERF_EVENT, TRACING = 7, 26  # BPF_PROG_TYPE_...

Cost = collections.namedtuple("Cost", "nanoseconds runs")


@contextlib.contextmanager
def statistics():
    """The kernel counts runs of BPF programs and their time for so long."""
    with open(SWITCH, encoding="ascii") as switch:
        before = switch.read()
    with open(SWITCH, "w", encoding="ascii") as switch:
        switch.write("1")
    try:
        yield
    finally:
        with open(SWITCH, "w", encoding="ascii") as switch:
            switch.write(before)


def read(pid, kind=PERF_EVENT):
    """Time and runs of the programs of that kind of process PID, since they were loaded."""
    programs = {}
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as fdinfo:
            fields = dict(line.split(":", 1) for line in fdinfo if ":" in line)
            if int(fields.get("prog_type", 0)) == kind:
                programs[fields["prog_id"]] = int(fields["run_time_ns"]), int(fields["run_cnt"])
    return Cost(*map(sum, zip(*programs.values()))) if programs else Cost(0, 0)
