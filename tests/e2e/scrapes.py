# SPDX-License-Identifier: BSD-2-Clause
"""Helpers for tests that ask a running agent for a profile of some seconds."""

import re
import subprocess

from conftest import wait_for, wait_used

ATTEMPTS = 4
WORK_S = 0.5
ABOUT = re.compile(r".* bytes_received:(\d+) .*lastsnd:(\d+) lastrcv:(\d+) ")


def asking(port):
    """The clients of PORT on this machine whose request was read and that still wait for an answer:
    {(address, bytes received from it)}."""
    said = subprocess.check_output(["ss", "-HOtin", "state", "established", "sport", "=", ":%d" % port])
    found = set()
    for line in said.decode("ascii").splitlines():
        unread, _, _, peer, about = line.split(maxsplit=4)
        match = ABOUT.match(" %s " % about)
        # An answered connection may stay open.  lastsnd and lastrcv are ages: the request is newer than the answer.
        if unread == "0" and match and (
                "bytes_sent:" not in about or int(match[3]) < int(match[2])):
            found.add((peer, match[1]))
    return found


def lived_inside(start, is_asked, store):
    """Makes targets work and end while a profile is being taken.  START(attempt) requests the profile and
    returns the targets; IS_ASKED tells whether the request is still open.  Returns the number of the
    successful attempt, from 1: on a busy machine the targets may take too long."""
    for attempt in range(1, ATTEMPTS + 1):
        targets = start(attempt)
        wait_used(WORK_S, *(one.pid for one in targets))
        for one in targets:
            one.end()
        # Wait for two more windows, by which the agent has identified the targets.
        count = len(store.windows())
        wait_for(lambda: len(store.windows()) > count + 1)
        if is_asked():
            return attempt
    raise AssertionError("none of %d attempts was over in time" % ATTEMPTS)
