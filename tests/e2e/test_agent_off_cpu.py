# SPDX-License-Identifier: BSD-2-Clause
"""The agent with --off-cpu: a wait is split between the windows that it spans, and is stored and pushed."""

import os

import pytest

from agents import end, numbers
from conftest import wait_for
from test_agent_http import site  # noqa: F401 (a fixture)
from test_push import KINDS, backend  # noqa: F401 (a fixture)

ARGUMENTS = ("--off-cpu", "-r", "99", "--window", "0.3s")


def spanned(store):
    """The number of stacks in windows that have waiting time but no wait that is counted there."""
    if not os.path.exists(store.path):
        return 0
    rows = store.select("SELECT services.samples, sample_values FROM services JOIN windows ON window = windows.id"
                        " WHERE event = 'off-cpu'")
    return sum(count == 0 and value > 0 for samples, values in rows if values
               for count, value in zip(list(numbers(samples))[1::2], numbers(values)))


@pytest.fixture
def waited(site, any_python, target, store):  # noqa: F811
    """waited(ARGUMENT...): an ended agent.  waits.py slept through several of its windows."""
    def run(*arguments):
        program = target(any_python, "waits.py")
        agent = site(*ARGUMENTS, *arguments).run
        wait_for(lambda: store.windows())
        program.go()
        wait_for(lambda: spanned(store) >= 3)
        end(agent)
        assert agent.status == 0, agent.stderr
        return agent
    return run


def test_a_wait_is_in_each_of_its_windows(waited, store, report):
    waited()
    store.check()
    assert {event for event, in store.select("SELECT DISTINCT event FROM windows")} == {"cpu", "off-cpu"}
    waits = {(frames[-2].split(" (")[0], frames[-1]) for _, frames, value in report("--show", "off-cpu")
             if len(frames) > 1 and value}
    assert waits & {("sleep_long", "[sleep]"), ("sleep_long", "[poll]")}
    assert waits >= {("read_here", "[read]"), ("lock_here", "[lock]")}


@pytest.mark.parametrize("kind", KINDS)
def test_waits_are_pushed(waited, backend, report, kind):  # noqa: F811
    server = backend(kind)
    waited("--push", server.url())
    stored = sum(value for _, _, value in report("--show", "off-cpu"))
    assert server.values()["off_cpu/nanoseconds"] == stored > 0
