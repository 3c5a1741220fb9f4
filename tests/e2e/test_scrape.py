# SPDX-License-Identifier: BSD-2-Clause
"""`go tool pprof` fetches from the agent exactly the samples that the store has of that time."""

import collections
import os
import re
import subprocess

from agents import end, named, own
from conftest import wait_for
from push_servers import spell
from scrapes import asking, lived_inside
from test_agent_http import site  # noqa: F401 (fixture)
from test_push import summed

RATE = 499
# The first attempt takes this long. Each retry doubles it.
SECONDS = 6
# File names may contain a space, as in "<frozen NAME>", or be empty.
LOCATION = re.compile(r"^ +(\d+): 0x0 M=1 (.*?) (<frozen \S*?|\S*?):(\d+)(?::0)? s=\d+(?:\(\))?$", re.MULTILINE)
SAMPLE = re.compile(r"^ +(\d+) +(\d+): ([\d ]+)\n {16}(.*)$", re.MULTILINE)


def read_raw(text):
    """{(service, frames from the root): (samples, ns)} from the output of `go tool pprof -raw`."""
    frames = {number: spell(name, file, int(line))
              for number, name, file, line in LOCATION.findall(text)}
    found = collections.defaultdict(lambda: (0, 0))
    for samples, cpu, stack, labels in SAMPLE.findall(text):
        service = re.search(r"\bservice_name:\[(.*?)\]", labels).group(1)
        key = service, tuple(frames[number] for number in reversed(stack.split()))
        found[key] = found[key][0] + int(samples), found[key][1] + int(cpu)
    return found


def fetch(require, tmp_path, pages, seconds, query=""):
    return subprocess.Popen(
        [require("go"), "tool", "pprof", "-raw",
         "http://%s/debug/pprof/profile?seconds=%d%s" % (pages.address, seconds, query)],
        env=dict(os.environ, PPROF_TMPDIR=str(tmp_path)), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)


def test_go_fetches_the_samples_of_the_store(any_python, target, site, store, report, require,  # noqa: F811
                                       tmp_path):
    """Functions, files, lines and both values of two services, over their whole lives."""
    pages = site("-r", RATE, "--window", "0.5s")
    fetching = []

    def ask(attempt):
        wait_for(lambda: not asking(pages.port))
        seconds = SECONDS << attempt - 1
        fetching[:] = [fetch(require, tmp_path, pages, seconds),
                       fetch(require, tmp_path, pages, seconds, "&service=" + own("web-%d" % attempt))]
        # If the first fetch has ended already, this attempt does not count.
        wait_for(lambda: len(asking(pages.port)) == 2 or fetching[0].poll() is not None)
        # An answer shows that the agent has handled the second request.
        assert pages.status_of("healthz") == 200
        return [target(any_python, "busy.py", environment=named("api-%d" % attempt)),
                target(any_python, "many_stacks.py", 500, environment=named("web-%d" % attempt))]

    attempt = lived_inside(ask, lambda: len(asking(pages.port)) == 2, store)
    whole, web = (read_raw(one.communicate()[0]) for one in fetching)
    end(pages.run)
    store.check()
    names = [own("%s-%d" % (name, attempt)) for name in ("api", "web")]
    wanted = {key: (count, count * round(1e9 / RATE))
              for key, count in summed(report("--full-filenames")).items() if key[0] in names}
    assert {service for service, _ in wanted} == set(names)
    assert len(wanted) > len(names)
    assert {key: values for key, values in whole.items() if key[0] in names} == wanted
    assert web == {key: values for key, values in wanted.items() if key[0] == names[1]}
