# SPDX-License-Identifier: BSD-2-Clause
"""The agent with native frames: its store, pages, metrics and pushes contain them, as record's profiles do."""

import json
import re

import pytest

from agents import ONLY_OWN, end, named, own, services, total
from conftest import CAPABILITIES, as_nobody, wait_for
from folded import Frame
from native_chains import BUILD_ID, CHAIN, CHAINS, OTHER, chain_command, chain_library, spell  # noqa: F401 (fixtures)
from test_agent_http import CLOCK, LISTEN, Site, site  # noqa: F401 (a fixture)
from test_privileges import TO_READ, await_drop, check_dropped
from test_push import KINDS, backend, end_targets, stored_samples, summed  # noqa: F401 (a fixture)

OFTEN = ("--window", "0.5s", "-r", "999")
NATIVE, PYTHON = 2, 1  # the page's kinds of functions


@pytest.fixture
def chain(any_python, target, chain_command):  # noqa: F811
    """chain(NAME...): a process of the service own("web") that runs these chains in turn."""
    return lambda *names: target(any_python, *chain_command(*names), environment=named("web"))


@pytest.fixture
def seen(report, store):
    """seen(): the words of all stored stacks of own("web")."""
    def read():
        if own("web") not in services(store):
            return set()
        return {tuple(spell(list(map(Frame, frames))))
                for _, frames, _ in report("--label", "service_name=" + own("web"))}
    return read


def whole(*names):
    return {tuple(CHAINS[name]) for name in names}


def test_report(chain, agent, seen, store):
    chain("mixed", "key", "deep")
    run = agent(*OFTEN, "--native", "--listen", "off")
    wait_for(lambda: whole("mixed", "key", "deep") <= seen())
    end(run)
    assert run.status == 0 and ", with native frames, in windows" in run.stderr, run.stderr
    store.check()


def test_off_by_default(chain, site, seen):  # noqa: F811
    """No message has the word "native", so the name of this test, which is in a path, does not either."""
    chain("mixed")
    pages = site(*OFTEN)
    wait_for(lambda: ("<module>", "main", "mixed", "mixed_middle", "mixed_inner") in seen())
    metrics = pages.metrics()
    end(pages.run)
    assert not any(":" in word for words in seen() for word in words)
    assert not any(metrics["pybpfprof_native_samples_total"].values())
    assert metrics["pybpfprof_native_resumptions_total"] == {CLOCK: 0}
    assert metrics["pybpfprof_unwind_table_bytes"] == {"": 0}
    assert "native" not in pages.run.stderr


def test_metrics(chain, site):  # noqa: F811
    """Each sample that BPF took has one native outcome.  The sample is in the profile, or will be once its
    process is known."""
    def count(metrics, *names):
        return sum(sum(metrics["pybpfprof_%s_total" % name].values()) for name in names)

    chain("mixed")
    pages = site(*OFTEN, "--native")
    wait_for(lambda: pages.metrics()["pybpfprof_native_samples_total"][CLOCK + ',outcome="whole"'] > 100)
    first = pages.metrics()
    without = first["pybpfprof_samples_total"][CLOCK + ',outcome="not_known_yet"']
    assert count(first, "samples") - without <= count(first, "native_samples")
    wait_for(lambda: count(pages.metrics(), "events", "unknown_process_samples") >= count(first, "native_samples"))
    assert 0 < first["pybpfprof_unwind_table_bytes"][""] <= 64 << 20
    end(pages.run)


@pytest.mark.parametrize("kind", KINDS)
def test_pushed(kind, chain, backend, agent, report, seen, store):  # noqa: F811
    """Pushed stacks equal stored ones.  Each C function has its file, address range and build ID."""
    web = chain("mixed", "key")
    server = backend(kind)
    run = agent(*OFTEN, *ONLY_OWN, "--native", "--push", server.url())
    wait_for(lambda: whole("mixed", "key") <= seen())
    end_targets(store, web)
    wait_for(lambda: total(server.rows()) == stored_samples(store))
    end(run)
    assert run.status == 0, run.stderr
    assert summed(server.rows()) == summed(report("--full-filenames"))
    places = [place for place in server.places() if place.function.endswith("(%s)" % CHAIN)]
    assert {place.function.partition(" ")[0] for place in places} >= {"chain_enter", "chain_spin"}
    for place in places:
        assert place.file.endswith("/" + CHAIN) and place.build_id == BUILD_ID, place
        assert place.start <= place.address < place.limit, place
    assert not any(place.address for place in server.places() if not place.file)


def test_page(chain, site):  # noqa: F811
    chain("mixed")
    pages = site(*OFTEN, "--native")

    def kinds():
        text = pages.get("flamegraph?service=" + own("web")).decode()
        saved = json.loads(re.search(r'id="profile">(.*?)</script>', text, re.DOTALL)[1])
        rows = [saved["functions"][at:at + 5] for at in range(0, len(saved["functions"]), 5)]
        return {saved["strings"][row[0]]: row[4] for row in rows}

    wait_for(lambda: {"chain_enter (%s)" % CHAIN, "mixed_middle"} <= set(kinds()))
    found = kinds()
    end(pages.run)
    assert found["chain_enter (%s)" % CHAIN] == NATIVE and found["mixed_middle"] == PYTHON


def test_five_capabilities_suffice(chain, profile, public_binary):
    """They also suffice for a library that is loaded after the agent has dropped the capabilities that only
    its start needs."""
    profile.binary = public_binary
    program = chain("late")
    run = profile.start("agent", *LISTEN, *OFTEN, "--comm", "native_chain.py", "--native", files=False, prefix=as_nobody(CAPABILITIES))
    check_dropped(await_drop(run), TO_READ | {"bpf"})
    pages = Site(run)
    program.go()
    wait_for(lambda: ("chain_enter (%s)" % OTHER).encode() in pages.get("flamegraph?service=" + own("web")))
    samples = wait_for(lambda: pages.metrics()["pybpfprof_native_samples_total"][CLOCK + ',outcome="whole"'])
    wait_for(lambda: pages.metrics()["pybpfprof_native_samples_total"][CLOCK + ',outcome="whole"'] > samples + 100)
    end(run)
    assert run.status == 0, run.stderr
