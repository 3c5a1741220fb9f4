#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the profiler with its peers, side by side in one run, on the rows of rows.py.

The peers come from the package index and from Debian (peers.py, tools.py).  One that cannot do a
row is tried, and the reason is shown.  The results go to RESULTS.md, and in short to
docs/performance.md.  The results of a partial run go to RESULTS.md beside the binary.
"""

import argparse
import json
import os
import platform
import signal
import sys
import time

import figures
import measure
import peers
import results
import rows
import specials
import tools
from processes import BINARY, ROOT, Failed

sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import debian  # noqa: E402
import pythons  # noqa: E402

DEFAULT_LEAD_S = 0.5
NEWEST = (3, 15)
KEYS = [row.key for row in (*rows.ROWS, rows.CHILDREN)] + ["names"]


def say(text):
    print("%s  %s" % (time.strftime("%H:%M:%S"), text), flush=True)


def choose_pythons():
    """This machine's newest released Python, which most peers support; and 3.15, the only one
    with its own sampler."""
    own = [python for python in pythons.own_pythons() if python.version < NEWEST]
    newest = [python for python in pythons.one_of_each_minor() if python.version[:2] == NEWEST]
    return own[-1], newest[-1] if newest else None


def measure_specials(found, python, compared, wanted, quick):
    """Fills FOUND.  Returns when each profiler's first sample comes, which the rows need."""
    say("first sample after start")
    found["start"] = specials.measure_start(python, compared, 2 if quick else 5)
    leads = {name: result[0] / 1000 + measure.LEAD_SECONDS if not isinstance(result, str)
             else DEFAULT_LEAD_S for name, result in found["start"].items()}
    if "names" in wanted:
        say("names")
        found["names"] = specials.measure_names(python, compared)
    return leads


def summarize(row, cell):
    """A cell as numbers and text, for RESULTS.md and the JSON."""
    lower, upper, confidence = figures.interval(cell.ratios) if cell.ratios else (None,) * 3
    weights = [cell.weights[name] for name in row.functions]
    measured = sum(weights) and cell.truth and sum(cell.truth)
    return {
        "cannot": cell.cannot,
        "failures": dict(cell.failures),
        "speed": figures.median(cell.ratios), "lower": lower, "upper": upper,
        "confidence": confidence, "rounds": len(cell.ratios),
        "wrong": cell.wrong / cell.python if cell.python else None,
        "cut": cell.cut / cell.python if cell.python else None,
        "reasons": dict(cell.reasons.most_common(3)),
        "distance": figures.distance(weights, cell.truth) if measured else None,
        "floor": figures.distance_floor(cell.truth, cell.python) if measured else None,
        "samples": cell.samples, "python": cell.python,
        "obtained": cell.python / cell.due if cell.due else None,
        "cpu": figures.median(cell.cpu), "memory": cell.peak or None,
        "depth": cell.deepest or None,
    }


def compare_children(python, compared, leads, quick):
    """Compares the profilers on short-lived processes."""
    row = rows.CHILDREN
    cells = specials.measure_children(python, compared, leads, 1 if quick else row.rounds,
                                      row.arguments[0])
    found = {str(name): summarize(row, cell) for name, cell in cells.items()}
    for name, cell in cells.items():
        found[str(name)]["named"], found[str(name)]["obtained"] = cell.shares()
    return found


def compare(python, compared, chosen, wanted, quick):
    """The results under one Python."""
    found = {"rows": {}}
    leads = measure_specials(found, python, compared, wanted, quick)
    for row in chosen:
        say("%s, Python %s" % (row.title, python.name))
        try:
            cells = measure.measure_row(row, python, compared, leads, 1 if quick else row.rounds)
        except Failed as reason:
            say("left out: %s" % reason)
            continue
        found["rows"][row.key] = {str(name): summarize(row, cell) for name, cell in cells.items()}
    if rows.CHILDREN.key in wanted:
        say("%s, Python %s" % (rows.CHILDREN.title, python.name))
        found["rows"][rows.CHILDREN.key] = compare_children(python, compared, leads, quick)
    return found


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one round of each row")
    parser.add_argument("--only", action="append", choices=KEYS, help="only this row, and the "
                        "first sample, which all need (may be repeated)")
    parser.add_argument("--tool", action="append", metavar="NAME", help="beside pybpfprof, only "
                        "this profiler (may be repeated)")
    return parser.parse_args()


def select(compared, names):
    return [tool for tool in compared if not names or tool.name in (*names, "pybpfprof")]


def main():
    arguments = parse_arguments()
    if not os.access(BINARY, os.X_OK):
        sys.exit("%s is not built: run make" % BINARY)
    if os.geteuid() != 0:
        sys.exit("not root; run: sudo make bench")
    # Without this, Python's own sampler would compile its library at each start.
    os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(peers.FOLDER, "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    debian.fetch(("trixie", "sid"))
    peers.install()
    started = time.monotonic()
    common, newest = choose_pythons()
    wanted = arguments.only or KEYS
    chosen = [row for row in rows.ROWS if row.key in wanted]
    plan = [(common, [tools.pybpfprof(), *tools.for_older()])]
    if newest:
        plan.append((newest, [tools.pybpfprof(), *tools.for_own_version(newest)]))
    report = {"kernel": os.uname().release, "processor": processor(),
              "cpus": len(os.sched_getaffinity(0)), "date": time.strftime("%Y-%m-%d"),
              "quick": arguments.quick, "pythons": []}
    for python, compared in plan:
        compared = select(compared, arguments.tool)
        found = compare(python, compared, chosen, wanted, arguments.quick)
        report["pythons"].append({"name": python.name, "found": found,
                                  "versions": {tool.name: tool.version for tool in compared}})
    report["seconds"] = time.monotonic() - started
    results.write(os.path.join(ROOT, ".output", "bench.json"), json.dumps(report, indent=2) + "\n")
    results.publish(report, not (arguments.quick or arguments.only or arguments.tool))


if __name__ == "__main__":
    for number in signal.SIGINT, signal.SIGTERM:
        signal.signal(number, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
