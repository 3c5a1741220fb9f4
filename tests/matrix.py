# SPDX-License-Identifier: BSD-2-Clause
"""The table of the properties that the tests proved on each interpreter.

The marker `proves` of a test names the property.  The fixture `figure` adds a number.
tests/e2e/conftest.py adds the interpreter.
"""

import re

WORDS = {"failed": "FAILED", "skipped": "skipped", "passed": "yes"}


def cell(results):
    """One outcome for all results of a property: the worst one."""
    if not results:
        return "-"
    for outcome in "failed", "skipped":
        if any(result.outcome == outcome for result in results):
            return WORDS[outcome]
    figures = [result.properties["figure"] for result in results if "figure" in result.properties]
    return ", ".join(figures) or WORDS["passed"]


def version(interpreter):
    return [int(number) for number in re.findall(r"\d+", interpreter)[:3]], interpreter


def markdown(rows):
    """A table; the first row is its head."""
    rows = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    rows.insert(1, ["-" * width for width in widths])
    return "".join("| %s |\n" % " | ".join(map(str.ljust, row, widths)) for row in rows)


def table(results):
    """Markdown with a row for each interpreter; "" if no test has proved anything."""
    by_place = {}
    columns = []
    for result in results:
        interpreter, proved = map(result.properties.get, ("python", "proves"))
        if interpreter and proved:
            by_place.setdefault(interpreter, {}).setdefault(proved, []).append(result)
            if proved not in columns:
                columns.append(proved)
    if not by_place:
        return ""
    rows = [["CPython", *columns]]
    for interpreter in sorted(by_place, key=version):
        found = by_place[interpreter]
        rows.append([interpreter, *(cell(found.get(column)) for column in columns)])
    return markdown(rows)
