# SPDX-License-Identifier: BSD-2-Clause
"""The flame graph page, as a person uses it in Chromium."""

import pytest

from conftest import wait_for
from page.pages import FIB, LOAD, LOAD_NEXT, MAIN, TABLE
from page.pixels import contrast, fill, luminance

pytestmark = pytest.mark.check

SORTED = "return document.querySelector(arguments[0]).getAttribute('aria-sort')"


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


def test_title_and_footer_describe_the_recording(page):
    assert page.browser.text("#title") == 'PID 100: python3 </title> "app".py'
    summary = page.browser.text("[data-summary]")
    for text in "100 Hz", "10.0 s", "Python 3.11.7", "110 samples", "0 errors", "0 lost":
        assert text in summary
    page.browser.click("summary")
    recording = page.browser.text("[data-recording]")
    assert "irregular: 5.0 ms to 15.0 ms, redrawn 100 times" in recording
    assert "100: python3 app.py" in recording
    ledger = page.browser.run("""return [...document.querySelectorAll("[data-ledger] tr")].map(
        (row) => [row.cells[0].textContent, row.cells[1].textContent])""")
    assert ["Events", "110"] in ledger and ["without Python on the thread", "5"] in ledger


def test_errors_and_losses_are_in_the_footer(page):
    def change(profile):
        profile["ledger"].update(events=120, lost=7)
        profile["ledger"]["errors"]["frame_fault"] = 3
    page.changed(change).open()
    assert "3 errors" in page.browser.text("[data-summary]")
    assert "7 lost" in page.browser.text("[data-summary]")
    assert "[caller frames not readable]32.5 %" in page.browser.text("[data-ledger]")


def test_click_zooms_and_back_undoes_it(page):
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


def test_search_highlights_its_matches(page):
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


def test_control_f_opens_the_pages_own_search(page):
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


def test_threads_are_at_the_root_if_chosen(page, make_page):
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


def test_tooltip_has_all_facts_of_a_frame(page):
    box = page.box(LOAD)
    page.browser.point(box["x"] + 20, box["y"] + 5, press=False)
    text = page.browser.text("#tooltip")
    for part in ("Loader.load", "/srv/lib/pkg/load.py:20", "Samples40", "Of all36.4 %",
                 "Of parent40.0 %", "In itself40 (36.4 %)", "Begins at line15"):
        assert part in text
    page.browser.point(box["x"] + 20, 150, press=False)
    assert page.browser.run("return document.getElementById('tooltip').hidden")


def test_address_restores_the_whole_view(page):
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
def test_invalid_addresses_do_no_harm(page, fragment):
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
    def change(profile):
        for function, kind in enumerate((2, 3, 4)):
            profile["functions"][5 * function + 4] = kind
    changed = page.changed(change).open("frames=kernel")
    shown = {fill(changed, label) for label in (MAIN, LOAD, FIB)}
    page.open()
    assert len(shown | {fill(page, label) for label in (MAIN, LOAD, FIB)}) == 6


def test_no_samples(page):
    def change(profile):
        profile.update(samples=[], stacks=[])
    changed = page.changed(change).open()
    assert "No sample was taken" in page.browser.text("#empty")
    assert not page.browser.run("return document.getElementById('empty').hidden")
    page.browser.click('[data-view="table"]')
    assert page.browser.run(TABLE) == [] and changed.samples("all") == []


def deepen(profile, depth=1024):
    """Leaves a single stack, of a function that calls itself from a new line at each level."""
    profile["locations"] = [value for i in range(depth) for value in (0, i + 1)]
    profile["stacks"] = [0, depth, *range(depth)]
    profile["samples"] = [0, 0, 5]


def test_deep_stacks_scroll(page):
    deep = page.changed(deepen).open()
    leaf, middle = "main (app.py:1024)", "main (app.py:500)"
    assert deep.samples(leaf) == [5]
    assert page.browser.run("return document.getElementById('stage').scrollHeight") >= 22 * 1025
    assert 0 < deep.box("all")["y"] < 800 and deep.box(leaf)["y"] < 0
    deep.open("zoom=%d" % deep.node(middle))
    assert 0 < deep.box(middle)["y"] < 800
    page.browser.run("document.getElementById('stage').scrollTop = 0")
    assert 0 < deep.box(leaf)["y"] < 800


@pytest.mark.parametrize("fragment, label, edge", [
    ("", "all", "bottom"), ("zoom=500", "main (app.py:500)", "bottom"), ("view=icicle", "all", "top")])
def test_a_graph_keeps_its_edge_when_the_window_is_resized(page, fragment, label, edge):
    deep = page.changed(deepen).open(fragment)

    def distance():
        return page.browser.run(
            "const box = document.getElementById('stage').getBoundingClientRect();"
            "return Math.abs(box[arguments[0]] - arguments[1])", edge, deep.box(label)["y"])

    before = distance()
    assert before < 100
    # A taller window has less to scroll.
    for height in 1100, 700, 1200, 900:
        page.browser.resize(1280, height)
        wait_for(lambda: page.browser.run(
            "return document.getElementById('canvas').height === document.getElementById('stage').clientHeight"))
        assert distance() == before


def test_resizing_keeps_the_scroll_distance_from_the_bottom(page):
    page.changed(deepen).open().scroll(-130)
    bottom = ("const stage = document.getElementById('stage');"
              "return stage.scrollHeight - stage.clientHeight - stage.scrollTop")
    for height in 1100, 700:
        page.browser.resize(1280, height)
        wait_for(lambda: page.browser.run(bottom) == 130)


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
        const end = performance.now() + 25000;
        const look = (resolve) => seen.length >= 4 || performance.now() > end ?
            resolve([seen.sort(), window.injected ?? null]) : setTimeout(look, 10, resolve);
        return new Promise(look);""")
    assert tried == [["connect-src", "img-src", "script-src-attr", "script-src-elem"], None]
    page.browser.messages()


def test_page_needs_no_other_file(page):
    resources = page.browser.run("return performance.getEntriesByType('resource').length")
    assert resources == 0
