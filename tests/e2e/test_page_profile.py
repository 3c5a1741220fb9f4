# SPDX-License-Identifier: BSD-2-Clause
"""The flame graph page of a real profile of two processes."""

from page.pages import Page


def test_two_real_processes(any_python, target, profile, browser, tmp_path):
    first, second = target(any_python, "busy.py"), target(any_python, "kinds.py")
    path = tmp_path / "two.html"
    run = profile.attempt("-p", first.pid, "-p", second.pid, "-r", 499, "-o", path, cpu=1)
    assert run.status == 0, run.stderr
    page = Page(browser, str(path)).open()
    every, = page.samples("all")
    page.browser.choose("#group", "By process")
    page.choose_process("%d kinds.py" % second.pid)
    own, = page.samples("all")
    assert 0 < own < every and page.chosen.startswith("%d " % second.pid)
    page.choose_process("%d busy.py" % first.pid)
    assert page.samples("all") == [every - own]
