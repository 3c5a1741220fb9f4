# SPDX-License-Identifier: BSD-2-Clause
"""The short names of files: no two files of a profile share one."""

import json

from legal import runs_until

FILES = {"etl/daily/run.py", "etl/hourly/run.py", "orders/utils.py", "billing/utils.py",
         "shop/v1/views.py", "shop/v2/views.py"}


def test_no_two_files_share_a_name(any_python, target, profile, tmp_path):
    program = target(any_python, "same_names.py", tmp_path)
    files = set()

    def all_are_seen(runs):
        files.update(frame.file for frames, _ in runs[-1].stacks for frame in frames
                     if frame.name == "spin")
        return len(files) == len(FILES)

    runs_until(profile, all_are_seen, "-p", program.pid, "-r", 499, cpu=0.3)
    assert files == FILES


def test_speedscope_and_text_tell_files_apart(any_python, target, profile, tmp_path):
    program = target(any_python, "same_names.py", tmp_path)
    output = str(tmp_path / "profile.json")

    def shown(*arguments):
        profile.start("-p", program.pid, "-r", 499, "-o", output, *arguments, files=False, cpu=0.3,
                      of=[program.pid]).finish()
        with open(output, encoding="utf-8") as file:
            return file.read()

    for frame in json.loads(shown("-f", "speedscope"))["shared"]["frames"]:
        assert frame["name"] != "spin" or frame["file"] in FILES
    names = [line.split("spin (")[1].rstrip(")").rpartition(":")[0]
             for line in shown("-f", "text").splitlines() if "spin (" in line]
    assert names and len(set(names)) == len(names) and set(names) <= FILES
