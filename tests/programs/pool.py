# SPDX-License-Identifier: BSD-2-Clause
"""pool.py METHOD: a process that multiprocessing starts by METHOD, and says its ID."""

import json
import multiprocessing
import sys
import time


def wait(end):
    """Until the process that has the other end is gone."""
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
