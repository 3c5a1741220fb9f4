# SPDX-License-Identifier: BSD-2-Clause
"""The flame graph page with frames of extensions, the interpreter and the kernel."""

import pytest

from page.pages import FIB, LOAD, MAIN, TABLE
from page.pixels import contrast, fill

pytestmark = pytest.mark.check

DOT, POOL = "dot (libblas.so.3)", "pool (libgomp.so.1)"
SORT, GIL = "list_sort (libpython3.11.so.1.0)", "take_gil (libpython3.11.so.1.0)"
FAULT, CUT, NONE = "exc_page_fault_[k]", "[deeper frames cut]", "[no Python]"
LABELS = MAIN, LOAD, FIB, DOT, POOL, SORT, GIL, FAULT, CUT, NONE

# The samples of each node that a choice shows.
SHOWN = {
    "python": {MAIN: [65], LOAD: [18], FIB: [5], CUT: [5], NONE: [10]},
    "extensions": {MAIN: [65], LOAD: [18], FIB: [5], CUT: [5], NONE: [3], DOT: [5, 36], POOL: [7]},
    "interpreter": {MAIN: [65], LOAD: [8, 10], FIB: [5], CUT: [5], DOT: [4, 5, 32], POOL: [7],
                    SORT: [18], GIL: [3]},
    "kernel": {MAIN: [65], LOAD: [8, 10], FIB: [5], CUT: [5], DOT: [4, 5, 32], POOL: [7],
               SORT: [18], GIL: [3], FAULT: [3, 5, 12]},
}

# The self samples of each function: a hidden frame adds its own to its caller's.
SELF = {
    "python": {"main": 47, "Loader.load": 18, NONE: 10, "fib": 5, CUT: 0},
    "extensions": {DOT: 36, "Loader.load": 18, "main": 11, POOL: 7, "fib": 5, NONE: 3, CUT: 0},
    "interpreter": {DOT: 36, "Loader.load": 18, POOL: 7, SORT: 6, "main": 5, "fib": 5, GIL: 3, CUT: 0},
    "kernel": {DOT: 24, FAULT: 20, "Loader.load": 18, POOL: 7, SORT: 6, "fib": 5, "main": 0,
               GIL: 0, CUT: 0},
}

PYTHON, NATIVE, KERNEL, REASON, INTERPRETER = 1, 2, 3, 5, 6

BUTTONS = """return [...document.querySelectorAll("#frames:not([hidden]) button")].map(
    (each) => [each.textContent, each.getAttribute("aria-pressed") === "true"])"""


def shown(page):
    """{label: samples of each of its nodes}"""
    found = {label: sorted(page.samples(label)) for label in LABELS}
    return {label: samples for label, samples in found.items() if samples}


def in_itself(page):
    page.browser.click('[data-view="table"]')
    found = {row[0]: row[2] for row in page.browser.run(TABLE)}
    page.browser.click('[data-view="flame"]')
    return found


def choose(page, frames):
    page.browser.click('[data-frames="%s"]' % frames)


def offered(page):
    return [text for text, _ in page.browser.run(BUTTONS)]


def pressed(page):
    return [text for text, is_pressed in page.browser.run(BUTTONS) if is_pressed]


def without(*kinds):
    """Turns functions of these kinds into Python functions."""
    def change(profile):
        functions = profile["functions"]
        functions[4::5] = [PYTHON if kind in kinds else kind for kind in functions[4::5]]
    return change


@pytest.mark.parametrize("frames", SHOWN)
def test_each_choice_shows_its_frames(native, frames):
    choose(native, frames)
    assert shown(native) == SHOWN[frames]
    assert native.samples("all") == [80] and sum(SELF[frames].values()) == 80
    assert in_itself(native) == SELF[frames]
    native.browser.click("#lines")
    assert native.samples("all") == [80] and native.samples(FAULT) == SHOWN[frames].get(FAULT, [])[::-1]
    assert in_itself(native) == SELF[frames]


def test_extensions_are_the_initial_choice(native):
    assert native.browser.run(BUTTONS) == [
        ["Python", False], ["+ extensions", True], ["+ interpreter", False], ["+ kernel", False]]
    assert shown(native) == SHOWN["extensions"] and native.fragment == ""


@pytest.mark.parametrize("missing, buttons, initial", [
    ((NATIVE,), ["Python", "+ interpreter", "+ kernel"], "Python"),
    ((INTERPRETER,), ["Python", "+ extensions", "+ kernel"], "+ extensions"),
    ((KERNEL,), ["Python", "+ extensions", "+ interpreter"], "+ extensions"),
    ((NATIVE, INTERPRETER), ["Python", "+ kernel"], "+ kernel"),
    ((INTERPRETER, KERNEL), ["Python", "+ extensions"], "+ extensions"),
])
def test_only_choices_that_differ_are_offered(native, missing, buttons, initial):
    page = native.changed(without(*missing)).open()
    assert offered(page) == buttons and pressed(page) == [initial]
    assert page.samples("all") == [80] and page.fragment == ""


def test_nothing_to_choose(native, plain_page):
    plain_page.open()
    assert offered(plain_page) == [] and plain_page.samples("all") == [110]
    page = native.changed(without(NATIVE, INTERPRETER, KERNEL)).open("frames=kernel")
    assert offered(page) == [] and page.samples("all") == [80]


def test_address_keeps_the_choice(native):
    choose(native, "interpreter")
    assert native.fragment == "frames=interpreter"
    native.browser.reload()
    assert shown(native) == SHOWN["interpreter"] and pressed(native) == ["+ interpreter"]
    choose(native, "python")
    assert native.fragment == "frames=python"
    native.browser.back()
    assert native.fragment == "frames=interpreter" and shown(native) == SHOWN["interpreter"]
    choose(native, "extensions")
    assert native.fragment == "" and shown(native) == SHOWN["extensions"]


@pytest.mark.parametrize("fragment", ["frames=all", "frames=", "frames=1", "frames=__proto__", "frames=%ff"])
def test_invalid_choices_are_ignored(native, fragment):
    native.open(fragment)
    assert shown(native) == SHOWN["extensions"]


def test_a_choice_that_the_profile_lacks_is_ignored(native):
    page = native.changed(without(NATIVE, INTERPRETER)).open("frames=interpreter")
    assert pressed(page) == ["+ kernel"]


def test_zoom_stays_with_its_frame(native):
    choose(native, "kernel")
    native.browser.point(*[native.ask("box(arguments[0])", node)[side] + 5 for node in native.nodes(LOAD)[-1:]
                           for side in ("x", "y")])
    assert native.state("zoom") in native.nodes(LOAD)
    for frames in "python", "interpreter", "extensions":
        choose(native, frames)
        assert native.state("zoom") in native.nodes(LOAD), frames
    native.browser.press("Escape")
    choose(native, "kernel")
    native.click(SORT)
    choose(native, "extensions")
    assert native.state("zoom") == native.node(MAIN), "its caller, where it is hidden itself"
    native.browser.back()
    assert native.state("zoom") == native.node(SORT) and pressed(native) == ["+ kernel"]


def test_zoom_stays_below_frames_that_were_hidden(native):
    choose(native, "python")
    native.click(FIB)
    choose(native, "extensions")
    assert native.state("zoom") == native.node(FIB), "which dot has called"


def test_search_finds_only_shown_frames(native):
    native.search("list_sort")
    assert native.shares() == [[0, 80, "all"]]
    choose(native, "interpreter")
    assert native.shares() == [[18, 80, "all"]]
    choose(native, "python")
    assert native.shares() == [[0, 80, "all"]]


def test_one_thread(native):
    native.browser.choose("#thread", "worker 1 (101)")
    for frames, count in ("python", 10), ("extensions", 3):
        choose(native, frames)
        assert native.samples("all") == [15] and native.samples(NONE) == [count]
    choose(native, "kernel")
    assert native.samples("all") == [15] and native.samples(FAULT) == [3] and not native.nodes(NONE)
    native.browser.choose("#group", "By thread")
    choose(native, "python")
    assert native.samples("thread (101): worker 1") == [15] and native.samples(NONE) == [10]


def test_tooltip_and_detail_say_whose_code_it_is(native):
    choose(native, "kernel")
    for label, text in ((DOT, "an extension or library"), (SORT, "the Python interpreter"), (FAULT, "the kernel")):
        box = native.box(label)
        native.browser.point(box["x"] + 5, box["y"] + 5, press=False)
        tooltip = native.browser.text("#tooltip")
        assert tooltip.startswith(label) and "Code of" + text in tooltip and "?" not in tooltip
        native.click(label)
        assert native.detail.startswith(label + " · ") and native.detail.endswith("code of " + text)
        native.browser.press("Escape")
    choose(native, "python")
    native.click(NONE)
    assert native.detail.endswith("frames all hidden: choose more above")


@pytest.mark.parametrize("scheme, text", [("light", "29,26,22"), ("dark", "255,253,248")])
def test_each_kind_has_its_colour(native, scheme, text):
    native.browser.prefer(scheme)
    native.open("frames=kernel")
    fills = {label: fill(native, label) for label in (MAIN, DOT, SORT, FAULT, CUT, "all")}
    assert len(set(fills.values())) == 6
    for label, colour in fills.items():
        assert contrast(colour, text) > 4.5, label
    marks = native.browser.run("""return [...document.querySelectorAll("#frames i")].map(
        (each) => getComputedStyle(each).backgroundColor)""")
    assert len(set(marks)) == 4


def test_the_keyboard_makes_the_choice(native):
    native.browser.run("document.querySelector('[data-view=table]').focus()")
    native.browser.press("Tab", "Enter")
    assert pressed(native) == ["Python"]
    native.browser.press("Tab", "Tab", "Enter")
    assert pressed(native) == ["+ interpreter"] and shown(native) == SHOWN["interpreter"]
    assert native.browser.run("return document.activeElement.dataset.frames") == "interpreter"


def test_choice_and_zoom_stay_when_the_profile_is_renewed(native):
    choose(native, "kernel")
    native.click(SORT)
    native.renew()
    assert native.state("zoom") == native.node(SORT) and pressed(native) == ["+ kernel"]
    native.renew(without(NATIVE, INTERPRETER, KERNEL))
    assert offered(native) == [] and native.samples("all") == [80]
    native.renew()
    assert pressed(native) == ["+ kernel"]
    native.browser.press("Escape")
    assert shown(native) == SHOWN["kernel"]


def test_without_a_choice_a_new_profile_sets_it(native):
    page = native.changed(without(NATIVE, INTERPRETER)).open()
    assert pressed(page) == ["+ kernel"]
    native.renew()
    assert pressed(native) == ["+ extensions"] and shown(native) == SHOWN["extensions"]


def test_differences_follow_the_choice(change):
    """Loader.load is made an interpreter function, fresh a kernel function."""
    def make_native(profile):
        names = [profile["strings"][name] for name in profile["functions"][0::5]]
        profile["functions"][4::5] = [
            {"Loader.load": INTERPRETER, "fresh": KERNEL}.get(name, kind)
            for name, kind in zip(names, profile["functions"][4::5])]

    def self_of(label):
        page.browser.click('[data-view="table"]')
        cells = page.browser.run("""return Object.fromEntries([...document.querySelectorAll(
            "#table tbody tr[data-row]")].map((row) => [row.cells[2].textContent,
            row.cells[0].querySelector(".share").textContent]))""")
        page.browser.click('[data-view="flame"]')
        return cells.get(label)

    page = change.changed(make_native).open()
    load = "Loader.load (pkg/load.py)"
    assert pressed(page) == ["Python"] and not page.nodes(load)
    sides = page.ask("sides(arguments[0])", page.node("all"))
    assert (sides["was"], sides["now"]) == (400, 200)
    assert self_of("main") == "25.0 % → 60.0 %" and self_of("Loader.load") is None
    choose(page, "interpreter")
    assert self_of("main") == "0 % → 10.0 %" and self_of("Loader.load") == "25.0 % → 50.0 %"
    choose(page, "kernel")
    assert self_of("fresh") == "0 % → 10.0 %"


def test_small_window(native):
    native.browser.resize(360, 640)
    native.open("frames=interpreter")
    assert native.browser.run("return document.documentElement.scrollWidth") <= 360
    choose(native, "python")
    assert pressed(native) == ["Python"]
