# SPDX-License-Identifier: BSD-2-Clause
"""The parts of `make prove`.  Each writes a table of measured and wanted values to .output/prove/.

A failed end-to-end test runs again at the end of its part, and only a second failure counts.  The exit
status is 1 if anything has failed.
"""

import collections
import json
import math
import os
import re
import subprocess
import sys
import time

import matrix
import runner
from runner import Result, say

FOLDER = os.path.join(runner.OUTPUT, "prove")
FUZZ_SECONDS = 300
CHI_SQUARE_P = 1e-6


def build_backends(*names):
    """Builds real servers: all, or NAMES.  If one cannot be built, its tests are skipped with the reason."""
    status = subprocess.call(["tests/backends/build_backends.py", *names])
    return [] if status in (0, 1) else [Result("failed", "backends", "exit status %d" % status)]


def fuzz():
    seconds = int(os.environ.get("FUZZ_SECONDS", FUZZ_SECONDS))
    return (runner.run_units(["test_walker_fuzz"]) +
            runner.side_by_side(lambda name: runner.run_fuzzer(name, seconds), runner.every_fuzzer()))


def bench():
    """Measures the cost beside other profilers and with many processes.  Both scripts write their own tables."""
    results = []
    for command in ["tests/bench/bench.py"], ["tests/bench/scale.py"]:
        command += [] if os.environ.get("PUBLISH") else ["--quick"]
        status = subprocess.call(command)
        results.append(Result("failed" if status else "passed", command[0], "exit status %d" % status))
    return results


# minutes: on two CPUs, after all downloads and builds; prepare(): runs before the tests and returns
# results.
Part = collections.namedtuple("Part", "minutes what prepare environment", defaults=(None, {}))

PARTS = {
    "truth": Part(30, "stacks that never were, shares of functions, whole stacks", runner.provide_interpreters),
    "lines": Part(15, "each line that is seen, and shares of lines", runner.provide_interpreters),
    "interpreters": Part(45, "what `make test` does on few interpreters, on all, debug builds included",
                         lambda: runner.provide_interpreters(built=True)),
    "native": Part(10, "native stacks beside another unwinder's, and what they cost", runner.provide_interpreters),
    "events": Part(10, "page faults beside the truth, and what they cost", runner.provide_interpreters),
    "waiting": Part(25, "time off the CPU beside the truth, and what it costs", runner.provide_interpreters),
    "kernels": Part(15, "all of Debian's kernels from 5.10 on, and what the verifier has to do",
                    runner.provide_interpreters),
    "aarch64": Part(15, "kernels of aarch64, with pages of 4 and 16 KiB", runner.provide_interpreters),
    "cost": Part(35, "CPU time and memory, beside other profilers and with many processes", bench),
    "churn": Part(35, "threads, processes and code that come and go for half an hour",
                  environment={"CHURN_SECONDS": "1500"}),
    "life": Part(55, "an agent among services that come and go", environment={"LIFE_SECONDS": "3000"}),
    "fuzz": Part(45, "each fuzzer for $FUZZ_SECONDS (%d)" % FUZZ_SECONDS, fuzz,
                 {"PYBPFPROF_DEEP": "1"}),
    "push": Part(15, "real servers that profiles are pushed to, or that name pods", build_backends),
    "deploy": Part(30, "images, packages, charts and examples",
                   lambda: build_backends("pyroscope", "parca")),
}


def survival(distance, freedom):
    """The probability of a chi-square beyond DISTANCE: the regularized incomplete gamma function, by
    its series or, in the tail, its continued fraction (Abramowitz and Stegun 6.5.29 and 6.5.31)."""
    if distance <= 0:
        return 1.0
    a, x = freedom / 2, distance / 2
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        for k in range(1, 10_000):
            term *= x / (a + k)
            total += term
        return 1 - scale * total
    fraction = 0.0
    for k in range(1000, 0, -1):
        fraction = k * (k - a) / (x + 2 * k + 1 - a - fraction)
    return scale / (x + 1 - a - fraction)


def chi_square(results):
    """One row and one Result for all sampled shares of a part; empty lists if it has none."""
    found = [each.properties["chi_square"].split() for each in results if "chi_square" in each.properties]
    if not found:
        return [], []
    distance, freedom = sum(float(row[0]) for row in found), sum(int(row[1]) for row in found)
    p = survival(distance, freedom)
    row = ["sampled shares, chi-square of %d tests" % len(found),
           "%.1f with %d degrees of freedom, p = %.2g" % (distance, freedom, p), "p >= %g" % CHI_SQUARE_P]
    outcome = "passed" if p >= CHI_SQUARE_P else "failed"
    return [row], [Result(outcome, "sampled shares", row[1])]


def rows_of(results):
    """The measurements of the tests, each [what, found, wanted]."""
    return [json.loads(text) for each in results for text in each.properties.get("measured", [])]


def table(rows):
    """A measurement named "TITLE, INTERPRETER" goes into the column TITLE.  Any other has a row."""
    columns, others = {}, []
    for what, found, wanted in rows:
        title, _, name = what.rpartition(", ")
        if re.match(r"\d\.\d+\S*$", name):
            columns.setdefault((title, wanted), {})[name] = found
        else:
            others.append([what, found, wanted])
    text = matrix.markdown([["measured", "found", "wanted"], *others]) + "\n" if others else ""
    names = sorted({name for found in columns.values() for name in found}, key=matrix.version)
    titles = ["%s (wanted: %s)" % (title, wanted) if wanted else title for title, wanted in columns]
    cells = [[name, *(found.get(name, "-") for found in columns.values())] for name in names]
    return text + (matrix.markdown([["CPython", *titles], *cells]) if cells else "")


def run_once_more(name, results):
    """RESULTS, where each failed test has the result of its second run."""
    failed = {each.name: each.properties["nodeid"] for each in results
              if each.outcome == "failed" and "nodeid" in each.properties}
    if not failed:
        return results
    say("%s: running again what failed: %d" % (name, len(failed)))
    later = {each.name: each for each in runner.run_e2e(list(failed.values()), name)}
    return [later.get(each.name, each) if each.name in failed else each for each in results]


def run_part(name):
    """Runs a part and writes its report.  Returns the results."""
    part = PARTS[name]
    started = time.monotonic()
    for variable, value in part.environment.items():
        os.environ.setdefault(variable, value)
    prepared = part.prepare() if part.prepare else []
    results = run_once_more(name, runner.run_tier(name))
    rows, shares = chi_square(results)
    results = prepared + results + shares
    minutes = round((time.monotonic() - started) / 60)
    text = "# %s: %s\n\n%s, %d minute%s\n" % (name, part.what, runner.summary(results), minutes, "s" * (minutes != 1))
    rows = rows_of(results) + rows
    text += "\n" + table(rows) if rows else ""
    proved = matrix.table(results)
    text += "\n" + proved if proved else ""
    text += "".join("\n%s: %s %s\n" % (each.outcome, each.name, each.reason)
                    for each in results if each.outcome != "passed")
    with open(os.path.join(FOLDER, name + ".md"), "w", encoding="utf-8") as file:
        file.write(text)
    say("\n" + text)
    return results


def renew(text, name, content):
    """TEXT of a document with CONTENT in its block NAME."""
    block = r"(<!-- generated: prove %s -->\n).*?(<!-- end generated -->)" % name
    return re.sub(block, lambda marks: marks[1] + "\n" + content + "\n" + marks[2], text, flags=re.DOTALL)


MEASUREMENTS_MAX = 20


def shortened(report):
    """The title, the counts, and the last table of each kind of a part's REPORT, with narrow columns; measurements
    of no interpreter only if they are few."""
    title, counts, *rest = re.split(r"\n{2,}", report)
    tables = {paragraph.split()[1]: re.sub(r" +\|", " |", re.sub(r"-{3,}", "---", paragraph)) for paragraph in rest
              if paragraph.startswith("| CPython") or
              (paragraph.startswith("| measured") and paragraph.count("\n") < MEASUREMENTS_MAX)}
    return "\n\n".join(part.strip() for part in ["##" + title, counts, *tables.values()]) + "\n"


def publish():
    """Updates the tables of docs/accuracy.md.  The benchmarks update docs/performance.md themselves."""
    path = os.path.join("docs", "accuracy.md")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for name in PARTS:
        report = os.path.join(FOLDER, name + ".md")
        if os.path.exists(report):
            with open(report, encoding="utf-8") as file:
                text = renew(text, name, shortened(file.read()))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(arguments):
    if arguments == ["--list"]:
        for name, part in PARTS.items():
            print("%-13s %2d min  %s" % (name, part.minutes, part.what))
        return 0
    unknown = [name for name in arguments if name not in PARTS]
    if unknown:
        sys.exit("no part %s; there are: %s" % (", ".join(unknown), " ".join(PARTS)))
    os.makedirs(FOLDER, exist_ok=True)
    results = [result for name in arguments or PARTS for result in run_part(name)]
    if os.environ.get("PUBLISH"):
        publish()
    return runner.conclude(results)
