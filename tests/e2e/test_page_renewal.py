# SPDX-License-Identifier: BSD-2-Clause
"""The view stays the same while the page's profile is renewed."""

import pytest

from page.pages import FIB, LOAD, MAIN, TABLE
from test_page import deepen

pytestmark = pytest.mark.check

PROCESS_COLUMNS = 11
VIEW = "return [document.getElementById('search').value, document.activeElement.id]"


def crowd(profile):
    """Puts a process of 7 samples first, with a function of its own, so that all others get new numbers."""
    fresh = len(profile["strings"])
    profile["strings"].append("fresh")
    profile["processes"] = [5, *[fresh] * (PROCESS_COLUMNS - 2), 1000, *profile["processes"]]
    profile["threads"] = [0, 5, fresh, *[value + (i % 3 == 0) for i, value in enumerate(profile["threads"])]]
    profile["functions"] = [fresh, fresh, fresh, 1, 1, *profile["functions"]]
    profile["locations"] = [0, 1, *[value + (i % 2 == 0) for i, value in enumerate(profile["locations"])]]
    profile["samples"] = [0, 0, 7, *[value + (i % 3 < 2) for i, value in enumerate(profile["samples"])]]
    stacks, numbers = [0, 1, 0], iter(profile["stacks"])
    for shared in numbers:
        added = next(numbers)
        stacks += [shared, added, *[next(numbers) + 1 for _ in range(added)]]
    profile["stacks"] = stacks


def only(*pids):
    """Leaves out all other processes, with their threads and samples."""
    def change(profile):
        def rows(name, width):
            table = profile[name]
            return [table[i:i + width] for i in range(0, len(table), width)]

        def kept(name, width, is_kept):
            """The rows' new numbers by the old ones."""
            table = rows(name, width)
            old = [i for i, row in enumerate(table) if is_kept(row)]
            profile[name] = [value for i in old for value in table[i]]
            return {number: i for i, number in enumerate(old)}

        processes = kept("processes", PROCESS_COLUMNS, lambda row: row[0] in pids)
        threads = kept("threads", 3, lambda row: row[0] in processes)
        profile["threads"] = [value if i % 3 else processes[value] for i, value in enumerate(profile["threads"])]
        kept("samples", 3, lambda row: row[0] in threads)
        profile["samples"] = [value if i % 3 else threads[value] for i, value in enumerate(profile["samples"])]
    return change


def test_view_zoom_and_search_stay(page):
    page.browser.click('[data-view="icicle"]')
    page.browser.choose("#thread", "MainThread (100)")
    page.click(LOAD)
    page.search("fi")
    assert page.samples("all") == [95] and page.browser.run(VIEW) == ["fi", "search"]
    zoom = page.state("zoom")
    for _ in range(2):
        page.renew(crowd)
        assert page.samples("all") == [95] and page.state("view") == "icicle"
        assert page.state("zoom") == page.node(LOAD) == page.state("selected") != zoom
        assert page.detail.startswith(LOAD + " · 30 samples") and page.shares()[0] == [45, 95, "all"]
    page.browser.type("b")
    assert page.browser.run(VIEW) == ["fib", "search"] and page.state("query") == "fib"
    page.browser.choose("#thread", "All 3 threads")
    assert page.samples("all") == [117] and page.browser.text("[data-summary]").count("samples") == 1


def test_a_selected_frame_and_a_table_stay(page):
    page.browser.run("document.getElementById('stage').focus()")
    page.browser.press("ArrowUp", "ArrowUp")
    assert page.state("selected") == page.node(LOAD)
    page.renew(crowd)
    assert page.state("selected") == page.node(LOAD) and page.state("zoom") == 0
    page.browser.click('[data-view="table"]')
    page.browser.click("#table th:nth-child(3) button")
    before = page.browser.run(TABLE)
    page.renew()
    assert page.browser.run(TABLE) == [row for row in before if row[0] != "fresh"] != before


def test_a_zoomed_frame_comes_back_with_its_samples(page):
    page.click(LOAD)
    page.renew(lambda profile: profile.update(samples=[]))
    assert page.state("zoom") == 0 and page.samples("all") == []
    page.renew()
    assert page.state("zoom") == page.node(LOAD)


@pytest.mark.parametrize("chosen, shown, samples", [
    ("20 python3", "20 python3 /srv/report.py", 24), ("worker.py 2 processes", "worker.py", 60)])
def test_a_chosen_process_stays_even_if_it_ended(machine, chosen, shown, samples):
    machine.choose_process(chosen)
    machine.renew(crowd)
    assert machine.chosen == shown and machine.samples("all") == [samples]
    # The process has no samples now. Those of others are not shown in its place.
    machine.renew(only(30, 40))
    assert machine.chosen == shown and machine.samples("all") == []
    machine.renew(crowd)
    assert machine.chosen == shown and machine.samples("all") == [samples]
    machine.choose_process("All 7")
    assert machine.samples("all") == [107]


def test_a_zoom_stays_inside_its_process(machine):
    machine.browser.choose("#group", "By process")
    machine.choose_process("20 python3")
    machine.click(MAIN)
    machine.choose_process("All 6")
    assert machine.samples(MAIN).count(24) == 1
    for changes, expected in ((crowd,), 24), ((only(10, 11),), 0), ((), 24):
        machine.renew(*changes)
        zoom = machine.state("zoom")
        assert (machine.ask("samples(arguments[0])", zoom) if zoom else 0) == expected


def test_back_restores_zooms_from_before_the_renewal(page):
    page.click(LOAD)
    page.browser.press("Escape")
    page.click(FIB)
    page.renew(crowd)
    page.browser.back()
    page.browser.back()
    assert page.state("zoom") == page.node(LOAD)
    page.browser.back()
    assert page.state("zoom") == 0 and page.samples("all") == [117]


def test_an_open_process_menu_keeps_its_rows(machine):
    rows = machine.open_processes("report")
    machine.renew(only(30, 40))
    machine.browser.press("ArrowDown", "Enter")
    assert rows[1][0] == machine.chosen and machine.samples("all") == [24]


def test_a_tooltip_and_the_scroll_position_stay(page):
    page.changed(deepen).open().scroll(-4000)
    place = "return document.getElementById('stage').scrollTop"
    page.browser.point(640, 300, press=False)
    shown = page.browser.text("#tooltip")
    assert "main" in shown and "Samples5" in shown
    before = page.browser.run(place)
    page.renew(deepen, lambda profile: profile.update(samples=[0, 0, 9]))
    assert page.browser.text("#tooltip") == shown.replace("Samples5", "Samples9").replace("5 (", "9 (")
    assert not page.browser.run("return document.getElementById('tooltip').hidden")
    page.renew(lambda profile: deepen(profile, 1034))
    assert page.browser.run(place) == before + 10 * 22
