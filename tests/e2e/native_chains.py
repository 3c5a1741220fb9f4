# SPDX-License-Identifier: BSD-2-Clause
"""The chains of calls between Python and C that native_chain.py makes, and its legal stacks.

A chain is a list of words, root first.  "c:chain_enter" is a function of CHAIN, the library of
native_chain.c.  "o:chain_pass" is a function of OTHER, the same source compiled with other flags.  The
other words are Python functions.
"""

import os
import subprocess

import pytest

from conftest import PROGRAMS

CHAIN, OTHER = "native_chain.so", "native_other.so"
OF_FILE = {CHAIN: "c:", OTHER: "o:"}
BUILD_ID = "0123456789abcdef0123456789abcdef01234567"
# Like musl and some code in assembly.
WITHOUT_UNWIND_DATA = ["-fno-asynchronous-unwind-tables", "-fno-exceptions", "-fomit-frame-pointer"]
LEVELS = 60

CHAINS = {name: ("<module> main " + chain).split() for name, chain in {
    "mixed": "mixed c:chain_enter mixed_middle c:chain_pass mixed_inner c:chain_spin",
    "back": "back c:chain_call_back back_callback back_inner c:chain_spin",
    "key": "key key_of c:chain_spin",
    "less": "less __lt__ c:chain_spin",
    "reducing": "reducing reduce_two c:chain_spin",
    "quick": "quick quick_compare c:chain_spin",
    "mapping": "mapping map_one c:chain_spin",
    "replacing": "replacing replace_match c:chain_spin",
    "consume": "consume produce c:chain_spin",
    "consume_by_c": "consume_by_c c:chain_enter produce_for_c c:chain_spin",
    "deep": "deep" + LEVELS * " c:chain_deep" + " deep_inner c:chain_spin",
    "signalled": "signalled c:chain_signal c:chain_handle handle c:chain_spin",
    "signalled_elsewhere": "signalled_elsewhere c:chain_signal_elsewhere c:chain_handle handle c:chain_spin",
    "raising": "raising on_raise c:chain_spin",
    "tasks": "tasks outer_task inner_task c:chain_enter innermost c:chain_spin",
    "reading": "reading c:chain_enter read c:chain_read",
    "broken": "broken c:chain_enter broken_middle o:chain_pass broken_inner c:chain_spin",
    "broken_leaf": "broken_leaf c:chain_enter broken_spin o:chain_spin",
    "scribbling": "scribbling c:chain_scribble c:chain_spin",
    "straying": "straying c:chain_stray",
    "threaded": "threaded c:chain_spin",
    "late": "late o:chain_enter late_inner c:chain_spin",
}.items()}
# Chains that return and whose frames all have unwind data.
PLAIN = [name for name in CHAINS if name not in ("broken", "broken_leaf", "scribbling", "straying", "threaded",
                                                 "late")]


def chains_of(python):
    return [name for name in PLAIN if name != "tasks" or python.version >= (3,)]


@pytest.fixture(scope="session")
def chain_library(require, tmp_path_factory):
    """chain_library(NAME, FLAG...): the path of native_chain.c's library, compiled with FLAGs."""
    built = {}

    def build(*what):
        if what not in built:
            name, *flags = what
            path = str(tmp_path_factory.mktemp("native") / name)
            subprocess.run([require("gcc"), "-O1", "-fasynchronous-unwind-tables", *flags, "-fPIC", "-shared",
                            "-pthread", "-Wl,--build-id=0x" + BUILD_ID, "-o", path,
                            os.path.join(PROGRAMS, "native_chain.c")], check=True)
            built[what] = path
        return built[what]
    return build


@pytest.fixture
def chain_command(chain_library):
    """chain_command(NAME...): the arguments with which a Python runs these chains in turn."""
    def command(*names):
        flags = WITHOUT_UNWIND_DATA if "broken" in names else []
        return [os.path.join(PROGRAMS, "native_chain.py"), chain_library(CHAIN), chain_library(OTHER, *flags),
                *names]
    return command


@pytest.fixture
def chains(target, chain_command):
    """chains(PYTHON, NAME...): a process of PYTHON that runs these chains in turn."""
    return lambda python, *names: target(python, *chain_command(*names))


def is_python(frame):
    return bool(frame.file) and frame.file.endswith((".py", ">"))


def is_reason(frame):
    return frame.label.startswith("[") and frame.label not in ("[anonymous]", "[JIT]", "[unknown code]")


def spell(frames):
    """The words of a stack.  Frames outside the program and its libraries are skipped."""
    words = []
    for frame in frames:
        if is_python(frame) and frame.file.startswith("native_chain"):
            words.append(frame.short)
        elif frame.file in OF_FILE and frame.name.startswith("chain_"):
            words.append(OF_FILE[frame.file] + frame.name)
    return words


def python_of(words):
    return [word for word in words if ":" not in word]


def is_beginning(words, chain):
    return words == chain[:len(words)]


def is_within(words, chain):
    """Whether WORDS is a subsequence of CHAIN."""
    rest = iter(chain)
    return all(word in rest for word in words)


def belongs_to(words, chain):
    """Whether the stack's Python functions begin CHAIN's, and all its words appear in CHAIN in order."""
    return is_beginning(python_of(words), python_of(chain)) and is_within(words, chain)


def lacks_native(words):
    """Whether a stack lacks C functions of its chain."""
    assert any(belongs_to(words, chain) for chain in CHAINS.values()), words
    return not any(is_beginning(words, chain) for chain in CHAINS.values())


def check_stacks(run):
    """Each stack is a prefix of a chain, except that the ledger may account for missing C frames."""
    lacking = sum(count for frames, count in run.stacks
                  if not is_reason(frames[0]) and lacks_native(spell(frames)))
    assert lacking <= run.ledger["events"] - run.ledger["native"]["whole"], run.ledger


def check_native_ledger(ledger):
    native = ledger["native"]
    assert sum(native.values()) == ledger["events"], ledger
    assert native["resumed"] <= ledger["resumptions"], ledger


def seen(runs):
    """The words of all stacks of RUNS."""
    return {tuple(spell(frames)) for run in runs for frames, _ in run.stacks}


def have(runs, *names):
    """Whether RUNS have each of these chains whole."""
    return {tuple(CHAINS[name]) for name in names} <= seen(runs)
