# SPDX-License-Identifier: BSD-2-Clause
"""The bench's arithmetic, its readers of profiles and its judges; not its measured figures."""

import os
import sys

import pytest

from conftest import ROOT
from folded import Frame

sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
import bench  # noqa: E402
import figures  # noqa: E402
import judge  # noqa: E402
import measure  # noqa: E402
import results  # noqa: E402
import rows  # noqa: E402
import specials  # noqa: E402
import stacks  # noqa: E402
import tools  # noqa: E402
from processes import Failed  # noqa: E402

pytestmark = pytest.mark.check


def labels(found):
    return [([frame.label for frame in frames], samples, weight)
            for frames, samples, weight in found]


def test_interval():
    """Order statistics: at least six values are needed for their range to have 95 % confidence."""
    assert figures.interval([3, 1, 2]) == (1, 3, 0.75)
    assert figures.interval([6, 1, 5, 2, 4, 3]) == (1, 6, 1 - 2 / 2 ** 6)
    assert figures.interval(list(range(9))) == (1, 7, 1 - 20 / 2 ** 9)
    assert figures.interval([5]) == (5, 5, 0.0)


def test_paired_ratios():
    """Each speed is compared with the adjacent unprofiled ones, as the machine's speed drifts."""
    speeds = [(None, 100), ("a", 90), (None, 100), ("b", 25), (None, 50), ("a", 45), (None, 50),
              ("lost", 1)]
    ratios = figures.paired_ratios(speeds)
    assert ratios["a"] == [0.9, 0.9]
    assert ratios["b"] == [pytest.approx(25 / 75)]
    assert ratios[None] == [pytest.approx(100 / 75), pytest.approx(50 / 75)]
    assert "lost" not in ratios


def test_distance():
    assert figures.distance([40, 60], [4, 6]) == 0
    assert figures.distance([1, 0], [0, 7]) == 1
    assert figures.distance([50, 50, 0], [30, 50, 20]) == pytest.approx(0.2)
    assert figures.distance([0, 0], [1, 2]) is None
    # A fair coin: half of E|heads/n - 1/2| + E|tails/n - 1/2|.
    assert figures.distance_floor([1, 1], 10000) == pytest.approx(0.00399, abs=0.0001)


def test_readers_agree():
    """The same stack in the output format of each profiler."""
    odd = stacks.parse_austin("P7;T0:8;/a:b/x.py:f:9 1\n")
    assert [frame.file for frame in odd[0][0]] == ["/a:b/x.py"]
    same = ["<module> (/a b/x.py:9)", "Größe.測る (/a b/x.py:3)"]
    austin = stacks.parse_austin("# mode: cpu\nP7;T0:8;/a b/x.py:<module>:9;/a b/x.py:Größe.測る:3 55\n")
    assert labels(austin) == [(same, 1, 55)]
    collapsed = stacks.parse_collapsed("tid:8;/a b/x.py:<module>:9;/a b/x.py:Größe.測る:3 5\n")
    assert labels(collapsed) == [(same, 5, 5)]
    perf = stacks.parse_perf("".join("""
   8
        7f00 _PyEval_EvalFrameDefault
        7f01 py::Größe.測る:/a b/x.py
        7f02 py::<module>:/a b/x.py

   8
        7f01 py::Größe.測る:/a b/x.py
        7f02 py::<module>:/a b/x.py
"""))
    assert labels(perf) == [(["<module> (/a b/x.py)", "Größe.測る (/a b/x.py)"], 2, 2)]
    assert [frame.short for frame in perf[0][0]] == ["<module>", "測る"]


def test_readers_accept_samples_without_frames():
    austin = stacks.parse_austin("P7;T0:8 55\nP7;T0:8;:INVALID: 3\n")
    assert [[frame.file for frame in frames] for frames, _, _ in austin] == [[], [None]]
    collapsed = stacks.parse_collapsed("tid:8;<GC> 2\n")
    assert [[frame.file for frame in frames] for frames, _, _ in collapsed] == [[None]]
    shim, own = Frame("__init__ (__init__:0)"), Frame("__init__ (x.py:1)")
    assert stacks.without_shims([shim, own]) == [own]


def nested(bottom, depth=6):
    names = ["<module>", "main"] + ["descend"] * (depth - 3) + bottom
    return [Frame("%s (nest.py:1)" % name) for name in names]


def test_judge_of_depth():
    why_not = judge.nest(6)(None)
    assert why_not(nested(["turn_forever"]), True) is None
    assert why_not(nested(["turn_forever", "short"]), True) is None
    assert why_not(nested(["turn_forever"], depth=5), True) == "depth 4"
    assert why_not(nested(["short"]), True) == "short at the bottom"
    assert why_not(nested(["turn_forever"])[1:], True) == "main as root"


def recursive(python, depth):
    """A legal stack of recursion.py, with DEPTH frames of deep.py's recursion."""
    from legal import DeepLegal
    legal = DeepLegal(python)
    zero, odd, even = sorted(line for name, line in legal.calls if name == "descend")
    found = [Frame("%s (recursion.py:1)" % name) for name in ("<module>", "main", "turn_forever")]
    for position in range(depth):
        left = legal.DEPTH - position
        line = zero if left == 0 else odd if left % 2 else even
        found.append(Frame("descend (deep.py:%d)" % line))
    return found


def test_judge_of_recursion(any_python):
    why_not = judge.recursion(any_python)
    assert why_not(recursive(any_python, 0), True) is None
    assert why_not(recursive(any_python, 20), True) is None
    torn = recursive(any_python, 20)
    del torn[8]
    assert "calls from line" in why_not(torn, True) or "does not call" in why_not(torn, True)
    # Stacks without lines are judged by their names.
    assert why_not(torn, False) is None
    assert why_not(recursive(any_python, 53), False) == "depth 53"
    assert why_not(recursive(any_python, 20)[2:], True) == "turn_forever above the recursion"


class Workload:
    """Replaces measure.Bed and takes no time."""

    def __init__(self, *_):
        self.speed = {measure.ALONE_SECONDS: 100}.get

    def target(self):
        return self

    def end(self):
        pass


def test_each_profiler_has_all_rounds(monkeypatch):
    """The profilers take turns in a rotating order.  All get the same number of rounds, except for failed runs."""
    order = []

    def run_once(tool, bed, lead, cell):
        order.append(tool.name)
        if tool.name == "c" and len(order) > 4:
            raise Failed("once in a while")
        return [([Frame("<module> (x.py:1)")], 1, 1)], 50

    monkeypatch.setattr(measure, "run_once", run_once)
    monkeypatch.setattr(measure, "Bed", Workload)
    compared = [tools.pybpfprof()._replace(name=name) for name in "abc"]
    row = rows.row("key", "title", "x.py", 100, judge.calls("x.py", [["<module>"]]))
    cells = measure.measure_row(row, None, compared, dict.fromkeys("abc", 0), row.rounds)
    assert order[:9] == ["a", "b", "c", "b", "c", "a", "c", "a", "b"]
    assert {name: cell.ratios for name, cell in cells.items() if name in ("a", "b")} == \
        dict.fromkeys("ab", [0.5] * 6)
    assert len(cells[None].ratios) == 3 * 6 - 1
    assert cells["c"].failures == {"once in a while": 5} and cells["c"].ratios == [0.5]


def cell(**fields):
    """A cell as bench.py summarizes it."""
    usual = dict(cannot=None, failures={}, speed=0.99, lower=0.98, upper=1.0, confidence=0.96,
                 rounds=6, wrong=0.0, cut=0.0, reasons={}, distance=None, floor=None, samples=100,
                 python=100, obtained=1.0, cpu=0.001, memory=20.0, depth=50)
    return dict(usual, **fields)


def report(ours, peer, start):
    found = {"rows": {"recursion": {"pybpfprof": ours, "peer": peer, "None": cell(speed=1.0)}},
             "start": start}
    return {"kernel": "6.1", "processor": "one", "cpus": 2, "date": "2026-01-01", "quick": False,
            "seconds": 60, "pythons": [{"name": "3.13.0-pyenv", "found": found,
                                        "versions": {"pybpfprof": "1", "peer": "2"}}]}


def test_results_say_where_a_peer_is_ahead():
    text = results.whole(report(cell(), cell(speed=0.5, wrong=0.3, memory=7.0),
                                {"pybpfprof": (60, 1.1), "peer": (50, 1.1)}))
    _, _, behind = text.partition("Where pybpfprof is not ahead:")
    assert "profiler's memory" in behind
    assert "peer 7 MiB" in behind
    assert "speed kept" not in behind.partition("\n## ")[0]
    assert "| impossible stacks, recursion, 1,000 Hz | 0.00 % | 30.00 % |" in text


def test_overlapping_intervals_are_level():
    start = {"pybpfprof": (60, 1.1), "peer": (60, 1.1)}
    sentence = "- speed kept, recursion, 1,000 Hz, CPython 3.13.0: "
    level = results.summary(report(cell(), cell(speed=1.1, lower=0.99, upper=1.2), start))
    assert sentence not in level
    ahead = results.summary(report(cell(), cell(speed=1.1, lower=1.05, upper=1.2), start))
    assert sentence + "99.0 % (98.0 to 100.0); peer 110.0 % (105.0 to 120.0)." in ahead


def test_few_rounds_are_no_excuse():
    """Cells with few rounds, as after failed runs, still count, both ours and a peer's.  They are not always level."""
    start = {"pybpfprof": (60, 1.1), "peer": (60, 1.1)}
    sentence = "- speed kept, recursion, 1,000 Hz, CPython 3.13.0: "
    few, better = dict(confidence=0.5, rounds=2), dict(speed=1.1, lower=1.05, upper=1.2)
    for ours, peer in (cell(**few), cell(**better)), (cell(), cell(**few, **better)):
        found = results.summary(report(ours, peer, start))
        assert sentence in found and "; rounds: 2)" in found
    level = results.summary(report(cell(**few), cell(**dict(better, lower=0.99)), start))
    assert sentence not in level


@pytest.mark.parametrize("title, field, ours, level, ahead", [
    ("samples of those due, 1,000 Hz", "obtained", 0.9, 0.949, 0.951),
    ("samples of those due, 1,000 Hz", "obtained", 0.96, 2.0, None),
    ("profiler's CPU, 1,000 Hz", "cpu", 0.003, 0.0011, 0.0009),
    ("profiler's memory", "memory", 20.0, 19.0, 18.9),
    ("impossible stacks, recursion, 1,000 Hz", "wrong", 0.001, 0.001, 0.0009),
])
def test_small_differences_are_level(title, field, ours, level, ahead):
    """The thresholds are those in HOW_TO_READ."""
    start = {"pybpfprof": (60, 1.1), "peer": (60, 1.1)}
    for peer, is_told in (level, False), (ahead, True):
        if peer is not None:
            found = results.summary(report(cell(**{field: ours}), cell(**{field: peer}), start))
            assert ("- %s, CPython" % title in found) == is_told


def test_the_results_contain_how_to_read():
    with open(os.path.join(ROOT, "tests", "bench", "RESULTS.md"), encoding="utf-8") as file:
        assert results.HOW_TO_READ in file.read()


def test_distances_within_chance_are_level():
    start = {"pybpfprof": (60, 1.1), "peer": (60, 1.1)}
    found = report(cell(), cell(), start)
    found["pythons"][0]["found"]["rows"]["shares"] = {
        "pybpfprof": cell(distance=0.017, floor=0.018), "peer": cell(distance=0.005, floor=0.005)}
    assert "- distance" not in results.summary(found)
    found["pythons"][0]["found"]["rows"]["shares"]["pybpfprof"] = cell(distance=0.03, floor=0.018)
    assert "0.030 (0.018); peer 0.005 (0.005)" in results.summary(found)


def test_results_say_what_a_profiler_cannot_do():
    text = results.whole(report(cell(cannot="no children", failures={"no children": 1}, speed=None),
                                cell(), {"pybpfprof": "not started", "peer": (50, 1.1)}))
    assert "- pybpfprof cannot: no children" in text
    assert "- pybpfprof cannot: not started" in text
    assert "first sample after start, CPython 3.13.0: cannot; peer 50 ms. Unexpected" in text


def test_a_missing_figure_is_reported():
    """A cell without a figure has a reason.  A missing figure of pybpfprof itself is listed as unexpected."""
    failed, empty, good = measure.Cell(), measure.Cell(), measure.Cell()
    failed.fail("ended at once")
    good.fail("once")
    good.python = 1
    for each in failed, empty, good:
        each.conclude()
    told = [each.cannot for each in (failed, empty, good)]
    assert told == ["ended at once", next(iter(empty.failures)), None]
    start = {"pybpfprof": (60, 1.1), "peer": (60, 1.1)}
    text = results.summary(report(cell(memory=None), cell(memory=7.0), start))
    assert "- profiler's memory, CPython 3.13.0: -; peer 7 MiB. Unexpected" in text


def test_only_text_between_the_marks_is_replaced():
    text = "before\n%sold\n%safter\n" % (results.BEGIN, results.END)
    assert results.replace_between(text, "new\n") == \
        "before\n%s\nnew\n\n%safter\n" % (results.BEGIN, results.END)
    assert results.replace_between("nothing here\n", "new") == "nothing here\n"


def test_rows_are_complete():
    """Each row's program exists, and each figure of the summary belongs to a row."""
    assert len({row.key for row in rows.ROWS}) == len(rows.ROWS)
    for row in (*rows.ROWS, rows.CHILDREN):
        assert os.path.exists(row.path), row.path
        # There are enough rounds for an interval of 95 %.
        assert not row.turns or figures.interval(range(row.rounds))[2] >= figures.CONFIDENCE
    parts = {row.key for row in (*rows.ROWS, rows.CHILDREN)} | {"start", "names"}
    assert {figure.part for figure in results.SUMMARY} <= parts


def test_judge_of_children():
    why_not = judge.children(None)

    def judged(*labels):
        return why_not([Frame(label) for label in labels], True)

    spawning = ("<module> (/a/spawn.py:9)", "main (/a/spawn.py:3)")
    child = ("<module> (/a/child.py:9)", "main (/a/child.py:3)")
    assert judged(*spawning, "Popen.__init__ (/a/subprocess.py:1)") is None
    assert judged(*child, "child_17 (<string>:3)") is None
    assert judged(*child, "<module> (<string>:1)") is None
    for wrong in ((*child, "child_17 (<string>:3)", "child_17 (<string>:3)"),
                  (*spawning, "child_17 (<string>:3)"), (child[0], "child_17 (<string>:3)"),
                  spawning + child, child[1:]):
        assert judged(*wrong), wrong


@pytest.mark.prove("cost")
def test_processes_that_a_target_starts(any_python):
    """pybpfprof is measured with the same row as its peers."""
    # On an idle machine it starts in a tenth of these 3 s.
    cells = specials.measure_children(any_python, [tools.pybpfprof()], {"pybpfprof": 3}, 1, 5)
    found = bench.summarize(rows.CHILDREN, cells["pybpfprof"])
    assert cells["pybpfprof"].failures == {} and min(cells["pybpfprof"].shares()) > 0
    assert found["wrong"] == found["cut"] == 0
    assert found["speed"] and found["cpu"] and found["memory"]
