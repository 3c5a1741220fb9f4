# SPDX-License-Identifier: BSD-2-Clause
"""CPython's headers on this machine: from the tests' cache, pyenv and the system."""

import glob
import os

from pythons import debian, pyenv_root


def find_headers(minor):
    """The folder of Python.h of any 3.MINOR with internal headers, or None."""
    name = "python3.%d" % minor
    places = [os.path.join(debian.headers_of("*"), "usr", "include", name),
              os.path.join(pyenv_root(), "versions", "*", "include", name),
              os.path.join("/usr/include", name)]
    found = [path for place in places for path in sorted(glob.glob(place))
             if os.path.exists(os.path.join(path, "internal", "pycore_runtime.h"))]
    return found[0] if found else None


# Fields to insert: the header, the beginning of a line, and its replacement.
MOVES = (
    ("cpython/pystate.h", "struct _ts {", "struct _ts { void *made_up[3];"),
    ("internal/pycore_interpframe_structs.h", "struct _PyInterpreterFrame {",
     "struct _PyInterpreterFrame { void *made_up[2];"),
    ("internal/pycore_interp_structs.h", "struct _is {", "struct _is { void *made_up[5];"),
    ("cpython/unicodeobject.h", "    Py_ssize_t length; ", "    Py_ssize_t made_up, length; "),
    ("cpython/code.h", "    PyObject_VAR_HEAD ", "    PyObject_VAR_HEAD void *made_up; "),
)


def replace(folder, header, old, new):
    path = os.path.join(folder, header)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert old in text, "%s has no %r" % (path, old)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new, 1))


def move_fields(folder):
    """Moves fields in the headers in FOLDER, as a new release might."""
    for move in MOVES:
        replace(folder, *move)


def make_next_version(folder, minor):
    """Turns the headers of 3.MINOR in FOLDER into those of 3.(MINOR + 1), with fields moved."""
    number = "#define PY_MINOR_VERSION        %d"
    move_fields(folder)
    replace(folder, "patchlevel.h", number % minor, number % (minor + 1))
