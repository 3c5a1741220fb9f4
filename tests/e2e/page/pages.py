# SPDX-License-Identifier: BSD-2-Clause
"""Pages of profiles made by tests/programs/synthetic_profile.c, in Chromium.

`plain` has 110 samples:

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

`native` has 80, the last three rows on the second thread.  dot and pool belong to extensions, list_sort and
take_gil to the interpreter.  dot has two addresses:

    10  main > Loader.load             8  main > list_sort > Loader.load
    20  main > dot                    12  main > dot > exc_page_fault
     6  main > list_sort               4  main > list_sort > dot
     5  main > exc_page_fault          5  [deeper frames cut] > dot > fib
     7  pool                           3  take_gil > exc_page_fault
"""

import itertools
import json
import re
import subprocess

import pytest

from page.browser import Browser, find_browser, wait

LOAD, LOAD_NEXT = "Loader.load (pkg/load.py:20)", "Loader.load (pkg/load.py:21)"
FIB, MAIN = "fib (pkg/fib.py:5)", "main (app.py:10)"

TABLE = """return [...document.querySelectorAll("#table tbody tr[data-row]")].map((row) => [
    row.cells[2].textContent, row.cells[3].textContent,
    parseInt(row.cells[0].firstChild.data.replaceAll(",", "")),
    parseInt(row.cells[1].firstChild.data.replaceAll(",", ""))])"""

ROWS = """return [...document.querySelectorAll("#process-list [role=option]")].map((row) =>
    [...row.querySelectorAll("span")].map((part) => part.textContent))"""


class Page:
    """One profile's page in the browser."""

    def __init__(self, browser, path):
        self.browser = browser
        self.address = "file://" + path

    def open(self, fragment=""):
        self.browser.open(self.address + ("#" + fragment if fragment else ""))
        return self

    def parts(self):
        """The text before the profile, the decoded profile and the text after it."""
        with open(self.address[len("file://"):], encoding="utf-8") as file:
            head, data, tail = re.split(r'(?<=id="profile">)(.*?)(?=</script>)', file.read(),
                                        maxsplit=1, flags=re.DOTALL)
        return head, json.loads(data), tail

    def changed(self, change):
        """Another page, whose profile CHANGE(profile) has modified."""
        head, profile, tail = self.parts()
        path = self.address[len("file://"):] + ".changed.html"
        change(profile)
        with open(path, "w", encoding="utf-8") as file:
            file.write(head + json.dumps(profile).replace("<", "\\u003c") + tail)
        return Page(self.browser, path)

    def renew(self, *changes):
        """Renews the open page with its own profile after all CHANGES, as the agent's page does."""
        profile = self.parts()[1]
        for change in changes:
            change(profile)
        self.ask("renew(arguments[0])", json.dumps(profile))

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

    def scroll(self, pixels):
        """Scrolls the graph, and waits for the scroll event."""
        self.browser.run("""
            const stage = document.getElementById("stage");
            return new Promise((done) => {
                stage.addEventListener("scroll", () => done(null), { once: true });
                stage.scrollTop += arguments[0];
            });""", pixels)

    def search(self, text):
        self.browser.press("/")
        wait(lambda: self.browser.run("return document.activeElement.id") == "search")
        self.browser.type(text)
        wait(lambda: self.state("query") == text)

    def shares(self):
        return self.ask("shares()")

    def open_processes(self, words=""):
        """Opens the process menu, types WORDS, and returns the matching rows: [name, owner, share]."""
        self.browser.click("#process-open")
        self.browser.type(words)
        return self.browser.run(ROWS)

    def choose_process(self, words):
        """Chooses the first process that matches WORDS."""
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


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    from conftest import missing
    chromium, driver = find_browser()
    if not chromium or not driver:
        missing("chromium and chromium-driver")
    browser = Browser(driver, chromium, str(tmp_path_factory.mktemp("browser")))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def make_page(browser, tool, tmp_path_factory):
    """make_page("plain", OPTION...): the page of a synthetic profile."""
    folder, number = tmp_path_factory.mktemp("pages"), itertools.count()
    program = tool("synthetic_profile")

    def make(kind, *options):
        path = str(folder / ("%s-%d.html" % (kind, next(number))))
        subprocess.run([program, *options, kind, "html", path], check=True)
        return Page(browser, path)
    return make


@pytest.fixture(scope="session")
def plain_page(make_page):
    return make_page("plain")


def watched(page):
    """Opens the page, and checks at the test's end that the console has no messages."""
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


@pytest.fixture(scope="session")
def machine_page(make_page):
    return make_page("machine")


@pytest.fixture
def machine(machine_page):
    yield from watched(machine_page)


@pytest.fixture(scope="session")
def native_page(make_page):
    return make_page("native")


@pytest.fixture
def native(native_page):
    yield from watched(native_page)


@pytest.fixture(scope="session")
def change_page(make_page):
    return make_page("change")


@pytest.fixture
def change(change_page):
    yield from watched(change_page)
