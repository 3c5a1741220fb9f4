# SPDX-License-Identifier: BSD-2-Clause
"""-p: what a process becomes while the profiler loads its program is in the profile as what it then is.

That begins when the processes were looked at already, and takes a tenth of a second.
"""

import glob
import os
import shutil
import subprocess
import time

import pytest

from conftest import PATIENCE, missing
from pythons import own_pythons
from test_following import by_process, count, process_of

RATE = 499
SECONDS = 0.4

# How long after it has begun to load, in milliseconds, the last ones when it samples; and the share of its
# samples that each process has at least.
DELAYS = 0, 20, 40, 60, 80, 100, 150, 250
SHARE = 0.7

BEFORE = """
import os, sys
print("ready")
sys.stdout.flush()
os.read(0, 1)
os.execv(sys.argv[1], sys.argv[1:])
"""

# It has a child, where it is to.
AFTER = """
import os, sys

def after_exec(seconds):
    end = sum(os.times()[:2]) + seconds
    while sum(os.times()[:2]) < end:
        sum(range(1000))

def in_child(seconds):
    after_exec(seconds)

child = os.fork() if "fork" in sys.argv else None
if child == 0:
    in_child(float(sys.argv[1]))
    os._exit(0)
os.read(0, 1)
after_exec(float(sys.argv[1]))
"""

# It is a Python for a moment, and a shell eight times, all the time.
IN_TURN = """
import os, sys
os.execv("/bin/sh", ["sh", "-c", sys.argv[1], sys.argv[1], sys.executable, sys.argv[0], ""])
"""
SHELL_IN_TURN = """
i=0
while [ $i -lt 1000 ]; do i=$((i + 1)); done
[ ${#3} = 7 ] || exec sh -c "$0" "$0" "$1" "$2" "x$3"
exec "$1" "$2" "$0"
"""

SHELL_BEFORE = 'echo ready; read line; exec "$@"'
SHELL_AFTER = "read line; while :; do :; done"


def loads(run):
    """Whether the profiler has begun to load its program."""
    assert run.process.poll() is None, run.said()
    folder = "/proc/%d/fd" % run.pid
    for name in os.listdir(folder):
        try:
            # Not the library, which is open for a moment.
            if os.readlink(os.path.join(folder, name)).startswith("anon_inode:bpf"):
                return True
        except FileNotFoundError:
            pass
    return False


def wait_loading(run):
    """In smaller steps than wait_for() takes."""
    deadline = time.monotonic() + PATIENCE
    while not loads(run):
        assert time.monotonic() < deadline
        time.sleep(0.001)


class Starts:
    """Programs by what they were and become, each a target that waits for a line to execute that, and for
    another one to use CPU time."""

    def __init__(self, target, folder):
        paths = [python.path for python in own_pythons()]
        self.one, self.other = paths[0], paths[-1]
        if self.one == self.other:
            missing("second Python")
        self.before, self.after = str(folder / "before.py"), str(folder / "after.py")
        for path, code in ((self.before, BEFORE), (self.after, AFTER)):
            with open(path, "w", encoding="ascii") as file:
                file.write(code)
        self.target = target

    def python(self, *command):
        return self.target.start([self.one, self.before, *command])

    def shell(self, *command):
        return self.target.start(["sh", "-c", SHELL_BEFORE, "sh", *command])

    def script(self, python, *words):
        return [python, self.after, str(SECONDS), *words]


@pytest.fixture
def starts(target, tmp_path):
    return Starts(target, tmp_path)


def record(profile, programs, delay_ms, *options):
    """Starts a run of PROGRAMS, which execute what they are to so long after it has begun to load."""
    run = profile.start("-p", ",".join(str(program.pid) for program in programs), "-r", RATE, *options)
    wait_loading(run)
    time.sleep(delay_ms / 1000)
    for program in programs:
        program.go()
    run.wait_sampling()
    for program in programs:
        program.go()
    return run


def check(run, programs):
    """Each has that SHARE of what it has used, as what it was then."""
    processes = by_process(run)
    for program in programs:
        samples = count(processes.get(program.pid, []), "after_exec")
        assert samples > SHARE * SECONDS * RATE, (program.pid, run.stderr)
    commands = {process_of(frames)[1] for frames, _ in run.stacks
                if any(frame.name == "after_exec" for frame in frames)}
    assert not any("before.py" in command for command in commands), commands
    # An exec itself may be sampled.
    assert run.ledger["errors"]["interpreter_fault"] <= 2 * len(programs)
    return processes


@pytest.mark.prove("truth")
@pytest.mark.parametrize("delay_ms", DELAYS)
def test_alone(starts, profile, delay_ms):
    pythons = [starts.python(*starts.script(starts.one)), starts.python(*starts.script(starts.other))]
    shell = starts.python("/bin/sh", "-c", SHELL_AFTER)
    run = record(profile, [*pythons, shell], delay_ms)
    run.wait_said("process %d has exec'd a program that is not Python" % shell.pid)
    for program in pythons:
        program.process.wait(PATIENCE)
    shell.end()
    processes = check(run.load(), pythons)
    # What came before it executed that, if anything.
    assert sum(samples for _, samples in processes.get(shell.pid, [])) < 0.1 * SECONDS * RATE


@pytest.mark.prove("truth")
@pytest.mark.parametrize("delay_ms", DELAYS)
def test_with_children(starts, profile, delay_ms):
    pythons = [starts.python(*starts.script(starts.one)), starts.python(*starts.script(starts.other)),
               starts.shell(*starts.script(starts.one)), starts.shell(*starts.script(starts.other, "fork"))]
    run = record(profile, pythons, delay_ms, "-s")
    processes = check(run.load(), pythons)
    children = [pid for pid in processes if count(processes[pid], "in_child")]
    assert len(children) == 1 and children[0] not in {program.pid for program in pythons}


def test_in_turn(any_python, target, profile, tmp_path):
    """Where there is no Python just then, it is looked for again before that is said."""
    script = tmp_path / "in_turn.py"
    script.write_text(IN_TURN, encoding="ascii")
    program = target.start(["sh", "-c", 'echo ready; exec "$@"', "sh", any_python.path, script, SHELL_IN_TURN])
    for _ in range(5):
        run = profile.attempt("-p", program.pid, "-d", 0.1, "-f", "folded", "-o", "-")
        assert "it maps no file that contains CPython" not in run.stderr


# It maps a library as ld.so does, the whole file first; the data only a moment after somebody has opened the file.
LOADER = """
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ul

static char bytes[4096];

/* Maps the segments that have FLAG, at their places from START on. */
static void map_segments(int file, char *start, unsigned int flag, int protection)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)bytes;
	Elf64_Phdr *segment = (Elf64_Phdr *)(bytes + header->e_phoff);

	for (int i = 0; i < header->e_phnum; i++, segment++)
		if (segment->p_type == PT_LOAD && segment->p_flags & flag)
			mmap(start + segment->p_vaddr / PAGE * PAGE, segment->p_filesz + segment->p_vaddr % PAGE,
			     protection, MAP_PRIVATE | MAP_FIXED, file, segment->p_offset / PAGE * PAGE);
}

int main(int argc, char **argv)
{
	int file = open(argv[argc - 1], O_RDONLY), opened = inotify_init();
	char event[512], *start;

	read(file, bytes, sizeof(bytes));
	start = mmap(NULL, lseek(file, 0, SEEK_END), PROT_READ, MAP_PRIVATE, file, 0);
	map_segments(file, start, PF_X, PROT_READ | PROT_EXEC);
	inotify_add_watch(opened, argv[argc - 1], IN_OPEN);
	puts("ready");
	fflush(stdout);
	read(opened, event, sizeof(event));
	usleep(50000);
	map_segments(file, start, PF_W, PROT_READ | PROT_WRITE);
	return pause();
}
"""


def test_what_is_loading_is_looked_at_again(target, profile, require, tmp_path):
    """A library's data is there after its code."""
    libraries = [path for python in own_pythons() if python.version >= (3, 13)
                 for path in glob.glob(os.path.join(os.path.dirname(os.path.dirname(python.path)), "lib",
                                                    "libpython3.??.so.1.0"))]
    if not libraries:
        missing("libpython of 3.13 or later")
    library = str(shutil.copy(libraries[0], str(tmp_path)))
    loader = str(tmp_path / "loader")
    subprocess.run([require("gcc"), "-w", "-x", "c", "-o", loader, "-"], check=True, input=LOADER,
                   universal_newlines=True)
    program = target.start([loader, library])
    run = profile.attempt("-p", program.pid, "-d", 0.1)
    assert "not supported" not in run.stderr
    assert "process %d has loaded Python 3." % program.pid in run.stderr
