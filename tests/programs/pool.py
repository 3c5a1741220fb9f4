# SPDX-License-Identifier: BSD-2-Clause
"""pool.py METHOD: starts a process by multiprocessing's METHOD, and prints its PID."""

import json
import multiprocessing
import sys
import time


def wait(end):
    """Returns when the process with the other end has ended."""
    try:
        end.recv()
    except EOFError:
        pass


if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    theirs, ours = context.Pipe(duplex=False)
    child = context.Process(target=wait, args=(theirs,))
    child.start()
    print("ready " + json.dumps(child.pid))
    time.sleep(3600)
