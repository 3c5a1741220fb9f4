# SPDX-License-Identifier: BSD-2-Clause
"""-p: a process that execs while the profiler loads its BPF program is profiled as the new program.

Loading begins after the processes were examined, and takes a tenth of a second.
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

# The delays of the exec after loading began, in milliseconds; with the last ones it already samples.  And the
# smallest share of its samples that each process must have.
DELAYS = 0, 20, 40, 60, 80, 100, 150, 250
SHARE = 0.7

BEFORE = """
import os, sys
print("ready")
sys.stdout.flush()
os.read(0, 1)
os.execv(sys.argv[1], sys.argv[1:])
"""

# Forks a child with the argument "fork".
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

# Execs itself forever: once as a Python, which ends at once, and then eight times as a shell.
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
    """Whether the profiler has begun to load its BPF program."""
    assert run.process.poll() is None, run.said()
    folder = "/proc/%d/fd" % run.pid
    for name in os.listdir(folder):
        try:
            # Not libbpf's file, which is open briefly.
            if os.readlink(os.path.join(folder, name)).startswith("anon_inode:bpf"):
                return True
        except FileNotFoundError:
            pass
    return False


def wait_loading(run):
    """Waits in smaller steps than wait_for()."""
    deadline = time.monotonic() + PATIENCE
    while not loads(run):
        assert time.monotonic() < deadline
        time.sleep(0.001)


class Starts:
    """Starts programs that exec another one after a line of input.  After a second line, that uses CPU time."""

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
    """Starts a run with PROGRAMS, which exec DELAY_MS after the profiler has begun to load."""
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
    """Each program has SHARE of its samples, under its new command line."""
    processes = by_process(run)
    for program in programs:
        samples = count(processes.get(program.pid, []), "after_exec")
        assert samples > SHARE * SECONDS * RATE, (program.pid, run.stderr)
    commands = {process_of(frames)[1] for frames, _ in run.stacks
                if any(frame.name == "after_exec" for frame in frames)}
    assert not any("before.py" in command for command in commands), commands
    # A sample may hit the exec itself.
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
    # The shell may have a few samples from before its exec.
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


def test_a_program_that_is_python_only_in_turns(any_python, target, profile, tmp_path):
    """If the process is not a Python just then, the profiler looks again before it reports that."""
    script = tmp_path / "in_turn.py"
    script.write_text(IN_TURN, encoding="ascii")
    program = target.start(["sh", "-c", 'echo ready; exec "$@"', "sh", any_python.path, script, SHELL_IN_TURN])
    for _ in range(5):
        run = profile.attempt("-p", program.pid, "-d", 0.1, "-f", "folded", "-o", "-")
        assert "it maps no file that contains CPython" not in run.stderr


# Maps a library as ld.so does, first the whole file.  Maps its data only a moment after another process opened it.
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


def test_a_library_that_is_still_loading_is_examined_again(target, profile, require, tmp_path):
    """The data of a library is mapped after its code."""
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
