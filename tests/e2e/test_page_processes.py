# SPDX-License-Identifier: BSD-2-Clause
"""The flame graph page of several processes."""

import re

import pytest

from page.pages import LOAD, MAIN, ROWS, TABLE

pytestmark = pytest.mark.check


def test_only_several_processes_have_a_menu(page, make_page):
    hidden = "return document.getElementById('process').hidden"
    groups = "return [...document.getElementById('group').options].map((each) => each.value)"
    assert page.browser.run(hidden) and page.browser.run(groups) == ["none", "thread"]
    several = make_page("hostile").open()
    assert not page.browser.run(hidden)
    assert page.browser.run(groups) == ["none", "command", "process", "thread"]
    several.choose_process("203")
    assert several.samples("all") == [4]
    assert several.browser.run("return document.getElementById('thread').options.length") == 2


def test_one_process_is_shown_with_option_a(page, make_page):
    one = make_page("plain", "-a").open()
    assert one.samples("python3 app.py") == [110] and one.chosen == "1 process"
    one.browser.choose("#group", "By process")
    assert one.samples('process 100:"python3 app.py"') == [110]


def test_processes_are_merged_by_command(machine):
    assert machine.samples("worker.py") == [60] and machine.samples("report.py") == [30]
    assert machine.samples("python3 -c pass") == [10] and not machine.nodes("idle.py")
    assert sorted(machine.samples(MAIN)) == [30, 60] and machine.samples(LOAD) == [50]
    assert machine.box("worker.py")["y"] > machine.box(MAIN)["y"]


def test_processes_are_shown_apart_if_chosen(machine):
    machine.browser.choose("#group", "By process")
    assert machine.fragment == "group=process"
    expected = {'process 10:"python3 worker.py --queue high"': [30],
                'process 11:"python3 worker.py --queue low"': [30],
                'process 20:"python3 /srv/report.py"': [24],
                'process 11:"python3 /srv/report.py"': [6], 'process 30:"python3 -c pass"': [10]}
    assert {label: machine.samples(label) for label in expected} == expected
    machine.browser.choose("#group", "By thread")
    assert machine.samples('process 11:"python3 /srv/report.py"') == [6]
    assert sorted(machine.samples("thread (11): MainThread")) == [6, 30]
    machine.browser.choose("#group", "All merged")
    assert machine.samples(MAIN) == [90]


def test_process_menu_lists_commands_and_processes(machine):
    rows = machine.open_processes()
    assert [(name, share) for name, _, share in rows] == [
        ("All 6 processes", "100.0 %"), ("worker.py", "60.0 %"), ("report.py", "30.0 %"),
        ("10 python3 worker.py --queue high", "30.0 %"),
        ("11 python3 worker.py --queue low", "30.0 %"), ("20 python3 /srv/report.py", "24.0 %"),
        ("11 python3 /srv/report.py", "6.0 %"), ("30 python3 -c pass", "10.0 %"),
        ("40 python3 idle.py", "0 %")]
    whose = [row[1] for row in rows]
    assert whose[1:4] == ["2 processes", "2 processes", "www-data · 4f5b3c9de7a8"]
    assert whose[5] == "root · report.service"
    assert re.fullmatch(r"from \d.* · root · report.service", whose[6]), "its PID is used twice"
    assert whose[7:] == ["", ""]


@pytest.mark.parametrize("words, found", [
    ("report", ["report.py", "20", "11"]), ("11", ["11", "11", "10", "20", "30", "40"]),
    ("www-data", ["10", "11"]), ("QUEUE low", ["11"]), ("4f5b3c9de7a8012b4f5b 10", ["10"]),
    ("a1b2c3d4-0000", ["10", "11"]), ("report.service 20", ["20"]), ("nothing like it", []),
    ("2 processes", ["worker.py", "report.py"]),
])
def test_processes_are_found_by_words(machine, words, found):
    assert [row[0].split(" ")[0] for row in machine.open_processes(words)] == found
    assert ("No match." in machine.browser.text("#process-list")) == (not found)


def test_a_command_is_chosen(machine):
    machine.choose_process("report")
    assert machine.chosen == "report.py" and machine.fragment == "command=1"
    assert machine.samples("all") == [30] and not machine.nodes(LOAD)
    assert machine.browser.text("#thread").startswith("All 2 threads")
    machine.browser.choose("#thread", "MainThread (20)")
    assert machine.samples("all") == [24] and machine.fragment == "command=1&thread=2"
    machine.browser.click('[data-view="table"]')
    assert [row[2] for row in machine.browser.run(TABLE)] == [24, 0]
    before = machine.ask("state()")
    machine.browser.reload()
    assert machine.ask("state()") == before and machine.chosen == "report.py"


def test_a_process_is_chosen_by_mouse_and_by_key(machine):
    machine.open_processes("report")
    machine.browser.click("#process-list [role=option]:last-child")
    assert machine.chosen == "11 python3 /srv/report.py" and machine.samples("all") == [6]
    assert machine.fragment == "process=3" and machine.samples("report.py") == [6]
    assert machine.browser.run("return document.getElementById('process-panel').hidden")
    machine.browser.press("Enter")
    assert machine.browser.run(ROWS)[6][0] == machine.chosen
    machine.browser.press("ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown", "Enter")
    assert machine.chosen == "11 python3 worker.py --queue low"
    assert machine.samples("all") == [30]
    machine.open("process=0&thread=0")
    assert machine.samples("all") == [30] and machine.chosen.startswith("10 ")
    machine.choose_process("All 6")
    assert machine.samples("all") == [100] and machine.fragment == ""


def test_escape_closes_only_the_process_menu(machine):
    machine.click("worker.py")
    zoom = machine.state("zoom")
    assert zoom > 0 and machine.open_processes("report")
    hidden = "return document.getElementById('process-panel').hidden"
    machine.browser.press("Escape")
    assert machine.browser.run(hidden)
    assert machine.state("zoom") == zoom and machine.chosen == "All 6 processes"
    for expected in False, True, False:
        machine.browser.click("#process-open")
        assert machine.browser.run(hidden) == expected
    machine.browser.click("#search")
    assert machine.browser.run(hidden)


def test_zoom_and_search_follow_the_chosen_process(machine):
    machine.search("fib")
    assert machine.shares() == [[40, 100, "all"]]
    machine.choose_process("worker.py 2 processes")
    assert machine.shares() == [[10, 60, "all"]]
    machine.click(MAIN)
    machine.browser.choose("#group", "All merged")
    assert machine.state("zoom") == machine.node(MAIN) and machine.samples(MAIN) == [60]
    machine.choose_process("20 report")
    assert machine.shares() == [[24, 24, "all"], [24, 24, "zoomed"]]
    machine.open("group=process&search=worker.py")
    assert machine.shares() == [[60, 100, "all"]]


def test_tooltip_shows_a_processs_owner(machine):
    def tooltip(label):
        box = machine.box(label)
        machine.browser.point(box["x"] + 20, box["y"] + 5, press=False)
        return machine.browser.text("#tooltip")
    text = tooltip("worker.py")
    for part in ("worker.pySamples60", "Run by2 processes", "Userwww-data",
                 "Container4f5b3c9de7a8", "Poda1b2c3d4-0000-4000-8000-112233445566"):
        assert part in text
    assert "Cgroup" not in text and "Started" not in text
    assert "Userroot" in tooltip("report.py") and "Unitreport.service" in tooltip("report.py")
    text = tooltip("python3 -c pass")
    assert "Run byprocess 30" in text and "User" not in text
    machine.browser.choose("#group", "By process")
    assert "Started" in tooltip('process 20:"python3 /srv/report.py"')
    machine.click('process 20:"python3 /srv/report.py"')
    assert "user root · unit report.service · started" in machine.detail
    assert "6 processes" in machine.browser.text("[data-summary]")
    recording = machine.browser.text("[data-recording]")
    assert "10: python3 worker.py --queue high · user www-data · container 4f5b3c9" in recording
    assert "30: python3 -c passProcess40: python3 idle.py" in recording


def test_pods_are_shown_by_name(machine):
    def change(profile):
        profile["strings"].append("shop/web-0")
        for process in 0, 1:
            profile["processes"][11 * process + 8] = len(profile["strings"]) - 1
    named = machine.changed(change).open()
    box = named.box("worker.py")
    machine.browser.point(box["x"] + 20, box["y"] + 5, press=False)
    assert "Podshop/web-0" in machine.browser.text("#tooltip")
    whose = "www-data · 4f5b3c9de7a8 · shop/web-0"
    first, second = (row[1] for row in named.open_processes("shop/web"))
    assert first == whose and re.fullmatch(r"from \d.* · " + whose, second), "its PID is used twice"
    named.browser.press("Escape")
    assert len(named.open_processes("a1b2c3d4-0000")) == 2, "and still by their uid"
    named.browser.press("Escape")
    assert "pod shop/web-0" in named.browser.text("[data-recording]")


def test_process_menu_fits_small_windows(machine):
    machine.browser.resize(360, 480)
    machine.open()
    machine.open_processes()
    panel = machine.browser.run("""const box = document.getElementById("process-panel")
        .getBoundingClientRect(); return [box.left, box.right, box.bottom]""")
    assert panel[0] >= 0 and panel[1] <= 360 and panel[2] <= 480
    assert machine.browser.run("return document.documentElement.scrollWidth") <= 360
