# SPDX-License-Identifier: BSD-2-Clause
"""A program with a known number of page faults."""

import pytest

from answering import answering

PAGES = 1000
LINE = 5  # the line that touches them
SCRIPT = """import mmap, sys
def touch():
    memory = mmap.mmap(-1, %d * mmap.PAGESIZE)
    for at in range(0, len(memory), mmap.PAGESIZE):
        memory[at] = 1
    memory.close()
def spin():
    return sum(range(200000))
for line in sys.stdin:
    touch()
    spin()
    print('done', flush=True)
""" % PAGES


@pytest.fixture
def toucher(any_python, tmp_path):
    """A program that touches PAGES new pages in touch() per request."""
    with answering(any_python, tmp_path / "toucher.py", SCRIPT) as process:
        yield process
