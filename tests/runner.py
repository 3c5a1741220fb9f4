# SPDX-License-Identifier: BSD-2-Clause
"""Runs unit tests, fuzzers and end-to-end tests, and counts their results."""

import collections
import concurrent.futures
import glob
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

import matrix

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "interpreters"))
import build  # noqa: E402
import debian  # noqa: E402

UNIT_TIMEOUT_S = 600
FUZZ_PATIENCE_S = 300
# The limits of time per input, of total memory, and of one allocation.
FUZZ_LIMITS = ["-timeout=60", "-rss_limit_mb=2048", "-malloc_limit_mb=256"]
E2E_TEST_TIMEOUT_S = 600
E2E_TIMEOUT_S = 7200
NO_TESTS_SELECTED = 5
TIME_TO_STOP_S = 30
# The number of processes that run in parallel.
AT_ONCE = min(os.cpu_count(), 4)

OUTPUT = os.environ.get("OUTPUT", ".output")
FUZZ_REASON = re.compile(r"SUMMARY: .*|==\d+== ?ERROR: .*|.*runtime error: .*")
TAP_RESULT = re.compile(r"(ok|not ok) \d+(?: - (.*?))?(?: # (SKIP)(?: (.*))?)?")
TAP_PLAN = re.compile(r"1\.\.(\d+)")

# properties: what the test recorded (matrix.py).
Result = collections.namedtuple("Result", "outcome name reason properties", defaults=({},))


# The processes that run now.
running = set()


def say(text):
    print(text, flush=True)


def stop(process):
    """Ends a process and its children.  pytest gets time to report where it was interrupted."""
    for number in signal.SIGINT, signal.SIGKILL:
        try:
            os.killpg(process.pid, number)
            process.wait(TIME_TO_STOP_S)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def run(command, timeout, **options):
    """Runs a command in its own session.  Returns its output, and why it failed or None."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)
    running.add(process)
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        stop(process)
        output, _ = process.communicate()
        return output, "not over after %d s" % timeout
    except BaseException:
        stop(process)
        raise
    finally:
        running.discard(process)
    if process.returncode < 0:
        return output, "ended by %s" % signal.Signals(-process.returncode).name
    return output, "exit status %d" % process.returncode if process.returncode else None


def unit_results(name, output, ending):
    """The results in one binary's TAP.  If the binary did not run to its end, that is another failure."""
    results, planned = [], 0
    for line in output.splitlines():
        plan, result = TAP_PLAN.fullmatch(line), TAP_RESULT.fullmatch(line)
        if plan:
            planned += int(plan.group(1))
        elif result:
            # cmocka calls a skipped test "not ok", and names it after the word SKIP.
            verdict, test, skip, skipped_test = result.groups()
            outcome = "skipped" if skip else "passed" if verdict == "ok" else "failed"
            results.append(Result(outcome, "%s::%s" % (name, test or skipped_test), ""))
    failed = any(result.outcome == "failed" for result in results)
    if len(results) != planned:
        reason = "%d of %d tests reported, %s" % (len(results), planned, ending or "exit status 0")
        results.append(Result("failed", name, reason))
    elif ending and not failed:
        results.append(Result("failed", name, ending))
    return results


def run_unit(name):
    path = os.path.join(OUTPUT, "unit", name)
    if not os.access(path, os.X_OK):
        return [Result("failed", name, "no such unit test: " + path)]
    start = time.monotonic()
    output, ending = run([path], UNIT_TIMEOUT_S, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         universal_newlines=True, errors="replace",
                         env=dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP"))
    results = unit_results(name, output, ending)
    if any(result.outcome == "failed" for result in results):
        say(output)
    say("unit/%-24s %s  (%.1f s)" % (name, summary(results), time.monotonic() - start))
    return results


def run_fuzzer(name, seconds=0):
    """Runs a fuzzer on its corpus; with SECONDS, also on inputs that it generates for that long."""
    path = os.path.join(OUTPUT, "fuzz", name)
    if not os.access(path, os.X_OK):
        return Result("failed", name, "no such fuzzer: " + path)
    how = (["-max_total_time=%d" % seconds, os.path.join(OUTPUT, "fuzz", "corpus", name)] if seconds
           else ["-runs=0"])
    start = time.monotonic()
    output, ending = run([path, *how, *FUZZ_LIMITS, "-close_fd_mask=2", "-artifact_prefix=%s-" % path,
                          os.path.join("tests", "fuzz", "corpus", name)],
                         seconds + FUZZ_PATIENCE_S, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         universal_newlines=True, errors="replace")
    said = output.splitlines()
    if ending:
        say("\n".join(said[-100:]))
        ending = next(filter(FUZZ_REASON.search, reversed(said)), ending)
    done = next((line for line in reversed(said) if "DONE" in line), "").strip()
    say("fuzz/%-24s %s  (%.1f s)" % (name, ending or done, time.monotonic() - start))
    return Result("failed" if ending else "passed", name, ending or "")


def side_by_side(run_one, names):
    """The results of RUN_ONE for each of NAMES, in their order.  They run in parallel."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            return list(pool.map(run_one, names))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                stop(process)
            raise


def case_result(case):
    """The result of one <testcase> of pytest's report."""
    # pytest-xdist appends @ and the group.
    name = "%s::%s" % (case.get("classname"), case.get("name").split("@")[0])
    properties = {found.get("name"): found.get("value") for found in case.iter("property")}
    properties["measured"] = [found.get("value") for found in case.iter("property")
                              if found.get("name") == "measured"]
    for tag, outcome in ("failure", "failed"), ("error", "failed"), ("skipped", "skipped"):
        found = case.find(tag)
        if found is not None:
            reason = (found.get("message") or "").split("\n")[0]
            return Result(outcome, name, reason, properties)
    return Result("passed", name, "", properties)


def files_of(tier):
    """The files of tests/e2e that may hold tests of TIER.  Just collecting some other files needs root."""
    if tier != "check":
        return ["tests/e2e"]
    found = []
    for path in sorted(glob.glob("tests/e2e/test_*.py")):
        with open(path, encoding="utf-8") as file:
            found += [path] if "mark.check" in file.read() else []
    return found


def run_tier(tier):
    """The end-to-end tests of a tier: "check", "test", or a part of `make prove`.  They run in
    parallel, except those marked `alone`."""
    beside = ["-n", str(AT_ONCE), "--dist", "loadgroup"]
    files = files_of(tier)
    return (run_e2e(["-m", "not alone", *files, *beside], tier) +
            run_e2e(["-m", "alone", *files], tier))


def run_e2e(arguments, tier=""):
    """The results of the tests that ARGUMENTS select."""
    for module in "pytest", "pytest_timeout", "xdist":
        if not importlib.util.find_spec(module):
            reason = "no %s; deploy/packages.sh check installs it" % module
            return [Result("failed", "tests/e2e", reason)]
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.xml")
        binary = os.environ.get("PYBPFPROF", os.path.join(OUTPUT, "pybpfprof"))
        _, ending = run([sys.executable, "-B", "-m", "pytest", "-v", "--no-header",
                         "-p", "no:cacheprovider", "--durations=10",
                         "--timeout=%d" % E2E_TEST_TIMEOUT_S, "--junitxml=" + report] + arguments,
                        E2E_TIMEOUT_S, env=dict(os.environ, PYBPFPROF=binary, PYBPFPROF_TIER=tier))
        try:
            cases = xml.etree.ElementTree.parse(report).iter("testcase")
            # An interrupted test has neither a name nor a result.
            results = [case_result(case) for case in cases if case.get("name")]
        except (OSError, xml.etree.ElementTree.ParseError):
            results, ending = [], ending or "no report"
    nothing = "exit status %d" % NO_TESTS_SELECTED
    if ending and ending != nothing and not any(each.outcome == "failed" for each in results):
        results.append(Result("failed", "pytest", ending))
    return results


def provide_interpreters(built=False):
    """Fetches interpreters; with BUILT, also builds those that no package has.  Returns a result for each
    missing one: skipped if the mirror does not answer."""
    return [Result("failed" if provided.outcome == "failed" else "skipped",
                   "interpreters::" + provided.name, provided.reason)
            for provided in debian.fetch() + (build.build() if built else [])
            if provided.outcome != "there"]


def find_gaps():
    """A failure for each row of pythons.FEW that has no interpreter here."""
    sys.path.insert(0, "tests/e2e")
    import pythons
    found = {python.version[:2] for python in pythons.find_pythons()}
    return [Result("failed", "interpreters::%d.%d" % versions[0], "none here, and none to be fetched")
            for versions in pythons.FEW if not found & set(versions)]


def summary(results):
    counts = collections.Counter(result.outcome for result in results)
    return ", ".join("%d %s" % (counts[word], word) for word in ("passed", "failed", "skipped"))


def show_matrix(results):
    """Prints the table of proved properties, and writes it to a Markdown file."""
    text = matrix.table(results)
    if text:
        say("\n" + text)
        with open(os.path.join(OUTPUT, "interpreters.md"), "w", encoding="utf-8") as file:
            file.write(text)


def names_in(*folders, beginning):
    return sorted(name[:-len(".c")] for folder in folders for name in os.listdir(folder)
                  if re.fullmatch(beginning + r"\w+\.c", name))


def every_unit():
    return names_in("tests/unit", "tests/native", beginning="test_")


def every_fuzzer():
    return names_in("tests/fuzz", beginning="fuzz_")


def run_units(names):
    return [result for found in side_by_side(run_unit, names) for result in found]


def conclude(results):
    """Prints the tests that did not pass, and the line of counts.  Returns the exit status."""
    for outcome in "skipped", "failed":
        for result in results:
            if result.outcome == outcome:
                reason = result.reason and ": " + result.reason
                say("%s %s%s" % (outcome.upper(), result.name, reason))
    say(summary(results))
    outcomes = {result.outcome for result in results}
    return 0 if "passed" in outcomes and "failed" not in outcomes else 1
