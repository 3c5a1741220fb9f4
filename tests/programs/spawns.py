# SPDX-License-Identifier: BSD-2-Clause
"""spawns.py HOW [later]: starts a worker whose command line does not name a program, and prints its PID. With
`later` it waits for a line of input first, and ends afterwards.  The worker works in `work` until more input.

  text     a program given on the command line, as multiprocessing and execnet do
  shell    the same, through a shell
  twice    the same, through another worker
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
    """Starts the worker. Returns its PID."""
    worker = subprocess.Popen(COMMANDS[sys.argv[1]], stdout=subprocess.PIPE)
    return json.loads(worker.stdout.readline())


if len(sys.argv) > 2:
    print("ready")
    sys.stdout.flush()
    # Read only this line: the worker waits for more input.
    while os.read(0, 1) != b"\n":
        pass
    print(start())
    sys.stdout.flush()
    os._exit(0)
print("ready %d" % start())
sys.stdout.flush()
time.sleep(3600)
