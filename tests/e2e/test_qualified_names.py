# SPDX-License-Identifier: BSD-2-Clause
"""Qualified names of versions whose code objects have none: what can be told, and nothing else."""

import collections

import pytest

from conftest import wait_used
from legal import runs_until
from pythons import own_and_fetched_pythons, with_debug_pythons

CALLERS_OF_SPIN = {
    "Base.inherited", "Base.same", "Derived.same", "Base.static_method", "Base.class_method",
    "Base.value", "Base.decorated", "Base.decorated_alike", "Base.decorated_plainly",
    "Base.__private", "replacement", "Base.Nested.Deeper.innermost", "Elsewhere.renamed",
    "Cycle.around",
    # Two functions that do not agree; what no module leads to, or leads to by another's name.
    "shared", "within", "of_local", "convert",
}

CALLERS_OF_SPIN_2_7 = {
    "Base.inherited", "Base.same", "Derived.same", "Base.static_method", "Base.class_method",
    "Base.value", "Base.decorated", "Base.decorated_alike", "Base.__private", "replacement",
    "Base.Nested.Deeper.innermost", "Old.of_old", "Old.static_of_old", "Old.class_of_old",
    "Old.decorated_of_old", "Old.__old_private", "Old.Nested.within_old", "Kind.of_kind",
    "OfKind.has_kind", "Cycle.around", "Part.method", "OldPart.old_method",
    # What two paths lead to, or none that it confirms.
    "of_two", "of_two_old", "lent", "lent_wrapped", "of_stranger", "of_misnamed", "renamed",
    "foreign", "convert", "within", "of_local",
}

# Wrappers have another's name, but their own code object's is told.
CALLERS = {
    "Base.decorated": "wrapper",
    "Base.decorated_alike": "decorated_alike",
    "Base.decorated_plainly": "plainly.<locals>.plain_wrapper",
    "Base.__private": "Base.call_private",
    "of_local": "enclosing",
}
CALLERS_2_7 = {
    "Base.decorated": "wrapper",
    "Base.decorated_alike": "decorated_alike",
    "Base.__private": "Base.call_private",
    "Old.decorated_of_old": "wrapper",
    "Old.__old_private": "Old.call_private",
    "of_local": "enclosing",
}


def without_qualified_names():
    return [python for python in own_and_fetched_pythons() if python.version < (3, 11)]


def without_qualified_names_and_debug():
    return [python for python in with_debug_pythons(without_qualified_names())
            if python.version < (3, 11)]


@pytest.mark.proves("qualified names")
@pytest.mark.pythons(which=without_qualified_names_and_debug)
def test_names_are_exact(python, target, profile):
    is_2 = python.version < (3,)
    program = target(python, "qualified_2_7.py" if is_2 else "qualified.py")
    wanted = CALLERS_OF_SPIN_2_7 if is_2 else CALLERS_OF_SPIN
    callers = collections.defaultdict(set)

    def all_are_seen(runs):
        for frames, _ in runs[-1].stacks:
            names = [frame.name for frame in frames]
            # In 2.7 it mostly stands in another one, which tells it the time.
            if "spin" in names:
                spin = names.index("spin")
                callers[names[spin - 1]].add(names[spin - 2])
        return wanted <= set(callers)

    runs_until(profile, all_are_seen, "-p", program.pid, "-r", 999, cpu=1)
    assert set(callers) == wanted
    for name, caller in (CALLERS_2_7 if is_2 else CALLERS).items():
        assert callers[name] == {caller}


GENERATED = {"Point.__new__", "Size.__new__", "Made.spin", "Other.spin", "Made.__repr__"}
BY_DATACLASS = {"Order.__init__", "Outer.Invoice.__init__", "Order.__eq__", "Outer.Invoice.__eq__"}


@pytest.mark.proves("qualified names")
@pytest.mark.pythons(since=(3, 6))
def test_generated_methods_have_their_class(python, target, profile):
    program = target(python, "generated.py")
    wanted = GENERATED | (BY_DATACLASS if python.version >= (3, 7) else set())

    def seen(run):
        return {frame.name for frames, _ in run.stacks for frame in frames if frame.file == "<string>"}

    runs = runs_until(profile, lambda runs: wanted <= seen(runs[-1]), "-p", program.pid, "-r", 999, cpu=1)
    assert seen(runs[-1]) == wanted


@pytest.mark.proves("qualified names")
@pytest.mark.pythons(which=without_qualified_names)
def test_functions_of_a_module_that_comes_later(python, target, profile):
    """What was not there at the first search has its name in all samples."""
    program = target(python, "qualified_later.py")
    run = profile.start("-p", program.pid, "-r", 499)
    run.wait_sampling()
    program.go()
    wait_used(1, program.pid)
    run.interrupt().load()
    assert run.count_name("Part.method") > 0
    assert run.count_name("method") == 0


@pytest.mark.pythons(which=lambda: without_qualified_names()[-1:])
def test_who_ends_while_it_is_searched_takes_no_names_away(python, target, profile):
    """What it had no time to tell, another process with the same code does."""
    run = profile.start("-a", "--comm", "qualified_large*", "-r", 499)
    run.wait_sampling()
    target(python, "qualified_large.py", 20000, 3).process.wait()
    wait_used(2, target(python, "qualified_large.py", 0, 0).pid)
    run.interrupt().load()
    assert run.count_name("Part.method") > 0
    assert run.count_name("method") == 0
