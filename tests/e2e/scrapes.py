# SPDX-License-Identifier: BSD-2-Clause
"""What the tests share in which somebody asks the agent for a profile of a time."""

import re
import subprocess

from conftest import wait_for, wait_used

ATTEMPTS = 4
WORK_S = 0.5
ABOUT = re.compile(r".* bytes_received:(\d+) .*lastsnd:(\d+) lastrcv:(\d+) ")


def asking(port):
    """Who waits for an answer at PORT of this machine, and whose request was read: {(address, bytes that
    came from there)}."""
    said = subprocess.check_output(["ss", "-HOtin", "state", "established", "sport", "=", ":%d" % port])
    found = set()
    for line in said.decode("ascii").splitlines():
        unread, _, _, peer, about = line.split(maxsplit=4)
        match = ABOUT.match(" %s " % about)
        # A connection whose request was answered may stay open; both are how long ago that was.
        if unread == "0" and match and (
                "bytes_sent:" not in about or int(match[3]) < int(match[2])):
            found.add((peer, match[1]))
    return found


def lived_inside(start, is_asked, store):
    """Has targets work and end within the time that a profile is asked for.  START(attempt) returns them
    once it is; IS_ASKED tells whether it still is.  The attempt, from 1, that came out so: on a busy
    machine all of that may take longer."""
    for attempt in range(1, ATTEMPTS + 1):
        targets = start(attempt)
        wait_used(WORK_S, *(one.pid for one in targets))
        for one in targets:
            one.end()
        # Until it is known what they were.
        count = len(store.windows())
        wait_for(lambda: len(store.windows()) > count + 1)
        if is_asked():
            return attempt
    raise AssertionError("none of %d attempts was over in time" % ATTEMPTS)
