# SPDX-License-Identifier: BSD-2-Clause
"""The generated offset tables, against the headers of every interpreter here."""

import os
import subprocess
import sys

from conftest import ROOT, missing

GENERATE = os.path.join(ROOT, "offsets", "generate.py")


def run_generate(*arguments):
    return subprocess.run([sys.executable, GENERATE, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True)


def test_tables_agree_with_the_headers(python):
    if not os.path.exists(os.path.join(python.include, "Python.h")):
        missing("headers of Python " + python.name)
    run = run_generate("--check", python.include)
    assert run.returncode == 0, run.stdout
    assert "cpython-3.%d.h: agrees" % python.version[1] in run.stdout


def test_no_headers_are_told(tmp_path):
    run = run_generate("--check", str(tmp_path))
    assert run.returncode == 1
    assert run.stdout.count("\n") == 1 and str(tmp_path) in run.stdout
