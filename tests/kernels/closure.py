# SPDX-License-Identifier: BSD-2-Clause
"""closure.py ROOT PROGRAM...: copies into ROOT what this Python needs to run these programs.

That is what it has loaded after importing their imports: its executable, shared libraries and
modules, also compiled.  Runs on every Python from 2.7 on.
"""

import ast
import errno
import io
import os
import py_compile
import re
import shutil
import sys

MAPPED = re.compile(r"\S+ r-xp (?:\S+ ){3} *(/.*)\n")


def import_all(program):
    """Imports the imports of PROGRAM.  Of alternative modules, those that exist are imported."""
    with io.open(program, encoding="utf-8") as source:
        tree = ast.parse(source.read())
    for node in ast.walk(tree):
        names = [alias.name for alias in getattr(node, "names", ())]
        if isinstance(node, ast.ImportFrom):
            names = [node.module]
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name in names:
                try:
                    __import__(name)
                except ImportError:
                    pass


def place(root, path):
    """The place of PATH in ROOT, with links in its folder resolved."""
    folder = os.path.realpath(os.path.dirname(path))
    try:
        os.makedirs(root + folder)
    except OSError as reason:
        if reason.errno != errno.EEXIST:
            raise
    return os.path.join(root + folder, os.path.basename(path))


def copy(root, path):
    target = place(root, path)
    if not os.path.exists(target):
        shutil.copy2(path, target)


def copy_links(root, path):
    """Copies the links to PATH beside it, and the loader's name in executables, which is such a
    link."""
    for folder in {os.path.dirname(path), "/lib64", "/lib"}:
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            link = os.path.join(folder, name)
            if os.path.islink(link) and os.path.realpath(link) == path:
                target = place(root, link)
                if not os.path.lexists(target):
                    os.symlink(path, target)


def copy_module(root, path):
    """Copies a module.  PATH is its __file__, which in 2.7 may be the compiled one."""
    source = path[:-1] if path.endswith(".pyc") else path
    copy(root, source)
    if source.endswith(".py"):
        compiled = source + "c"
        if sys.version_info >= (3,):
            import importlib.util
            compiled = importlib.util.cache_from_source(source)
        py_compile.compile(source, place(root, compiled), source)


def main():
    root, programs = sys.argv[1], sys.argv[2:]
    sys.path[:0] = sorted({os.path.dirname(program) for program in programs})
    for program in programs:
        import_all(program)
    copy(root, sys.executable)
    with open("/proc/self/maps") as maps:
        mapped = set(MAPPED.findall(maps.read()))
    for path in mapped:
        copy(root, path)
        copy_links(root, path)
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if path and os.path.dirname(path) not in sys.path[:1]:
            copy_module(root, os.path.abspath(path))


main()
