# SPDX-License-Identifier: BSD-2-Clause
"""titled_later.py TITLE: a line of input forks a worker, and another line makes it take TITLE, or $TITLE if
set. The worker works in `untitled` before that and in `titled` afterwards. It ends after its
parent.
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
