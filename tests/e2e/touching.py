# SPDX-License-Identifier: BSD-2-Clause
"""A program whose page faults are known."""

import subprocess

import pytest

PAGES = 1000
LINE = 5  # that touches them
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
    print('touched', flush=True)
""" % PAGES


@pytest.fixture
def toucher(any_python, tmp_path):
    """A program that touches PAGES new pages in touch() each time that a line is sent, then says so."""
    script = tmp_path / "toucher.py"
    script.write_text(SCRIPT)
    with subprocess.Popen([*any_python.command, str(script)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def touch(process, times):
    for _ in range(times):
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"touched\n"
