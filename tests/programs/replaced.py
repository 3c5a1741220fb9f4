# SPDX-License-Identifier: BSD-2-Clause
"""replaced.py SECONDS [PATH HOME]: uses SECONDS of CPU time in each of these functions.

  before   after the first line of input
  after    after the second one, when the interpreter's file was replaced; it is compiled only then
  in_fork  in a child, at the same time

Then it executes busy.py with the Python at PATH, whose home is HOME.
"""

import os
import sys
from time import process_time

AFTER = """
def after(until):
    while process_time() < until:
        pass
"""


def before(until):
    while process_time() < until:
        pass


def in_fork(until):
    while process_time() < until:
        pass


SECONDS = float(sys.argv[1])
print("ready")
sys.stdout.flush()
sys.stdin.readline()
before(process_time() + SECONDS)
sys.stdin.readline()
exec(compile(AFTER, "after.py", "exec"))
child = os.fork()
if not child:
    in_fork(process_time() + SECONDS)
    os._exit(0)
after(process_time() + SECONDS)  # noqa: F821
os.waitpid(child, 0)
if len(sys.argv) > 2:
    busy = os.path.join(os.path.dirname(os.path.abspath(__file__)), "busy.py")
    os.execve(sys.argv[2], [sys.argv[2], busy], dict(os.environ, PYTHONHOME=sys.argv[3]))
