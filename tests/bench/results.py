# SPDX-License-Identifier: BSD-2-Clause
"""Writes the bench's results: RESULTS.md, and the marked summary in docs/performance.md."""

import collections
import os

import figures
import rows
from processes import HERE, ROOT

NEST_DEPTH = 900
SUMMARY = os.path.join(ROOT, "docs", "performance.md")
BEGIN, END = "<!-- generated: prove performance -->\n", "<!-- end generated -->"
SCALE_BEGIN = "<!-- made by make bench-scale -->\n"
SCALE_END = "<!-- end of what make bench-scale made -->\n"
OURS = "pybpfprof"
NOISE = "None"  # the key of the ratios of the workload alone

HOW_TO_READ = """\
Every figure is from one run. The profilers of a row take turns. The workload alone runs before and after
each of them, so that other load on the machine affects all alike.

- *Speed kept*: the workload's turns per second under the profiler, divided by the speed in the two
  windows beside it without one. The table shows the median over six rounds, and its 95 % interval by
  order statistics. If rounds failed, and in the quick form, "rounds" says how many there are. The
  interval is then their whole range, which covers less than 95 %. "No profiler" compares the workload
  alone with its own neighbours: the noise. For `-X perf`, the speed includes the cost of that option.
- *Impossible*: the part of the Python stacks that the program cannot have. With lines, a call must come
  from a line that makes it, and a sleeping thread is on no CPU. *Cut*: stacks without their outermost
  frames. They are not judged.
- *Distance*: the total variation distance between the functions' shares in the profile and in the CPU
  time by the program's own clock. The number in brackets is what chance alone gives for as many samples.
- *Samples*: samples with a Python stack, divided by the samples due: the rate times the target's CPU
  time. Above 100 %, samples of a thread that waited for a CPU are included.
- *CPU*, *memory*: the profiler's own CPU time, of one core, while it samples, and its peak memory. The
  work in the kernel shows in the target's speed. The time of `perf script`, which makes perf's stacks
  readable, is not included.
- *profiling.sampling* runs with its defaults, without stopping its target. Its `--blocking` finds no
  thread on a CPU. *perf* keeps 127 frames of a stack, the kernel's default. About four of them make one
  Python frame.
- For processes of 50 ms, a turn is a process that has ended. That includes starting and ending an
  interpreter. *Named* are the processes whose function is in the profile. *Samples* are those in these
  functions. Only stacks with a frame of one of the two programs are judged.
- *Cannot*: it was tried, and failed.
- *Where pybpfprof is not ahead* lists each row of the summary in which a peer is ahead, or pybpfprof has
  no figure. In speed kept, a peer is ahead if its whole interval lies above that of pybpfprof. If the
  intervals overlap, they are level. In other rows a peer is ahead if its figure is better by more than
  0.005 of distance beyond chance, 5 % of the samples due, 0.2 % of a core, 1 MiB, 10 ms until the first
  sample, 0.05 s of a run, or 0.5 % of the processes that have samples. Smaller differences are level. In
  rows that are not named here, any difference counts. More samples than due count as all of them.
"""

# Why a figure may not be the best one.
WHY = {
    "speed": "each sample interrupts the target, and the walk takes its time",
    "wrong": "unexpected: please report it",
    "cut": "unexpected: the limit is 1,023 frames",
    "distance": "chance, if it is near the floor; otherwise unexpected",
    "obtained": "an interrupt that a busy host swallows is a lost sample; peers count by the clock",
    "cpu": "user space reads the maps several times per second, even with few samples",
    "memory": "the ring buffer takes 16 MiB of it: its 8 MiB are mapped twice, one after the other",
    "depth": "unexpected: the limit is 1,023 frames",
    "start": "the kernel first verifies and compiles the BPF program",
    "end": "the kernel first verifies and compiles the BPF program",
    "names": "unexpected",
    "children": "a new process has no stacks until its Python is found",
    "following-speed": "BPF also sees each fork, exec, mapping and end",
    "following-cpu": "user space reads each process's program and owner while it lives",
}

NO_FIGURE = "unexpected: pybpfprof has no figure"

# part: of the results; get: a cell of that part -> (value, text), or None; a value may be an
# interval; more: whether more is better; slack: the difference that still counts as level.
Figure = collections.namedtuple("Figure", "title key part get more slack")


def percent(value, digits=1):
    return "-" if value is None else "%.*f %%" % (digits, 100 * value)


def speed(cell):
    lower, upper = cell["lower"], cell["upper"]
    few = cell["confidence"] < figures.CONFIDENCE
    text = "%s (%.1f to %.1f%s)" % (percent(cell["speed"]), 100 * lower, 100 * upper,
                                    "; rounds: %d" % cell["rounds"] if few else "")
    return (lower, upper), text


def distance(cell):
    """The part that chance explains does not count."""
    return max(0, cell["distance"] - cell["floor"]), "%.3f (%.3f)" % (cell["distance"], cell["floor"])


FORMATS = {
    "speed": speed,
    "wrong": lambda cell: (cell["wrong"], percent(cell["wrong"], 2)),
    "cut": lambda cell: (cell["cut"], percent(cell["cut"], 2)),
    "distance": distance,
    "named": lambda cell: (cell["named"], percent(cell["named"], 0)),
    "obtained": lambda cell: (min(cell["obtained"], 1), percent(cell["obtained"], 0)),
    "cpu": lambda cell: (cell["cpu"], percent(cell["cpu"])),
    "memory": lambda cell: (cell["memory"], "%.0f MiB" % cell["memory"]),
    "depth": lambda cell: (cell["depth"], str(cell["depth"])),
}


def of_row(field):
    """A getter of a field of a row's cell; None if the cell lacks it."""
    def get(cell):
        return None if cell.get(field) is None else FORMATS[field](cell)
    return get


def names_text(cell):
    right, qualified, count = cell
    return qualified, "%d of %d, %s" % (right, count, "all qualified" if qualified == right else
                                        "%d qualified" % qualified)


def depth_of_nest(cell):
    """Counts only the workload's fixed frames; calls below them come and go."""
    depth = min(cell["depth"] or 0, NEST_DEPTH)
    return depth, str(depth)


def figure(title, key, part, more, slack, get=None):
    return Figure(title, key, part, get or of_row(key), more, slack)


COLUMNS = (
    ("Speed kept", "speed"), ("Impossible", "wrong"), ("Cut", "cut"), ("Distance", "distance"),
    ("Named", "named"), ("Samples", "obtained"), ("CPU", "cpu"), ("Memory", "memory"),
    ("Depth", "depth"),
)

SUMMARY = (
    figure("speed kept, recursion, 1,000 Hz", "speed", "recursion", True, None),
    figure("speed kept, recursion, 100 Hz", "speed", "recursion-100", True, None),
    figure("speed kept, 160 threads, 100 Hz", "speed", "threads", True, None),
    figure("impossible stacks, recursion, 1,000 Hz", "wrong", "recursion", False, 0.0),
    figure("stacks without their outermost frames", "cut", "recursion", False, 0.0),
    figure("distance of shares from the truth (by chance)", "distance", "shares", False, 0.005),
    figure("the same, C code without the GIL", "distance", "released", False, 0.005),
    figure("samples of those due, 1,000 Hz", "obtained", "recursion", True, 0.05),
    figure("profiler's CPU, 1,000 Hz", "cpu", "recursion", False, 0.002),
    figure("profiler's CPU, 160 threads, 100 Hz", "cpu", "threads", False, 0.002),
    figure("profiler's memory", "memory", "recursion", False, 1.0),
    figure("deepest of 900 frames", "depth", "depth", True, 0, depth_of_nest),
    figure("first sample after start", "start", "start", False, 10,
           lambda cell: (cell[0], "%.0f ms" % cell[0])),
    figure("a run of one second takes longer by", "end", "start", False, 0.05,
           lambda cell: (cell[1], "%.2f s" % cell[1])),
    figure("names", "names", "names", True, 0, names_text),
    figure("processes of 50 ms that have samples", "children", "children", True, 0.005,
           lambda cell: (cell["named"], "%s, %s of those due" % (percent(cell["named"], 0),
                                                                 percent(cell["obtained"], 0)))),
    figure("speed kept, processes of 50 ms", "following-speed", "children", True, None,
           of_row("speed")),
    figure("impossible stacks, processes of 50 ms", "wrong", "children", False, 0.0),
    figure("profiler's CPU, processes of 50 ms", "following-cpu", "children", False, 0.002,
           of_row("cpu")),
)


def version_of(python):
    return python["name"].partition("-")[0]


def part_of(found, part):
    return found["rows"].get(part) or found.get(part) or {}


def look_up(found, figure, tool):
    """(value, text) of a figure.  The value is None if the profiler cannot do it or has no
    result."""
    cell = part_of(found, figure.part).get(tool)
    if cell is None:
        return None, "-"
    if isinstance(cell, str) or (isinstance(cell, dict) and cell["cannot"]):
        return None, "cannot"
    return figure.get(cell) or (None, "-")


def table(lines):
    """Lines of cells as Markdown; the first line is the head."""
    lines = [lines[0], ["---"] * len(lines[0])] + lines[1:]
    return "".join("| %s |\n" % " | ".join(line) for line in lines)


def summary_table(python):
    names = list(python["versions"])
    lines = [["CPython %s" % version_of(python)] + names]
    for each in SUMMARY:
        if part_of(python["found"], each.part):
            lines.append([each.title] + [look_up(python["found"], each, name)[1]
                                         for name in names])
    return table(lines)


def row_table(cells, versions):
    columns = [(title, of_row(key)) for title, key in COLUMNS]
    columns = [(title, get) for title, get in columns
               if any(not cell["cannot"] and get(cell) for cell in cells.values())]
    lines = [["profiler"] + [title for title, _ in columns]]
    for name in versions:
        cell = cells[name]
        if cell["cannot"]:
            lines.append([name, "cannot"] + ["-"] * (len(columns) - 1))
        else:
            lines.append([name] + [(get(cell) or (None, "-"))[1] for _, get in columns])
    noise = cells.get(NOISE)
    if noise and noise["speed"] is not None:
        lines.append(["no profiler", speed(noise)[1]] + ["-"] * (len(columns) - 1))
    return table(lines)


def remarks(cells, versions):
    """Why a profiler cannot do a row, or failed in some rounds."""
    text = ""
    for name in versions:
        cell = cells.get(name)
        if isinstance(cell, str):
            text += "- %s cannot: %s\n" % (name, cell)
        elif isinstance(cell, dict):
            for reason, times in cell["failures"].items():
                word = "cannot" if cell["cannot"] else "failed in %d rounds" % times
                text += "- %s %s: %s\n" % (name, word, reason)
    return text and "\n" + text


def is_ahead(peer, ours, each):
    """Whether a peer's value is better.  An interval has to be entirely beyond the other one."""
    if ours is None:
        return True
    if isinstance(ours, tuple):
        return peer[0] > ours[1] if each.more else peer[1] < ours[0]
    return (peer - ours if each.more else ours - peer) > each.slack


def behind(python):
    """Sentences on the figures of the summary in which a peer is ahead of pybpfprof."""
    found = []
    for each in SUMMARY:
        ours, our_text = look_up(python["found"], each, OURS)
        peers = [(look_up(python["found"], each, name), name) for name in python["versions"]
                 if name != OURS]
        peers = [(value, text, name) for (value, text), name in peers if value is not None]
        better = [(text, name) for value, text, name in peers if is_ahead(value, ours, each)]
        if better:
            why = NO_FIGURE if ours is None else WHY[each.key]
            found.append("- %s, CPython %s: %s; %s. %s.\n" % (
                each.title, version_of(python), our_text,
                ", ".join("%s %s" % (name, text) for text, name in better),
                why[0].upper() + why[1:]))
    return found


def summary(report):
    text = "".join(summary_table(python) + "\n" for python in report["pythons"])
    sentences = [sentence for python in report["pythons"] for sentence in behind(python)]
    if sentences:
        text += "Where pybpfprof is not ahead:\n\n" + "".join(sentences)
    return text.rstrip("\n") + "\n"


TITLES = {row.key: row.title for row in (*rows.ROWS, rows.CHILDREN)}


def whole(report):
    text = "# pybpfprof and its peers, side by side\n\n"
    text += "Made by `make bench`%s on %s, in %.0f minutes: %d CPUs (%s), Linux %s.\n\n" % (
        " in its quick form" if report["quick"] else "", report["date"], report["seconds"] / 60,
        report["cpus"], report["processor"], report["kernel"])
    versions = {name: version for python in report["pythons"]
                for name, version in python["versions"].items()}
    text += "".join("- %s %s\n" % item for item in versions.items()) + "\n"
    text += HOW_TO_READ + "\n## Summary\n\n" + summary(report)
    for python in report["pythons"]:
        text += "\n## CPython %s\n" % version_of(python)
        for key, cells in python["found"]["rows"].items():
            text += "\n### %s\n\n" % TITLES[key]
            text += row_table(cells, python["versions"])
            text += remarks(cells, python["versions"])
        for key, title in ("start", "First sample"), ("names", "Names"):
            cannot = remarks(python["found"].get(key, {}), python["versions"])
            text += "\n### %s\n%s" % (title, cannot) if cannot else ""
    return text.rstrip("\n") + "\n"


def part_between(text, begin, end):
    """The part of the text between the marks, including them; "" without marks."""
    _, mark, rest = text.partition(begin)
    part, end, _ = rest.partition(end)
    return mark + part + end if mark and end else ""


def keep_part(path, new):
    """Replaces the part between the marks at the end of RESULTS.md with NEW."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    write(path, text.replace(part_between(text, SCALE_BEGIN, SCALE_END), "").rstrip("\n") + "\n\n" +
          SCALE_BEGIN + new + SCALE_END)


def replace_between(text, new):
    """TEXT with NEW between the marks; unchanged if it has no marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return before + begin + "\n" + new + "\n" + end + after if end else text


def write(path, text):
    """Gives the file to the summary's owner, because this runs as root."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    owner = os.stat(SUMMARY)
    os.chown(path, owner.st_uid, owner.st_gid)


def publish(report, official):
    """Writes the results into the tree after a complete run, or beside the binary after any
    other."""
    path = os.path.join(HERE if official else os.path.join(ROOT, ".output"), "RESULTS.md")
    scale = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            scale = part_between(file.read(), SCALE_BEGIN, SCALE_END)
    write(path, whole(report) + (scale and "\n" + scale))
    if official:
        with open(SUMMARY, encoding="utf-8") as file:
            text = file.read()
        write(SUMMARY, replace_between(text, summary(report)))
    print("\n" + summary(report))
    print("all of it: %s" % path)
