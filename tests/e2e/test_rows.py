# SPDX-License-Identifier: BSD-2-Clause
"""Compares unwind rows with readelf's interpretation of the same call frame information."""

import bisect
import glob
import os
import re
import subprocess
import sys

import pytest

X86 = "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15".split()
ARM64 = ["x%d" % number for number in range(31)] + ["sp"]

ENTRY = re.compile(r'^([0-9a-f]{8}) [0-9a-f]{16} [0-9a-f]{8} '
                   r'(?:CIE "(\w*)" .*|FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+))$')

LIBRARIES = "/usr/lib/%s-linux-gnu/" % os.uname().machine
FILES = [os.path.realpath(sys.executable)] + [
    path for name in ["libc.so.6", "libstdc++.so.6", "libcrypto.so.3", "libgcc_s.so.1", "libffi.so.8"]
    for path in glob.glob(LIBRARIES + name)]

# KINDS are its rows that the comparison with readelf could not tell from others.
ASSEMBLY = """
    .text
    .globl  first
first:
    .cfi_startproc
    nop
    .cfi_def_cfa_offset 16
    .cfi_offset rbp, -16
    nop
    .cfi_def_cfa_register rbp
    nop
    .cfi_remember_state
    .cfi_def_cfa rsp, 8
    .cfi_restore rbp
    nop
    .cfi_restore_state
    .skip 300
    .cfi_adjust_cfa_offset 8
    nop
    .cfi_def_cfa rsp, 65536
    .skip 70000
    .cfi_same_value rbp
    .cfi_def_cfa r10, 0
    nop
    .cfi_rel_offset rbp, 8
    nop
    .cfi_endproc
    .skip 16
second:
    .cfi_startproc
    .cfi_escape 0x0f, 3, 0x76, 0x78, 0x06           # CFA: what lies at rbp - 8
    .cfi_escape 0x10, 6, 2, 0x76, 0                 # rbp: at rbp
    nop
    .cfi_escape 0x0f, 5, 0x77, 8, 0x06, 0x23, 0x10  # CFA: what lies at rsp + 8, + 16
    nop
    .cfi_escape 0x0f, 3, 0x77, 8, 0x1f              # CFA: -(rsp + 8)
    nop
    .cfi_escape 0x2e, 8
    .cfi_def_cfa rsp, 8
    .cfi_val_offset rbp, -8
    nop
    .cfi_register rip, rdi
    nop
    .cfi_undefined rip
    nop
    .cfi_endproc
third:
    .cfi_startproc
    .cfi_signal_frame
    nop
    .cfi_endproc
fourth:
    .cfi_startproc simple
    .cfi_def_cfa rsp, 24
    .cfi_offset rip, -24
    nop
    .cfi_endproc
"""
KINDS = {"cfa=*(6-8)+0 fp=fp+0 ra=cfa-8", "cfa=*(7+8)+16 fp=fp+0 ra=cfa-8", "unsupported", "signal",
         "cfa=7+8 fp=lost ra=cfa-8", "cfa=7+8 fp=lost ra=r5", "end", "none", "cfa=10+0 fp=same ra=cfa-8",
         "cfa=7+24 fp=same ra=cfa-24"}

ARM64_ASSEMBLY = """
    .text
first:
    .cfi_startproc
    nop
    .cfi_negate_ra_state
    nop
    .cfi_def_cfa_offset 48
    .cfi_offset x29, -48
    .cfi_offset x30, -40
    nop
    .cfi_def_cfa_register x29
    nop
    .cfi_restore x29
    .cfi_restore x30
    .cfi_def_cfa sp, 16
    .cfi_offset x30, -16
    nop
    .cfi_def_cfa x12, 16
    nop
    .cfi_endproc
    nop
second:
    .cfi_startproc
    .cfi_undefined x30
    nop
    .cfi_endproc
"""
ARM64_KINDS = {"cfa=31+0 fp=same ra=r30", "cfa=31+48 fp=cfa-48 ra=cfa-40", "cfa=29+48 fp=cfa-48 ra=cfa-40",
               "cfa=31+16 fp=same ra=cfa-16", "cfa=12+16 fp=same ra=cfa-16", "end", "none"}


class Names:
    """The register names of a file's machine."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.is_arm64 = file.read(20)[18:] == b"\xb7\x00"
        self.all = ARM64 if self.is_arm64 else X86
        self.fp = "x29" if self.is_arm64 else "rbp"


def wanted_ra(value, names):
    if value[0] == "c":
        return {"ra=cfa" + value[1:]}
    if value == "u" and names.is_arm64:
        return {"ra=r30", "end"}
    return {"end"} if value == "u" else {"ra=" + value}


def wanted_fp(value):
    if value in "us":
        return {"fp=same"}
    if value[0] == "c":
        return {"fp=cfa" + value[1:]}
    return {"fp=lost", "fp=fp"} if value == "exp" else {"fp=lost"}


def agrees(row, columns, augmentation, names):
    """Whether a row of dump_rows agrees with readelf's, as far as readelf shows it."""
    if "S" in augmentation:
        return row == "signal"
    ras = wanted_ra(columns["ra"], names)
    if row == "end" or ras == {"end"}:
        return row == "end" and "end" in ras
    if columns["CFA"] == "exp" and re.match(r"plt 1[0-5]$|unsupported$", row):
        return True
    cfa, fp, ra = row.split()
    if columns["CFA"] == "exp":
        is_cfa = "*" in cfa
    else:
        register, offset = re.match(r"(\w+)([+-]\d+)$", columns["CFA"]).groups()
        is_cfa = cfa == "cfa=%d%s" % (names.all.index(register), offset)
    return is_cfa and re.sub(r"fp=fp.*", "fp=fp", fp) in wanted_fp(columns.get(names.fp, "u")) and ra in ras


def readelf_functions(path):
    """readelf's functions, by address: (begin, end, augmentation, [(address, {column: value})])."""
    text = subprocess.check_output(["readelf", "--debug-dump=frames-interp,no-follow-links", path],
                                   stderr=subprocess.DEVNULL, universal_newlines=True)
    text = text.split("Contents of the .eh_frame section:")[1].split("Contents of the")[0]
    shared, functions, rows, heads = {}, [], None, None
    for line in text.split("\n"):
        entry, words = ENTRY.match(line), re.sub(r"(r\d+) \(\w+\)", r"\1", line).split()
        if entry:
            rows, (place, augmentation, cie, begin, end) = [], entry.groups()
            if cie:
                functions.append((int(begin, 16), int(end, 16), cie, rows))
            else:
                shared[place] = augmentation, rows
        elif words[:1] == ["LOC"]:
            heads = words[1:]
        elif len(words) > 1 and heads and re.match("[0-9a-f]{16}$", words[0]):
            rows.append((int(words[0], 16), dict(zip(heads, words[1:]))))
    return [(begin, end, shared[cie][0], own or [(begin, shared[cie][1][0][1])])
            for begin, end, cie, own in sorted(functions, key=lambda function: function[0])]


def dumped_rows(tool, path):
    lines = subprocess.check_output([tool("dump_rows"), path], universal_newlines=True).splitlines()
    return [(int(address, 16), row) for address, row in (line.split(" ", 1) for line in lines)]


def compare(tool, path):
    """Asserts that dump_rows and readelf agree on each address. Returns the rows."""
    names, rows, known, last_end = Names(path), dumped_rows(tool, path), set(), None
    addresses = [address for address, _ in rows]
    assert addresses == sorted(set(addresses))

    def row_at(address):
        return rows[bisect.bisect_right(addresses, address) - 1][1]

    for begin, end, augmentation, own in readelf_functions(path):
        assert last_end is None or begin >= last_end, hex(begin)
        if last_end not in (None, begin):
            assert row_at(last_end) == row_at(begin - 1) == "none", hex(begin)
        assert own[0][0] == begin
        for address, columns in own:
            if address < end:
                assert agrees(row_at(address), columns, augmentation, names), (hex(address), columns,
                                                                               row_at(address))
        known |= {address for address, _ in own} | {end}
        last_end = end
    assert set(addresses) <= known
    assert rows[-1] == (last_end, "none")
    return rows


def build(tmp_path, compiler, assembly):
    source, library = tmp_path / "frames.S", tmp_path / "frames.so"
    source.write_text(assembly)
    subprocess.check_call([compiler, "-shared", "-nostdlib", "-Wl,--eh-frame-hdr", "-o", str(library),
                           str(source)])
    return str(library)


@pytest.mark.parametrize("path", FILES, ids=[os.path.basename(path) for path in FILES])
def test_file(tool, path):
    assert len(compare(tool, path)) > 100


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x86-64's assembly")
def test_assembly(tool, tmp_path):
    rows = compare(tool, build(tmp_path, "gcc", ASSEMBLY))
    assert KINDS <= {row for _, row in rows}


@pytest.mark.prove("aarch64")
def test_assembly_of_arm64(tool, require, tmp_path):
    rows = compare(tool, build(tmp_path, require("aarch64-linux-gnu-gcc"), ARM64_ASSEMBLY))
    assert {row for _, row in rows} == ARM64_KINDS
