# SPDX-License-Identifier: BSD-2-Clause
"""The flame graph page that compares two profiles: 400 samples in 20 s before, 200 samples in 10 s now.

                                  before      now
    worker.py  main             340  85 %    140  70 %
                   Loader.load  100  25 %    100  50 %    its code moved by two lines
                   fib          200  50 %     20  10 %
                   gone          40  10 %
                   fresh                      20  10 %
    report.py  main > fib        20   5 %     12   6 %    within chance
               no Python         40  10 %     48  24 %
"""

import re

import pytest

from page.pixels import colours, contrast, fill

pytestmark = pytest.mark.check

LOAD, FIB, MAIN = "Loader.load (pkg/load.py)", "fib (pkg/fib.py)", "main (app.py)"
GONE, FRESH, NONE = "gone (pkg/gone.py)", "fresh (pkg/fresh.py)", "[no Python on this thread]"
ROWS = """return [...document.querySelectorAll("#table tbody tr[data-row]")].map((row) =>
    [row.cells[2].textContent, row.cells[0].firstChild.data.trim(),
     row.cells[1].firstChild.data.trim(), row.cells[1].querySelector(".share").textContent,
     row.cells[1].title])"""

# How people without one kind of cone see colours, in linear light: Machado et al., 2009.
BLINDNESS = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
               (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
               (-0.011820, 0.042940, 0.968881)),
}


def sides(page, label):
    """[was, now] of the nodes with that label."""
    found = [page.ask("sides(arguments[0])", node) for node in page.nodes(label)]
    return [[each["was"], each["now"]] for each in found]


def steps(page, label):
    return [page.ask("step(arguments[0])", node) for node in page.nodes(label)]


def test_every_frame_has_samples_of_both_sides(change):
    assert sides(change, "all") == [[400, 200]]
    assert sorted(sides(change, MAIN)) == [[20, 12], [340, 140]]
    assert sides(change, LOAD) == [[100, 100]], "one function, also where its lines moved"
    assert sorted(sides(change, FIB)) == [[20, 12], [200, 20]]
    assert sides(change, GONE) == [[40, 0]] and sides(change, FRESH) == [[0, 20]]
    assert sides(change, NONE) == [[40, 48]]
    change.browser.click("#lines")
    assert sides(change, "Loader.load (pkg/load.py:20)") == [[100, 0]]
    assert sides(change, "Loader.load (pkg/load.py:22)") == [[0, 100]]
    assert change.fragment == "lines=on"


def test_colour_steps_follow_the_change_in_share(change):
    assert steps(change, "all") == [0] and steps(change, LOAD) == [2]
    assert sorted(steps(change, MAIN)) == [-1, 0] and sorted(steps(change, FIB)) == [-3, 0]
    assert steps(change, GONE) == [-3] and steps(change, FRESH) == [3]
    assert steps(change, NONE) == [3]


def test_widths_show_both_sides_or_one(change):
    whole = change.box("all")["width"]
    assert change.box(LOAD)["width"] == pytest.approx(whole * (50 + 100) / 400, abs=1)
    change.browser.choose("#width", "Widths: now")
    assert change.box(LOAD)["width"] == pytest.approx(whole * 100 / 200, abs=1)
    assert not change.nodes(GONE) and change.nodes(FRESH) and change.fragment == "width=now"
    assert sides(change, LOAD) == [[100, 100]], "the numbers are what they were"
    change.browser.choose("#width", "Widths: before")
    assert change.box(LOAD)["width"] == pytest.approx(whole * 100 / 400, abs=1)
    assert change.nodes(GONE) and not change.nodes(FRESH)
    change.browser.reload()
    assert change.state("width") == "before"


def test_tooltip_and_detail_show_both_sides(change):
    box = change.box(LOAD)
    change.browser.point(box["x"] + 20, box["y"] + 9, press=False)
    text = change.browser.text("#tooltip")
    for part in ("Loader.load", "Change▲ more than ¼ more", "Of all25.0 % → 50.0 % (+25.0)",
                 "In itself25.0 % → 50.0 % (+25.0)", "Of a CPU5.0 % → 10.0 %",
                 "Samples100 → 100"):
        assert part in text, text
    change.click(GONE)
    assert change.detail.startswith(
        GONE + " · ▼ gone · of all 10.0 % → 0 % (−10.0) · in itself 10.0 % → 0 % (−10.0)")
    assert "of a cpu 2.0 % → 0 %" in change.detail and "samples 40 → 0" in change.detail
    change.browser.press("Escape")
    change.click(FRESH)
    assert "▲ new" in change.detail
    change.browser.press("Escape")
    change.choose_process("report.py")
    change.click(FIB)
    assert FIB + " · unchanged, or chance" in change.detail.replace("▼", "")


def test_search_shows_both_shares(change):
    change.search("fib")
    assert change.result == "55.0 % → 16.0 % of all"
    change.click("worker.py")
    assert change.result == "55.0 % → 16.0 % of all, 58.8 % → 14.3 % of zoomed"


def test_table_is_sorted_by_change(change):
    change.browser.click('[data-view="table"]')
    rows = change.browser.run(ROWS)
    assert rows == [
        ["Loader.load", "▲ +25.0", "▲ +25.0", "25.0 % → 50.0 %", "more than ¼ more"],
        [NONE, "▲ +14.0", "▲ +14.0", "10.0 % → 24.0 %", "more than twice"],
        ["fresh", "▲ +10.0", "▲ +10.0", "0 % → 10.0 %", "new"],
        ["main", "0", "▼ −14.0", "90.0 % → 76.0 %", "less"],
        ["gone", "▼ −10.0", "▼ −10.0", "10.0 % → 0 %", "gone"],
        ["fib", "▼ −39.0", "▼ −39.0", "55.0 % → 16.0 %", "less than half"]]
    change.browser.click("#table th:nth-child(1) button")
    assert change.browser.run(ROWS) == rows[::-1]
    change.browser.click('#table tr[data-row="0"] button')
    assert change.state("view") == "flame" and change.detail.startswith(FIB)


def test_processes_show_both_shares(change):
    rows = change.open_processes()
    assert [[name, share] for name, _, share in rows] == [
        ["All 2 processes", "100.0 % → 100.0 %"], ["10 python3 worker.py", "85.0 % → 70.0 %"],
        ["20 python3 report.py", "15.0 % → 30.0 %"]]
    change.browser.press("Escape")
    change.choose_process("report.py")
    assert sides(change, "all") == [[60, 60]] and not change.nodes(LOAD)
    assert steps(change, FIB) == [0]
    assert steps(change, NONE) == [0], "80 of 100 after 67: of 60 samples each, chance"


def test_a_process_of_one_side_has_nothing_to_compare_with(change):
    """In a process that only one side has, no frame is shown as changed."""
    page = change.changed(lambda profile: profile["before"].update(
        samples=[value for row in zip(*[iter(profile["before"]["samples"])] * 3)
                 if row[0] == 1 for value in row])).open()
    page.choose_process("worker.py")
    assert steps(page, FRESH) == [0] and sides(page, "all") == [[0, 140]]
    page.click(FRESH)
    assert "nothing to compare with: no sample before" in page.detail


def test_footer_and_help_describe_the_comparison(change, plain_page):
    assert change.browser.text("[data-summary]").endswith("compared with 400 samples")
    change.browser.click("summary")
    recording = change.browser.text("[data-recording]")
    assert re.search(r"Compared with[^§]+20\.00 s at 100 Hz: 400 samples", recording)
    shown = """return [...document.querySelectorAll("[data-compared]")].map(
        (element) => element.hidden)"""
    assert set(change.browser.run(shown)) == {False}
    legend = change.browser.text("#legend")
    assert legend.count("▲") == legend.count("▼") == 3 and "unchanged, or chance" in legend
    plain_page.open("width=now")
    assert set(change.browser.run(shown)) == {True} and plain_page.state("width") == "both"


def seen(colour, matrix):
    """The colour as a colour-blind person sees it, each part from 0 to 255."""
    linear = [(int(value) / 255) ** 2.2 for value in colour.split(",")]
    mixed = [sum(part * value for part, value in zip(row, linear)) for row in matrix]
    return [255 * min(1, max(0, value)) ** (1 / 2.2) for value in mixed]


@pytest.mark.parametrize("scheme, text", [("light", "29,26,22"), ("dark", "255,253,248")])
def test_colour_blind_people_can_tell_the_colours_apart(change, scheme, text):
    change.browser.prefer(scheme)
    change.open("group=none")
    same, less = (fill(change, label, at=8) for label in ("all", MAIN))
    more, most, least = (fill(change, label, at=8) for label in (LOAD, FRESH, GONE))
    assert len({same, more, less, most, least}) == 5
    red, _, blue = map(int, most.split(","))
    assert red > blue + 40
    red, _, blue = map(int, least.split(","))
    assert blue > red + 40
    for matrix in BLINDNESS.values():
        pairs = ((most, least), (most, same), (least, same))
        for one, other in pairs:
            distance = sum((a - b) ** 2 for a, b in zip(seen(one, matrix), seen(other, matrix)))
            assert distance ** 0.5 > 30, (one, other)
    for colour in same, more, less, most, least:
        assert contrast(colour, text) > 4.5, colour


def test_changes_are_marked_without_colour_too(change):
    """A line along the upper edge marks an increase, along the lower edge a decrease."""
    def edges(label):
        box = change.box(label)
        found = []
        for y in (box["y"] + 1, box["y"] + 10, box["y"] + box["height"] - 3):
            counts = colours(change.browser, int(box["x"]) + 1, y, 3, 1)
            found.append(max(counts, key=counts.get))
        return found[0] != found[1], found[2] != found[1]
    assert edges(FRESH) == (True, False) and edges(LOAD) == (True, False)
    assert edges(GONE) == (False, True)
    assert edges("all") == (False, False)


def test_small_window(change):
    change.browser.resize(360, 640)
    for view in "flame", "table":
        change.open("view=" + view)
        assert change.browser.run("return document.documentElement.scrollWidth") <= 360
    change.open()
    change.click(LOAD)
    assert change.state("zoom") == change.node(LOAD)
