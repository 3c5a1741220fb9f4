# SPDX-License-Identifier: BSD-2-Clause
"""spawns.py HOW [later]: starts a worker whose command line does not say what it is for, and says its ID; `later`:
upon a line of input, and ends then.  The worker works in `work` until there is (more) input, or its end.

  text     a program given on the command line, as multiprocessing and execnet do
  shell    the same, by way of a shell
  twice    the same, by way of another worker
"""

import json
import os
import subprocess
import sys
import time

WORK = """
import os, select, sys
def work():
    while not select.select([0], [], [], 0)[0]:
        sum(range(1000))
print(os.getpid())
sys.stdout.flush()
work()
"""
AGAIN = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"

WORKER = [sys.executable, "-c", WORK]
COMMANDS = {
    "text": WORKER,
    "shell": ["sh", "-c", '"$@"; true', "sh"] + WORKER,
    "twice": [sys.executable, "-c", AGAIN] + WORKER,
}


def start():
    """The worker's ID."""
    worker = subprocess.Popen(COMMANDS[sys.argv[1]], stdout=subprocess.PIPE)
    return json.loads(worker.stdout.readline())


if len(sys.argv) > 2:
    print("ready")
    sys.stdout.flush()
    # No more of it than that line.
    while os.read(0, 1) != b"\n":
        pass
    print(start())
    sys.stdout.flush()
    os._exit(0)
print("ready %d" % start())
sys.stdout.flush()
time.sleep(3600)
