# SPDX-License-Identifier: BSD-2-Clause
"""The flame graph page of a profile with several events: a menu chooses one."""

import pytest

from page.pages import watched

pytestmark = pytest.mark.check

OPTIONS = """return [...document.querySelectorAll("label:not([hidden]) > #event option")].map((each) => each.text)"""
CHOOSE = """const menu = document.getElementById("event");
    menu.value = arguments[0];
    menu.dispatchEvent(new Event("change"));"""
SUMMARY = """return document.querySelector("[data-summary]").textContent"""


@pytest.fixture(scope="session")
def events_page(make_page):
    return make_page("events")


@pytest.fixture
def events(events_page):
    yield from watched(events_page)


def test_the_first_event_is_shown(events):
    assert events.browser.run(OPTIONS) == ["cpu-clock", "page-faults"]
    assert events.samples("all") == [110] and events.fragment == ""
    assert "100 Hz" in events.browser.run(SUMMARY)


def test_the_menu_chooses_another_event(events):
    events.browser.run(CHOOSE, 1)
    assert events.samples("all") == [30]
    assert events.fragment == "event=page-faults"
    assert "page-faults" in events.browser.run(SUMMARY) and "3 lost" in events.browser.run(SUMMARY)
    events.browser.run(CHOOSE, 0)
    assert events.samples("all") == [110] and events.fragment == ""


def test_the_address_chooses_the_event(events):
    events.open("event=page-faults&view=icicle")
    assert events.samples("all") == [30] and events.fragment == "event=page-faults&view=icicle"
    events.open("event=migrations")
    assert events.samples("all") == [110]


def test_a_profile_of_one_event_has_no_menu(plain_page):
    plain_page.open()
    assert plain_page.browser.run(OPTIONS) == []
