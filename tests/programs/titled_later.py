# SPDX-License-Identifier: BSD-2-Clause
"""titled_later.py TITLE: upon a line of input forks a worker, which upon another one takes TITLE; it works
in `untitled` before that, in `titled` from then on, and ends after its parent.  $TITLE, where there is
one, comes before TITLE.
"""

import os
import select
import sys

from titled import take_title


def untitled():
    while not select.select([0], [], [], 0)[0]:
        sum(range(1000))


def titled(parent):
    while os.getppid() == parent:
        sum(range(1000))


print("ready")
sys.stdout.flush()
sys.stdin.readline()
parent = os.getpid()
pid = os.fork()
if not pid:
    untitled()
    take_title(os.environ.get("TITLE", sys.argv[1]))
    titled(parent)
    os._exit(0)
os.waitpid(pid, 0)
