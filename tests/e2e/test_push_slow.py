# SPDX-License-Identifier: BSD-2-Clause
"""Slow and hanging backends of each kind: nothing else waits for them."""

import re
import time

import pytest

from agents import end, total
from conftest import wait_for
from test_push import (KINDS, WINDOW, WINDOW_S, backend, busy, drip, end_targets, flood, hang,  # noqa: F401
                       stored_samples, summary, windows_with_samples)

pytestmark = pytest.mark.prove("push")

SLOW_S = 3
NOT_ANSWERED = "sent, but not acknowledged"
KEPT = "kept in the store until the agent starts again"


@pytest.fixture
def windows_came_in_time(store, measured):
    def check():
        """No window was delayed by more than a busy machine explains."""
        ends = [row[0] for row in store.select("SELECT end_ns FROM windows ORDER BY id")]
        gaps = [(late - early) / 1e9 for early, late in zip(ends[:-2], ends[1:-1])]
        measured("longest window of %g s beside a bad backend" % WINDOW_S, "%.2f s" % max(gaps), "< 15 s more")
        assert max(gaps) < WINDOW_S + 15, gaps
    return check


@pytest.mark.parametrize("kind", KINDS)
def test_a_slow_backend_gets_everything(kind, busy, backend, agent, store, windows_came_in_time):  # noqa: F811
    """A slow backend gets each request once: the agent waits for its late answers."""
    slow, good = backend(kind), backend("pyroscope")
    times = []

    def answer(handler, request):
        if len(times) < 3:
            times.append(request.time)
            time.sleep(SLOW_S)
        slow.take(handler, request)
    slow.answer = answer
    run = agent(*WINDOW, "--push", slow.url(), "--push", good.url())
    wait_for(lambda: len(slow.taken) > 3)
    end_targets(store, busy)
    wait_for(lambda: all(total(one.rows()) == stored_samples(store) for one in (slow, good)))
    end(run)
    assert run.status == 0, run.stderr
    # Requests are sent one at a time.
    assert all(late - early >= SLOW_S for early, late in zip(times, times[1:])), times
    stored = stored_samples(store)
    for one in slow, good:
        assert total(one.rows()) == stored
        assert summary(run, one.url()) == (stored, stored)
        assert len(one.seen) == len(windows_with_samples(store))
    # Meanwhile the other backend got every window.
    assert len([request for request in good.seen if request.time < times[-1] + SLOW_S]) >= 3 * SLOW_S
    windows_came_in_time()


@pytest.mark.parametrize("before,answer", [(None, hang), (hang, None), (None, drip), (None, flood)],
                         ids=["silent", "hung", "dripping", "flooding"])
def test_hanging_backends_delay_nothing(before, answer, busy, backend, agent, store,  # noqa: F811
                                       windows_came_in_time):
    """One backend of each kind hangs. Only Pyroscope is sent a request again that may have arrived."""
    hanging, good = [backend(kind) for kind in KINDS], backend("otlp")
    for one in hanging:
        one.before, one.answer = before, answer
    pushed = [word for one in hanging for word in ("--push", one.url() + " timeout=0.5s")]
    run = agent(*WINDOW, *pushed, "--push", good.url())
    wait_for(lambda: len(good.taken) >= 6)
    end_targets(store, busy)
    wait_for(lambda: total(good.rows()) == stored_samples(store))
    end(run)
    stored = stored_samples(store)
    assert total(good.rows()) == stored
    assert summary(run, good.url()) == (stored, stored)
    windows_came_in_time()
    for one in hanging:
        assert summary(run, one.url()) == (0, stored)
        became = re.findall(re.escape(one.url()) + r": (\d+) samples in \d+ requests: (.*)", run.stderr)
        assert sum(int(samples) for samples, _ in became) == stored, run.stderr
        outcomes = [what for _, what in became]
        if one.kind == "pyroscope":
            assert outcomes == [KEPT]
        else:
            assert NOT_ANSWERED in outcomes
            assert len({request.body for request in one.seen}) == len(one.seen)


def test_a_minute_of_errors_500(busy, backend, agent, store):  # noqa: F811
    """Afterwards each kind gets everything once. A healthy backend is not affected."""
    broken, good = [backend(kind) for kind in KINDS], backend("otlp")
    for one in broken:
        one.answer = lambda handler, request: handler.reply(500, body=b"out of order")
    pushed = [word for one in broken for word in ("--push", one.url())]
    run = agent("--window", "2s", "-r", "199", *pushed, "--push", good.url())
    wait_for(lambda: all(one.seen for one in broken))
    time.sleep(60)
    for one in broken:
        one.answer = None
    wait_for(lambda: all(len(one.taken) == len(good.taken) for one in broken))
    end(run)
    assert run.status == 0, run.stderr
    stored = sum(row[1] for row in store.check().values())
    for one in *broken, good:
        assert total(one.rows()) == stored
        assert summary(run, one.url()) == (stored, stored)
        assert len({request.body for request in one.taken}) == len(one.taken)
    # Each retry backs off longer.
    for one in broken:
        tries = [request.time for request in one.seen if request.body == one.seen[0].body]
        assert 4 <= len(tries) <= 10 and tries[-1] - tries[-2] > 4 * (tries[1] - tries[0]), tries
