# SPDX-License-Identifier: BSD-2-Clause
"""Puts the reports of `make prove PUBLISH=1` into the documents."""

import os
import re

DOCUMENTS = {"accuracy": ("docs/accuracy.md", ("truth", "lines", "interpreters", "kernels", "aarch64")),
             "performance": ("docs/performance.md", ("cost",))}


def publish(folder):
    """Renews each document's block with those of its parts that have a report in FOLDER."""
    for name, (path, parts) in DOCUMENTS.items():
        texts = []
        for part in parts:
            report = os.path.join(folder, part + ".md")
            if os.path.exists(report):
                with open(report, encoding="utf-8") as file:
                    texts.append("##" + file.read())
        if texts:
            renew(path, name, "\n".join(texts))


def renew(path, name, text):
    with open(path, encoding="utf-8") as file:
        old = file.read()
    block = r"(<!-- generated: prove %s -->\n).*?(<!-- end generated -->)" % name
    new, found = re.subn(block, lambda marks: marks[1] + "\n" + text + "\n" + marks[2], old,
                         flags=re.DOTALL)
    assert found == 1, "%s has no block for what `make prove` measures" % path
    with open(path, "w", encoding="utf-8") as file:
        file.write(new)
