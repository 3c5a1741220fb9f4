# SPDX-License-Identifier: BSD-2-Clause
"""cells.py: runs code as a notebook runs its cells, with the file names of an old and a new kernel."""

import os

WORK = """
def %s():
    return sum(range(10000))
"""
CELLS = [("old_cell", "<ipython-input-12-0a1b2c3d4e5f>"), ("new_cell", "/tmp/ipykernel_%d/3141592653.py" % os.getpid())]

for name, filename in CELLS:
    exec(compile(WORK % name, filename, "exec"))
print("ready")
while True:
    old_cell()  # noqa: F821
    new_cell()  # noqa: F821
