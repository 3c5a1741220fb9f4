# SPDX-License-Identifier: BSD-2-Clause
"""The flame graph page, as a person uses it in Chromium.

The profiles are made by tests/programs/synthetic_profile.c; `plain` has 110 samples:

    30 + 10  main > Loader.load:20          40  main > fib > fib > fib
    20       main > Loader.load:21           5  [deeper frames cut] > fib > fib
    5        [no Python on this thread]         (10 + 5 of these on the second thread)

`machine` has 100, of six processes; 10 and 11 are in a container, 11 is used twice:

    10 worker.py   30 main > Loader.load                   www-data
    11 worker.py   20 main > Loader.load, 10 main > fib    www-data
    20 report.py   24 main > fib                           root, report.service
    11 report.py   6 main > fib                            root, report.service
    30             10 [no Python on this thread]           python3 -c pass
    40 idle.py     none
"""

import itertools
import json
import os
import re
import subprocess
import time

import pytest

from conftest import ROOT, missing
from page.browser import Browser, find_browser

OPEN_MS, ZOOM_MS, CHOOSE_MS = 2000, 100, 400
TRIES = 5

LOAD, LOAD_NEXT = "Loader.load (pkg/load.py:20)", "Loader.load (pkg/load.py:21)"
FIB, MAIN = "fib (pkg/fib.py:5)", "main (app.py:10)"

TABLE = """return [...document.querySelectorAll("#table tbody tr[data-row]")].map((row) => [
    row.cells[2].textContent, row.cells[3].textContent,
    parseInt(row.cells[0].firstChild.data.replaceAll(",", "")),
    parseInt(row.cells[1].firstChild.data.replaceAll(",", ""))])"""

ROWS = """return [...document.querySelectorAll("#process-list [role=option]")].map((row) =>
    [...row.querySelectorAll("span")].map((part) => part.textContent))"""

SORTED = "return document.querySelector(arguments[0]).getAttribute('aria-sort')"


class Page:
    """One profile's page in the browser."""

    def __init__(self, browser, path):
        self.browser = browser
        self.address = "file://" + path

    def open(self, fragment=""):
        self.browser.open(self.address + ("#" + fragment if fragment else ""))
        return self

    def ask(self, expression, *arguments):
        return self.browser.run("return pybpfprof." + expression, *arguments)

    def nodes(self, label):
        return self.ask("nodes(arguments[0])", label)

    def node(self, label):
        """The first node with that label; it must be there."""
        nodes = self.nodes(label)
        assert nodes, "no %s in the graph" % label
        return nodes[0]

    def samples(self, label):
        return [self.ask("samples(arguments[0])", node) for node in self.nodes(label)]

    def box(self, label):
        return self.ask("box(arguments[0])", self.node(label))

    def click(self, label):
        box = self.box(label)
        self.browser.point(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def state(self, key):
        return self.ask("state()[arguments[0]]", key)

    def search(self, text):
        self.browser.press("/")
        self.browser.type(text)
        patience = time.monotonic() + 10
        while self.state("query") != text and time.monotonic() < patience:
            time.sleep(0.05)

    def shares(self):
        return self.ask("shares()")

    def open_processes(self, words=""):
        """The rows of the menu of processes that have WORDS in them: [name, whose, share]."""
        self.browser.click("#process-open")
        self.browser.type(words)
        return self.browser.run(ROWS)

    def choose_process(self, words):
        """Chooses the first row that has WORDS in it."""
        assert self.open_processes(words), "no process like " + words
        self.browser.press("Enter")

    @property
    def chosen(self):
        return self.browser.text("#process-open span")

    @property
    def fragment(self):
        return self.browser.url.partition("#")[2]

    @property
    def detail(self):
        return self.browser.text("#detail")

    @property
    def result(self):
        return self.browser.text("#search-result")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium, driver = find_browser()
    if not chromium or not driver:
        missing("chromium and chromium-driver")
    browser = Browser(driver, chromium, str(tmp_path_factory.mktemp("browser")))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def make_page(browser, tmp_path_factory):
    """make_page("plain", OPTION...): the page of a synthetic profile."""
    folder, number = tmp_path_factory.mktemp("pages"), itertools.count()
    output = os.environ.get("OUTPUT", os.path.join(ROOT, ".output"))
    program = os.path.join(ROOT, output, "synthetic_profile")

    def make(kind, *options):
        path = str(folder / ("%s-%d.html" % (kind, next(number))))
        subprocess.run([program, *options, kind, "html", path], check=True)
        return Page(browser, path)
    return make


@pytest.fixture(scope="module")
def plain_page(make_page):
    return make_page("plain")


def watched(page):
    """The page, just opened, and at the end without a message in the console."""
    browser = page.browser
    browser.resize(1280, 800)
    browser.prefer("light")
    browser.messages()
    page.open()
    yield page
    assert browser.messages() == [], "errors in the console"


@pytest.fixture
def page(plain_page):
    yield from watched(plain_page)


@pytest.fixture(scope="module")
def machine_page(make_page):
    return make_page("machine")


@pytest.fixture
def machine(machine_page):
    yield from watched(machine_page)


@pytest.fixture(scope="module")
def large_page(make_page):
    return make_page("tree", "-n", "100000", "-m", "8")


@pytest.fixture(scope="module")
def crowded_page(make_page):
    """The same of 500 processes of two threads; 20 each run the same."""
    return make_page("tree", "-n", "100000", "-m", "1000", "-p", "500")


def replace_profile(page, change):
    """The page with CHANGE(its profile's JSON) applied, as another page."""
    with open(page.address[len("file://"):], encoding="utf-8") as file:
        head, data, tail = re.split(r'(?<=id="profile">)(.*?)(?=</script>)', file.read(),
                                    maxsplit=1, flags=re.DOTALL)
    profile = json.loads(data)
    change(profile)
    path = page.address[len("file://"):] + ".changed.html"
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + json.dumps(profile).replace("<", "\\u003c") + tail)
    return Page(page.browser, path)


def colours(browser, x, y, width, height):
    """The colours of a part of the canvas, and how many pixels each has."""
    return browser.run("""
        const canvas = document.getElementById("canvas"), box = canvas.getBoundingClientRect();
        const context = new OffscreenCanvas(arguments[2], arguments[3]).getContext("2d");
        context.drawImage(canvas, box.left - arguments[0], box.top - arguments[1]);
        const { data } = context.getImageData(0, 0, arguments[2], arguments[3]);
        const counts = {};
        for (let i = 0; i < data.length; i += 4) {
            const colour = data.slice(i, i + 3).join();
            counts[colour] = (counts[colour] || 0) + 1;
        }
        return counts;""", x, y, width, height)


def fill(page, label):
    """The colour most of a frame's rectangle has."""
    box = page.box(label)
    counts = colours(page.browser, int(box["x"]) + 2, box["y"] + 2, int(box["width"]) - 5, 3)
    return max(counts, key=counts.get)


def luminance(colour):
    linear = [value / 255 / 12.92 if value <= 10 else ((value / 255 + 0.055) / 1.055) ** 2.4
              for value in map(int, re.findall(r"\d+", colour)[:3])]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_graph_is_drawn_in_proportion(page):
    assert page.samples(MAIN) == [100] and page.samples(LOAD) == [40]
    assert sorted(page.samples(FIB)) == [5, 5, 40, 40, 40]
    whole = page.box("all")["width"]
    assert page.box(MAIN)["width"] == pytest.approx(whole * 100 / 110, abs=1)
    assert page.box(LOAD)["width"] == pytest.approx(whole * 40 / 110, abs=1)
    assert page.box(LOAD)["y"] < page.box(MAIN)["y"] < page.box("all")["y"]
    fills = {fill(page, label) for label in (MAIN, LOAD, FIB, "[no Python on this thread]")}
    assert len(fills) == 4
    red, green, blue = map(int, fill(page, "[no Python on this thread]").split(","))
    assert max(red, green, blue) - min(red, green, blue) < 8, "a reason is grey"


def test_title_and_footer_say_how_it_was_recorded(page):
    assert page.browser.text("#title") == 'PID 100: python3 </title> "app".py'
    summary = page.browser.text("[data-summary]")
    for text in "100 Hz", "10.0 s", "Python 3.11.7", "110 samples", "0 errors", "0 lost":
        assert text in summary
    page.browser.click("summary")
    recording = page.browser.text("[data-recording]")
    assert "irregular: 5.0 ms to 15.0 ms, drawn anew 100 times" in recording
    assert "100: python3 app.py" in recording
    ledger = page.browser.run("""return [...document.querySelectorAll("[data-ledger] tr")].map(
        (row) => [row.cells[0].textContent, row.cells[1].textContent])""")
    assert ["Events", "110"] in ledger and ["without Python on the thread", "5"] in ledger


def test_errors_and_losses_stand_in_the_footer(page):
    def change(profile):
        profile["ledger"].update(events=120, lost=7)
        profile["ledger"]["errors"]["frame_fault"] = 3
    replace_profile(page, change).open()
    assert "3 errors" in page.browser.text("[data-summary]")
    assert "7 lost" in page.browser.text("[data-summary]")
    assert "[calling frames not readable]32.5 %" in page.browser.text("[data-ledger]")


def test_click_zooms_and_back_leads_back(page):
    whole, before = page.box("all")["width"], page.box(LOAD)["width"]
    page.click(LOAD)
    assert page.box(LOAD)["width"] == pytest.approx(whole, abs=1) and before < whole / 2
    assert page.box(MAIN)["width"] == pytest.approx(whole, abs=1)
    assert page.fragment == "zoom=%d" % page.node(LOAD)
    assert page.detail.startswith(LOAD + " · 40 samples · 36.4 % of all · 40.0 % of its parent")
    page.browser.back()
    assert page.fragment == "" and page.box(LOAD)["width"] == pytest.approx(before, abs=1)


def test_keyboard_moves_zooms_and_resets(page):
    browser = page.browser
    browser.run("document.getElementById('stage').focus()")
    browser.press("ArrowUp", "ArrowUp")
    assert page.state("selected") == page.node(LOAD)
    browser.press("ArrowRight", "ArrowRight")
    assert page.state("selected") == page.node(LOAD_NEXT)
    browser.press("ArrowLeft", "Enter")
    assert page.state("zoom") == page.state("selected") != page.node(LOAD)
    assert page.detail.startswith(FIB + " · 40 samples")
    browser.press("ArrowDown")
    assert page.state("selected") == page.node(MAIN)
    browser.press("ArrowUp", "ArrowUp", "Enter")
    inner = page.state("zoom")
    browser.press("Backspace")
    outer = page.state("zoom")
    rows = [page.ask("box(arguments[0])", node)["y"] for node in (inner, outer)]
    assert rows[1] - rows[0] == page.box("all")["height"]
    browser.press("Escape")
    assert page.state("zoom") == 0 and page.fragment == ""


def test_help_opens_and_closes_by_key(page):
    page.browser.press("?")
    assert page.browser.run("return document.getElementById('help').open")
    page.browser.press("Escape")
    assert not page.browser.run("return document.getElementById('help').open")


@pytest.mark.parametrize("query, regex, found", [
    ("load", False, 60),
    ("LOAD", False, 0),
    ("load.py:21", False, 20),
    ("fib", False, 45),
    ("[", False, 10),
    ("nothing of the kind", False, 0),
    (r"^loader\.", True, 60),
    (r"load\.py:2[01]\)$", True, 60),
    (r"fib|:21", True, 65),
    (r"^[^ ]+$", True, 0),
])
def test_search_shows_the_share_it_found(page, query, regex, found):
    if regex:
        page.browser.click("#regex")
    page.search(query)
    assert page.shares() == [[found, 110, "all"]]
    share = "0 %" if not found else "%.1f %%" % (100 * found / 110)
    assert page.result == share + " of all"


def test_search_marks_what_it_found(page):
    before = fill(page, LOAD), fill(page, MAIN)
    assert fill(page, LOAD) != fill(page, FIB)
    page.search("(pkg")
    assert fill(page, LOAD) == fill(page, FIB) != before[0], "one colour for all that was found"
    assert fill(page, MAIN) not in (before[1], fill(page, LOAD))
    page.browser.press("Escape")
    assert (fill(page, LOAD), fill(page, MAIN)) == before


def test_search_in_a_zoomed_frame_gives_both_shares(page):
    page.click(MAIN)
    page.search("fib")
    assert page.shares() == [[45, 110, "all"], [40, 100, "zoomed"]]


def test_invalid_regex_is_called_invalid(page):
    page.browser.click("#regex")
    page.search("(fib")
    assert page.result.startswith("Invalid: ") and page.shares() == []
    page.browser.type(")")
    assert page.shares() == [[45, 110, "all"]]


def test_control_f_is_the_search_of_the_page(page):
    page.browser.press("Control+f")
    page.browser.type("fib")
    assert page.state("query") == "fib"
    page.browser.press("Enter")
    assert page.detail.startswith(FIB), "Enter selects the widest match"


def test_table_has_the_known_totals_and_sorts(page):
    page.browser.click('[data-view="table"]')
    rows = page.browser.run(TABLE)
    assert rows == [["Loader.load", "pkg/load.py:15", 60, 60], ["fib", "pkg/fib.py:3", 45, 45],
                    ["[no Python on this thread]", "", 5, 5], ["main", "app.py:1", 0, 100],
                    ["[deeper frames cut]", "", 0, 5]]
    names = [row[0] for row in rows]
    load, fib, none, main, cut = names
    for column, first, expected in (
            (2, "descending", [main, load, fib, none, cut]),
            (3, "ascending", [cut, none, fib, load, main]),
            (4, "ascending", [cut, none, main, fib, load]),
            (1, "descending", names)):
        head = "#table th:nth-child(%d)" % column
        page.browser.click(head + " button")
        assert [row[0] for row in page.browser.run(TABLE)] == expected
        assert page.browser.run(SORTED, head) == first
        page.browser.click(head + " button")
        flipped = [row[0] for row in page.browser.run(TABLE)]
        assert flipped[0] in (expected[-1], expected[-2]) and flipped[-1] in expected[:2]
        assert page.browser.run(SORTED, head) != first


def test_table_row_leads_to_its_function(page):
    page.browser.click('[data-view="table"]')
    page.browser.click('#table tr[data-row="0"] button')
    assert page.state("view") == "flame" and page.shares() == [[60, 110, "all"]]
    assert page.detail.startswith(LOAD)


def test_thread_menu_shows_one_thread(page):
    page.browser.choose("#thread", "worker 1 (101)")
    assert page.samples("all") == [15] and page.samples(LOAD) == [10] and not page.nodes(FIB)
    page.browser.click('[data-view="table"]')
    assert [row[2] for row in page.browser.run(TABLE)] == [10, 5, 0]
    page.browser.choose("#thread", "All 2 threads")
    assert len(page.browser.run(TABLE)) == 5


def test_process_menu_only_where_there_are_several(page, make_page):
    hidden = "return document.getElementById('process').hidden"
    groups = "return [...document.getElementById('group').options].map((each) => each.value)"
    assert page.browser.run(hidden) and page.browser.run(groups) == ["none", "thread"]
    several = make_page("hostile").open()
    assert not page.browser.run(hidden)
    assert page.browser.run(groups) == ["none", "command", "process", "thread"]
    several.choose_process("203")
    assert several.samples("all") == [4]
    assert several.browser.run("return document.getElementById('thread').options.length") == 2


def test_one_process_is_told_when_asked(page, make_page):
    one = make_page("plain", "-a").open()
    assert one.samples("python3 app.py") == [110] and one.chosen == "1 process"
    one.browser.choose("#group", "By process")
    assert one.samples('process 100:"python3 app.py"') == [110]


def test_processes_are_merged_by_command(machine):
    assert machine.samples("worker.py") == [60] and machine.samples("report.py") == [30]
    assert machine.samples("python3 -c pass") == [10] and not machine.nodes("idle.py")
    assert sorted(machine.samples(MAIN)) == [30, 60] and machine.samples(LOAD) == [50]
    assert machine.box("worker.py")["y"] > machine.box(MAIN)["y"]


def test_processes_apart(machine):
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
    assert ("None is like that." in machine.browser.text("#process-list")) == (not found)


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


def test_escape_closes_the_menu_of_processes_alone(machine):
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


def test_zoom_and_search_go_with_the_processes(machine):
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


def test_whose_a_process_is(machine):
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


def test_process_menu_fits_small_windows(machine):
    machine.browser.resize(360, 480)
    machine.open()
    machine.open_processes()
    panel = machine.browser.run("""const box = document.getElementById("process-panel")
        .getBoundingClientRect(); return [box.left, box.right, box.bottom]""")
    assert panel[0] >= 0 and panel[1] <= 360 and panel[2] <= 480
    assert machine.browser.run("return document.documentElement.scrollWidth") <= 360


def test_two_real_processes(any_python, target, profile, browser, tmp_path):
    first, second = target(any_python, "busy.py"), target(any_python, "kinds.py")
    path = tmp_path / "two.html"
    run = profile.attempt("-p", first.pid, "-p", second.pid, "-d", 1, "-r", 499, "-o", path)
    assert run.status == 0, run.stderr
    page = Page(browser, str(path)).open()
    every, = page.samples("all")
    page.browser.choose("#group", "By process")
    page.choose_process("%d kinds.py" % second.pid)
    own, = page.samples("all")
    assert 0 < own < every and page.chosen.startswith("%d " % second.pid)
    page.choose_process("%d busy.py" % first.pid)
    assert page.samples("all") == [every - own]


def test_threads_stand_at_the_root_when_asked(page, make_page):
    page.browser.choose("#group", "By thread")
    assert page.samples("thread (101): worker 1") == [15]
    assert make_page("plain", "-t").open().samples("thread (100): MainThread") == [95]


def test_lines_off_merges_by_function(page):
    page.click(LOAD)
    page.browser.click("#lines")
    assert page.samples("Loader.load (pkg/load.py)") == [60] and not page.nodes(LOAD)
    assert page.state("zoom") == page.node("Loader.load (pkg/load.py)")
    page.browser.click("#lines")
    assert page.state("zoom") == page.node(LOAD)


def test_icicle_is_upside_down(page):
    page.browser.click('[data-view="icicle"]')
    assert page.box(LOAD)["y"] > page.box(MAIN)["y"] > page.box("all")["y"]
    page.browser.run("document.getElementById('stage').focus()")
    page.browser.press("ArrowDown")
    assert page.state("selected") == page.node(MAIN)


def test_tooltip_says_all_of_a_frame(page):
    box = page.box(LOAD)
    page.browser.point(box["x"] + 20, box["y"] + 5, press=False)
    text = page.browser.text("#tooltip")
    for part in ("Loader.load", "/srv/lib/pkg/load.py:20", "Samples40", "Of all36.4 %",
                 "Of parent40.0 %", "In itself40 (36.4 %)", "Begins at line15"):
        assert part in text
    page.browser.point(box["x"] + 20, 150, press=False)
    assert page.browser.run("return document.getElementById('tooltip').hidden")


def test_address_brings_everything_back(page):
    page.browser.click('[data-view="icicle"]')
    page.browser.choose("#thread", "MainThread (100)")
    page.click(MAIN)
    page.browser.click("#regex")
    page.search("fib|:21")
    before = page.ask("state()"), page.shares(), page.box(FIB)
    page.browser.reload()
    assert (page.ask("state()"), page.shares(), page.box(FIB)) == before
    assert page.browser.run("return document.getElementById('search').value") == "fib|:21"
    other = page.fragment
    page.open(other)
    assert (page.ask("state()"), page.shares(), page.box(FIB)) == before


@pytest.mark.parametrize("fragment", [
    "zoom=99999999&thread=77&process=-1&view=nothing&group=%00", "zoom=1e9&search=%ff%FE",
    "command=1", "command=-1&process=9999999999", "group=process", "group=command&command=x",
    "%", "regex=(((&zoom=", "zoom=<b onload=x>&search=</script>", "__proto__=1&constructor=2"])
def test_senseless_addresses_do_no_harm(page, fragment):
    page.open(fragment)
    assert page.samples("all") == [110] and page.state("view") == "flame"


def test_light_and_dark(page):
    theme = "return document.documentElement.dataset.theme"
    background = "return getComputedStyle(document.body).backgroundColor"
    light = page.browser.run(background), fill(page, LOAD)
    assert page.browser.run(theme) == "light"
    page.browser.click("#theme")
    assert page.browser.run(theme) == "dark"
    dark = page.browser.run(background), fill(page, LOAD)
    assert luminance(light[0]) > 0.8 > 0.1 > luminance(dark[0]) and light[1] != dark[1]
    page.open()
    assert page.browser.run(theme) == "light"
    page.browser.prefer("dark")
    page.open()
    assert (page.browser.run(background), fill(page, LOAD)) == dark


@pytest.mark.parametrize("scheme, text", [("light", "29,26,22"), ("dark", "255,253,248")])
def test_labels_can_be_read_on_every_colour(page, scheme, text):
    page.browser.prefer(scheme)
    page.open()
    for label in MAIN, LOAD, FIB, "all", "[no Python on this thread]":
        assert contrast(fill(page, label), text) > 4.5, label


def test_small_window(page):
    page.browser.resize(360, 480)
    page.open()
    assert page.browser.run("return document.documentElement.scrollWidth") <= 360
    assert page.box("all")["width"] == pytest.approx(360, abs=1)
    page.click(LOAD)
    assert page.state("zoom") == page.node(LOAD)


def test_other_kinds_have_their_own_colours(page):
    """Native, kernel and JIT frames, which this profiler is yet to record."""
    def change(profile):
        for function, kind in enumerate((2, 3, 4)):
            profile["functions"][5 * function + 4] = kind
    changed = replace_profile(page, change).open()
    shown = {fill(changed, label) for label in (MAIN, LOAD, FIB)}
    page.open()
    assert len(shown | {fill(page, label) for label in (MAIN, LOAD, FIB)}) == 6


def test_no_samples(page):
    def change(profile):
        profile.update(samples=[], stacks=[])
    changed = replace_profile(page, change).open()
    assert "No sample was taken" in page.browser.text("#empty")
    assert not page.browser.run("return document.getElementById('empty').hidden")
    page.browser.click('[data-view="table"]')
    assert page.browser.run(TABLE) == [] and changed.samples("all") == []


def test_deep_stacks_scroll(page):
    depth = 1024

    def change(profile):
        profile["locations"] = [value for i in range(depth) for value in (0, i + 1)]
        profile["stacks"] = [0, depth, *range(depth)]
        profile["samples"] = [0, 0, 5]
    deep = replace_profile(page, change).open()
    leaf, middle = "main (app.py:1024)", "main (app.py:500)"
    assert deep.samples(leaf) == [5]
    assert page.browser.run("return document.getElementById('stage').scrollHeight") >= 22 * 1025
    assert 0 < deep.box("all")["y"] < 800 and deep.box(leaf)["y"] < 0
    deep.open("zoom=%d" % deep.node(middle))
    assert 0 < deep.box(middle)["y"] < 800
    page.browser.run("document.getElementById('stage').scrollTop = 0")
    assert 0 < deep.box(leaf)["y"] < 800


def test_hostile_names_are_harmless(page, make_page):
    hostile = make_page("hostile").open()
    browser = page.browser
    injected = "return document.querySelectorAll('b, img, script:not([nonce]), [onload]').length"
    assert browser.run(injected) == 0
    name = "</script><b onload=x>"
    assert hostile.samples("%s (%s:8)" % (name, name)) == [1]
    assert hostile.nodes("line\\u000abreak\\u000d\\u000a and\\u000bmore\\u000c "
                         "(line\\u000abreak\\u000d\\u000a and\\u000bmore\\u000c:8)")
    for fragment in ("view=table", "view=icicle&group=thread", "group=process", "group=none",
                     "search=" + name.replace("<", "%3C")):
        hostile.open(fragment)
        assert len(hostile.open_processes()) == 30
        browser.press("Escape")
        browser.run("document.querySelector('footer details').open = true")
        for x in range(5, 1280, 90):
            browser.point(x, 700, press=False)
        assert browser.run(injected) == 0
    assert name in browser.text("[data-recording]")
    with pytest.raises(Exception, match="no such alert"):
        browser.ask("GET", "/alert/text")


def test_policy_forbids_network_and_foreign_scripts(page):
    tried = page.browser.run("""
        const seen = [];
        document.addEventListener("securitypolicyviolation",
            (event) => seen.push(event.effectiveDirective));
        const image = document.createElement("img");
        image.src = "http://127.0.0.1:9/";
        document.body.append(image);
        const script = document.createElement("script");
        script.textContent = "window.injected = true";
        document.body.append(script);
        document.body.setAttribute("onclick", "window.injected = true");
        document.body.click();
        fetch("http://127.0.0.1:9/").catch(() => null);
        const end = performance.now() + 5000;
        const look = (resolve) => seen.length >= 4 || performance.now() > end ?
            resolve([seen.sort(), window.injected ?? null]) : setTimeout(look, 10, resolve);
        return new Promise(look);""")
    assert tried == [["connect-src", "img-src", "script-src-attr", "script-src-elem"], None]
    page.browser.messages()


def test_page_needs_no_other_file(page):
    resources = page.browser.run("return performance.getEntriesByType('resource').length")
    assert resources == 0


def test_100000_frames_open_in_time(page, large_page):
    times = []
    for _ in range(TRIES):
        large_page.open()
        times.append(large_page.ask("timings.open"))
        if times[-1] < OPEN_MS:
            break
    assert large_page.ask("count()") == 100001 and large_page.samples("all") == [100000]
    assert min(times) < OPEN_MS, times


def test_100000_frames_zoom_in_time(page, large_page):
    large_page.open()
    labels = ["Class3.method_7 (package/module_0.py:21)", "Class3.method_8 (package/module_0.py:24)"]
    for label in labels:
        times = []
        for _ in range(TRIES):
            large_page.browser.run("document.getElementById('stage').focus()")
            large_page.browser.press("Escape")
            times.append(large_page.ask("timings.change"))
            large_page.click(label)
            times[-1] = max(times[-1], large_page.ask("timings.change"))
            if times[-1] < ZOOM_MS:
                break
        assert large_page.state("zoom") == large_page.node(label)
        assert min(times) < ZOOM_MS, times


def test_500_processes_open_in_time(page, crowded_page):
    times = []
    for _ in range(TRIES):
        crowded_page.open()
        times.append(crowded_page.ask("timings.open"))
        if times[-1] < OPEN_MS:
            break
    assert crowded_page.samples("all") == [100000]
    assert crowded_page.samples("app_3.py") == [4000]
    assert min(times) < OPEN_MS, times
    recording = page.browser.text("[data-recording]")
    assert "Processes500: 20 app_0.py, 20 app_1.py" in recording
    assert recording.count("app_") == 20 and "5 other commands" in recording


def test_500_processes_are_found_and_chosen_in_time(page, crowded_page):
    crowded_page.open()
    threads = "return document.getElementById('thread').options.length"
    assert page.browser.run(threads) == 202, "the busiest, and how many more there are"
    spent = {"open": [], "type": [], "choose": []}
    for _ in range(TRIES):
        spent["open"].append(page.browser.run("""
            const began = performance.now();
            document.getElementById("process-open").click();
            return performance.now() - began;"""))
        assert len(page.browser.run(ROWS)) == 1 + 25 + 500
        spent["type"].append(page.browser.run("""
            const query = document.getElementById("process-query"), began = performance.now();
            query.value = "app_7.py 247";
            query.dispatchEvent(new Event("input", { bubbles: true }));
            document.body.getBoundingClientRect();
            return performance.now() - began;"""))
        assert [row[0] for row in page.browser.run(ROWS)] == ["247 python3 app_7.py"]
        page.browser.press("Enter")
        assert crowded_page.samples("all") == [200] and page.browser.run(threads) == 3
        crowded_page.choose_process("All 500")
        spent["choose"].append(crowded_page.ask("timings.change"))
        if max(times[-1] for times in spent.values()) < CHOOSE_MS:
            break
    assert max(min(times) for times in spent.values()) < CHOOSE_MS, spent


def test_500_processes_zoom_in_time(page, crowded_page):
    crowded_page.open()
    times = []
    for _ in range(TRIES):
        crowded_page.click("app_3.py")
        times.append(crowded_page.ask("timings.change"))
        page.browser.run("document.getElementById('stage').focus()")
        page.browser.press("Escape")
        times[-1] = max(times[-1], crowded_page.ask("timings.change"))
        if times[-1] < ZOOM_MS:
            break
    assert min(times) < ZOOM_MS, times
