# SPDX-License-Identifier: BSD-2-Clause
"""Qualified names in versions whose code objects have none: found where they are certain, never guessed."""

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
    # Two functions disagree on the name, no module leads to it, or only by another's name.
    "shared", "within", "of_local", "convert",
}

CALLERS_OF_SPIN_2_7 = {
    "Base.inherited", "Base.same", "Derived.same", "Base.static_method", "Base.class_method",
    "Base.value", "Base.decorated", "Base.decorated_alike", "Base.__private", "replacement",
    "Base.Nested.Deeper.innermost", "Old.of_old", "Old.static_of_old", "Old.class_of_old",
    "Old.decorated_of_old", "Old.__old_private", "Old.Nested.within_old", "Kind.of_kind",
    "OfKind.has_kind", "Cycle.around", "Part.method", "OldPart.old_method",
    # Two paths lead to these, or none that the code object confirms.
    "of_two", "of_two_old", "lent", "lent_wrapped", "of_stranger", "of_misnamed", "renamed",
    "foreign", "convert", "within", "of_local",
}

# A wrapper may carry the wrapped function's name. The frame has its own code object's.
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
            # In 2.7 the leaf is mostly a function that spin calls to read the time.
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
    """A module imported after the first search has qualified names in all its samples."""
    program = target(python, "qualified_later.py")
    run = profile.start("-p", program.pid, "-r", 499)
    run.wait_sampling()
    program.go()
    wait_used(1, program.pid)
    run.interrupt().load()
    assert run.count_name("Part.method") > 0
    assert run.count_name("method") == 0


@pytest.mark.pythons(which=lambda: without_qualified_names()[-1:])
def test_a_process_that_ends_during_the_search_costs_no_names(python, target, profile):
    """If a process ends during the search, another one with the same code provides the names."""
    run = profile.start("-a", "--comm", "qualified_large*", "-r", 499)
    run.wait_sampling()
    target(python, "qualified_large.py", 20000, 3).process.wait()
    wait_used(2, target(python, "qualified_large.py", 0, 0).pid)
    run.interrupt().load()
    assert run.count_name("Part.method") > 0
    assert run.count_name("method") == 0
