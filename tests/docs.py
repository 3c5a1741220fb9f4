#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the documents: a part of `make lint`.

    tests/docs.py           prints FILE:LINE: PROBLEM for each problem; exits 1 if there are any
    tests/docs.py --write   renews the generated blocks first

A generated block stands between `<!-- generated: KIND -->` and `<!-- end generated -->`, in the manual page
between `.\\" generated: KIND` and `.\\" end generated`.  KINDS generates its text.  This script leaves the
blocks of PROVED alone: `make prove PUBLISH=1` writes them.
"""

import functools
import io
import os
import pathlib
import re
import subprocess
import sys
import tokenize

import rooms

TOP = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("PYBPFPROF", TOP / os.environ.get("OUTPUT", ".output") / "pybpfprof"))
README, CONTRIBUTING, MANUAL_PAGE = TOP / "README.md", TOP / "CONTRIBUTING.md", TOP / "deploy/pybpfprof.1"
GUIDES = [README, *sorted((TOP / "docs").glob("*.md")), TOP / "SECURITY.md"]
DOCUMENTS = [*GUIDES, TOP / "CHANGELOG.md", CONTRIBUTING]
SOURCES = ("bpf", "deploy", "offsets", "tests", "user")
VERBS = ("record", "agent", "report", "check", "events")
PROVED = tuple(f"prove {part}" for part in ("truth", "lines", "interpreters", "events", "waiting", "kernels", "aarch64",
                                           "performance"))

README_LINES, README_BYTES, SENTENCE_WORDS = 150, 12 * 1024, 35
PHRASES_HEADING = "## Refused phrases"

STRING = r'"(?:\\.|[^"\\\n])*"'
# A comment, a character constant, or adjacent string literals, which C joins.
C_TOKEN = re.compile(rf"//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])+'|{STRING}(?:\s*{STRING})*", re.S)
BLOCK = re.compile(r'^(?:<!--|\.\\") generated: ([\w -]+?)(?: -->)?\n(.*?)'
                   r'^(?:<!-- end generated -->|\.\\" end generated)$', re.M | re.S)


def where(path, text, match):
    return f"{path.relative_to(TOP)}:{text.count(chr(10), 0, match.start()) + 1}"


def blank(match):
    """The same number of lines, all empty."""
    return "\n" * match[0].count("\n")


def joined(strings):
    """Adjacent string literals as one, with the same number of lines."""
    return re.sub(r'(?<!\\)"\s*"', blank, strings)


def c_code(path):
    """The C file without comments, with each string on one line and PREFIX expanded."""
    text = path.read_text()
    if prefix := re.search(r'^#define PREFIX ("\w*")', text, re.M):
        text = re.sub(r"\bPREFIX\b", prefix[1], text)
    return C_TOKEN.sub(lambda match: "" if match[0][0] == "/" else joined(match[0]).replace("\n", ""), text)


def table(head, rows):
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n"
                   for line in [head, ["---"] * len(head), *rows])


@functools.cache
def help_of(verb):
    return subprocess.run([PROGRAM, verb, "--help"], check=True, capture_output=True, text=True).stdout


def names_and_texts(path, macro):
    body = re.search(rf"#define {macro}\(X\)(.*)", c_code(TOP / path).replace("\\\n", ""))[1]
    return [(f"`{name}`", text) for name, text in re.findall(r'X\(\w+,\s*"([^"]*)",\s*"([^"]*)"\)', body)]


def outcomes_block():
    return table(["outcome", "frame in the profile"], [
        (name, f"`{text}`" if text[0] == "[" else text)
        for name, text in names_and_texts("bpf/pybpfprof.h", "OUTCOMES")])


def metrics_block():
    """The metrics of every file: those passed to a function, and those in a format string."""
    found = {}
    for text in map(c_code, sorted((TOP / "user").glob("*/*.c"))):
        if "# HELP " not in text:
            continue
        common = match[1] if (match := re.search(r"# HELP (\w*)%s", text)) else ""
        for name, kind, meaning in re.findall(
                r'\w\(\s*file,\s*"(\w+)",\s*(?:"(counter|gauge)",\s*)?"([^"]*)"', text):
            found[common + name] = kind or "counter", meaning
        for name, meaning, kind in re.findall(r"# HELP (\w+) ([^%]+?)\\n# TYPE \1 (\w+)\\n", text):
            found[name] = kind, meaning
    return table(["metric", "type", "meaning"], [(f"`{name}`", *found[name]) for name in sorted(found)])


def dependencies_block():
    lines = re.search(r"<<'END'\n(.*?)^END$", (TOP / "deploy/packages.sh").read_text(), re.M | re.S)[1]
    return table(["set", "Debian package", "what it does"], [
        (of, f"`{package}`", why) for of, package, _, why in
        (line.split(None, 3) for line in lines.splitlines())])


KINDS = {
    "outcomes": outcomes_block,
    "native-outcomes": lambda: table(
        ["outcome", "the native part of the sample"], names_and_texts("bpf/unwind.h", "NATIVE_OUTCOMES")),
    "push-outcomes": lambda: table(
        ["outcome", "meaning"], names_and_texts("user/push/outcomes.h", "PUSH_OUTCOMES")),
    "metrics": metrics_block,
    "rooms": lambda: "".join(f"- `{pathlib.Path('user') / room}/`: {what}\n" for room, what in rooms.ROOMS.items()),
    "dependencies": dependencies_block,
} | {f"help {verb}": lambda verb=verb: f"```\n{help_of(verb)}```\n" for verb in VERBS}


def in_manual_page(block):
    """A ```-block in the markup of the manual page."""
    lines = block.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").splitlines()[1:-1]
    return "\n".join([".EX", *("\\&" * line.startswith(".") + line for line in lines), ".EE", ""])


def renewed(path, complaints):
    """The text of PATH with its blocks up to date.  Adds a complaint for each stale or unknown block."""
    def renew(match):
        kind, block = match[1], match[2]
        if kind in KINDS:
            block = in_manual_page(KINDS[kind]()) if path == MANUAL_PAGE else KINDS[kind]()
        elif kind not in PROVED:
            complaints.append(f"{where(path, text, match)}: there is no such block: {kind}")
        if block != match[2]:
            complaints.append(f"{where(path, text, match)}: stale: {kind}; run tests/docs.py --write")
        return text[match.start():match.start(2)] + block + text[match.end(2):match.end()]

    text = path.read_text()
    return BLOCK.sub(renew, text)


def prose(path):
    """The text of PATH without code, comments and --help."""
    text = BLOCK.sub(lambda match: blank(match) if match[1].startswith("help") else match[0], path.read_text())
    text = re.sub(r"^( *)(```+).*?^ *\2$", blank, text, flags=re.M | re.S)
    return re.sub(r"<!--.*?-->", blank, text, flags=re.S)


# The start of a list item; in --help, also of an option, a line of two columns, or a command.
ITEM = r"\s*(?:[-*+]|\d+\.) "
HELP_ITEM = r"\s{0,6}-|\s{0,6}\S+(?: \S+)*\s{2,}\S|Usage:|\s+(?:sudo )?pybpfprof "


def pieces(text, item=ITEM):
    """Each (line, text) of a paragraph, list item, heading or table cell."""
    start, words = 1, []
    for number, line in enumerate(text.split("\n") + [""], 1):
        alone = line.lstrip().startswith(("|", "#"))
        if words and (alone or not line.strip() or re.match(item, line)):
            yield start, " ".join(words)
            words = []
        if alone:
            yield from ((number, cell) for cell in re.split(r"(?<!\\)\|", line))
        elif line.strip():
            start = start if words else number
            words.append(line.strip())


def long_sentences(at, text):
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "code", text))
    for sentence in re.split(r"(?<=[.!?])[\"')*]*\s+", plain):
        if (count := sum(any(map(str.isalnum, word)) for word in sentence.split())) > SENTENCE_WORDS:
            yield f"{at}: a sentence of {count} words: {' '.join(sentence.split()[:8])} ..."


def refused_phrases():
    section = CONTRIBUTING.read_text().partition(PHRASES_HEADING + "\n")[2].partition("\n## ")[0]
    phrases = [re.escape(phrase).replace(r"\ ", r"\s+") for phrase in re.findall(r"^- `([^`]+)`", section, re.M)]
    return re.compile("|".join(rf"(?<!\w){phrase}(?!\w)" for phrase in phrases) or "(?!)", re.I)


def c_words(text):
    """The comments and strings of the C text, each on its line."""
    found, at = [], 0
    for match in C_TOKEN.finditer(text):
        found.append("\n" * text.count("\n", at, match.start()))
        if match[0][0] == "/":
            found.append(re.sub(r"^\s*\*|^/[/*]|\*/$", "", match[0], flags=re.M))
        else:
            found.append(f";{joined(match[0][1:-1])};" if match[0][0] == '"' else blank(match))
        at = match.end()
    return "".join(found)


def python_words(text):
    """The comments and strings of the Python text, each on its line."""
    found, line = [], 1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            found.append("\n" * (token.start[0] - line))
            found.append(token.string.lstrip("#") if token.type == tokenize.COMMENT else f";{token.string};")
            line = token.end[0]
    return "".join(found)


def sources():
    """(path, text) of the comments, messages and pages of the program and its tests."""
    for folder in SOURCES:
        for path in sorted((TOP / folder).rglob("*.[ch]")):
            yield path, c_words(path.read_text())
        for path in sorted((TOP / folder).rglob("*.py")):
            yield path, python_words(path.read_text())
        for path in sorted(path for ending in ("js", "html", "css") for path in (TOP / folder).rglob("*." + ending)):
            yield path, re.sub(r";(?=\s*else\b)", "", path.read_text())


@functools.cache
def anchors(path):
    found = []
    for heading in re.findall(r"^#+ +(.*?)\s*$", prose(path), re.M):
        slug = re.sub(r"\]\([^)]*\)|[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.append(slug if slug not in found else f"{slug}-{found.count(slug)}")
    return found


def broken_links(path):
    text = re.sub(r"`[^`\n]*`", "", prose(path))
    for match in re.finditer(r"\]\(\s*(?!\w+:)([^)\s#]*)#?([^)\s]*)\s*\)", text):
        target = (path.parent / match[1]).resolve() if match[1] else path
        if not target.exists() or (match[2] and match[2] not in anchors(target)):
            yield f"{where(path, text, match)}: a broken link: {match[0][2:-1]}"


def check(complaints):
    phrases = refused_phrases()
    for path in (*GUIDES, MANUAL_PAGE):
        renewed(path, complaints)
    have = {match[1] for path in GUIDES for match in BLOCK.finditer(path.read_text())}
    complaints += [f"docs/: no such block: {kind}" for kind in (*KINDS, *PROVED) if kind not in have]
    lines, size = README.read_text().count("\n"), README.stat().st_size
    if lines > README_LINES or size > README_BYTES:
        complaints.append(f"README.md:1: {lines} lines of {README_LINES}, {size} bytes of {README_BYTES}")
    for path in GUIDES:
        for line, piece in pieces(prose(path)):
            complaints += long_sentences(f"{path.relative_to(TOP)}:{line}", piece)
    for verb in VERBS:
        for line, piece in pieces(help_of(verb), HELP_ITEM):
            complaints += long_sentences(f"{verb} --help:{line}", piece)
    said = [(path, re.sub(rf"`[^`\n]*`|^{PHRASES_HEADING}\n.*?(?=^## |\Z)", blank, prose(path), flags=re.M | re.S))
            for path in DOCUMENTS]
    for path, text in (*said, *sources()):
        complaints += [f"{where(path, text, match)}: a refused phrase: {' '.join(match[0].split())}"
                       for match in phrases.finditer(text)]
    for path in DOCUMENTS:
        complaints += broken_links(path)


def main():
    complaints = [f"{path}: not there" for path in (*DOCUMENTS, MANUAL_PAGE, PROGRAM) if not path.exists()]
    if not complaints:
        for path in (*GUIDES, MANUAL_PAGE) if sys.argv[1:] == ["--write"] else ():
            path.write_text(renewed(path, []))
        check(complaints)
    return "\n".join(complaints) or 0


if __name__ == "__main__":
    sys.exit(main())
