#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the table of offsets, table.txt, from the headers of CPython.

    generate.py [--check] [--compiler COMMAND]... [INCLUDE...]
    generate.py --header

INCLUDE is the folder of an interpreter's Python.h, for example /usr/include/python3.11; with none,
every folder on this machine that pyenv or the system's packages have is taken.  What offsetof()
says of these headers is read from the assembly that a compiler makes of it, so that it may be one
for another architecture; by default it is $CC, or cc.  A column holds for every architecture: with
several compilers all have to agree, and the column says which architectures they stand for.

The table has a column for each version and build, and these rows:

    headers          the version whose headers it is from
    x86-64, aarch64  whether they were compiled for it
    FIELD            the field's offset
    published:FIELD  from 3.13 on, where _Py_DebugOffsets publishes a field: the byte of its offset,
                     that of its struct's size, and how many bytes the field itself has

From 3.13 on there is a free-threaded build as well: the same headers with Py_GIL_DISABLED defined,
in a column with a "t".  Up to 3.7 a debug build lays out its objects in another way, and has a
column of its own: the same headers with Py_DEBUG, and "d".  From 3.8 on it has none, and what
Py_DEBUG makes of the headers has to agree with what they are without.  Where a micro version moved
fields, those before it have a column of their own: see EARLIER.

A field whose offset architectures do not agree about is in no column: it has to be a published one.

--check writes nothing and fails where a column differs from the headers.  --header prints the C that
the build makes of the table.
"""

import argparse
import collections
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "table.txt")

# The headers, each with the versions that have it.
HEADERS = """
2.7-      Python.h
2.7-      frameobject.h
2.7-3.10  longintrepr.h
3.7-3.7   internal/pystate.h
3.8-      internal/pycore_pystate.h
3.9-      internal/pycore_runtime.h
3.9-      internal/pycore_interp.h
3.11-     internal/pycore_dict.h
3.11-     internal/pycore_frame.h
3.11-     internal/pycore_object.h
3.14-     internal/pycore_interpframe.h
3.14-     internal/pycore_debug_offsets.h
"""

# letter: what is added to the name of its column; kind: its enum build; versions: those that have
# it; macro: what is defined for it, or None.
Build = collections.namedtuple("Build", "letter kind versions macro")

BUILDS = (
    Build("", "BUILD_WITH_GIL", "2.7-", None),
    Build("t", "BUILD_FREE_THREADED", "3.13-", "Py_GIL_DISABLED"),
    Build("d", "BUILD_TRACING", "2.7-3.7", "Py_DEBUG"),
)
DEBUG_MOVES_NOTHING_SINCE = (3, 8)

# What a compiler for it defines, and its name.
ARCHITECTURES = (("__x86_64__", "x86-64"), ("__aarch64__", "aarch64"))

# The rows that say where a column is from; the others have to agree with all headers of its version.
HEAD_ROWS = ["headers"] + [name for _, name in ARCHITECTURES]

# The last of a minor version's micro versions.
MICROS_ALL = 255

# The last micro versions before one that moved fields; their columns are called after them.  3.7.4
# aligned the garbage collector's heads by 16, and so what follows them in _PyRuntime.
EARLIER = ("3.7.3",)

# What CPython's sources declare and no installed header does, each with the versions it is so in.
PRIVATE = """
3.7-3.12  typedef struct _gil_runtime_state Gil;
3.6-3.10  struct _dictkeysobject { Py_ssize_t dk_refcnt, dk_size; void *dk_lookup; \
Py_ssize_t dk_usable, dk_nentries; char dk_indices[1]; };
"""

# A field, the versions that have it ("3.14t-": only their free-threaded builds), and its place: a
# struct's member, `sizeof` a struct, the number of the first bit of a `bit-field`, how far `before`
# an object the word is whose address a function gives, or a member whose offset is only `published`,
# as the size of a member before it varies (pthread_mutex_t has 8 bytes more on aarch64).
# These are the fields of struct offsets, in this order; PUBLISHED has the same order.
FIELDS = """
runtime_interpreters_head  3.7-       _PyRuntimeState        interpreters.head
interp_next                2.7-       PyInterpreterState     next
interp_tstate_head         2.7-3.10   PyInterpreterState     tstate_head
interp_tstate_head         3.11-      PyInterpreterState     threads.head
interp_modules             2.7-3.11   PyInterpreterState     modules
interp_modules             3.12-      PyInterpreterState     imports.modules
runtime_gil                3.7-3.11   _PyRuntimeState        ceval.gil
interp_gil                 3.12-      PyInterpreterState     ceval.gil
gil_last_holder            3.7-3.12   Gil                    last_holder
gil_locked                 3.7-3.12   Gil                    locked
interp_code_generation     3.14-      PyInterpreterState     published:_code_object_generation
interp_tlbc_generation     3.14t-     PyInterpreterState     published:tlbc_indices.tlbc_generation
tstate_next                2.7-       PyThreadState          next
tstate_interp              2.7-3.12   PyThreadState          interp
tstate_thread_id           2.7-       PyThreadState          thread_id
tstate_gilstate_counter    2.7-2.7    PyThreadState          gilstate_counter
tstate_frame               2.7-3.10   PyThreadState          frame
tstate_cframe              3.10-3.12  PyThreadState          cframe
tstate_root_cframe         3.10-3.12  PyThreadState          root_cframe
tstate_datastack_chunk     3.11-      PyThreadState          datastack_chunk
tstate_datastack_top       3.11-3.12  PyThreadState          datastack_top
tstate_current_frame       3.13-      PyThreadState          current_frame
tstate_base_frame          3.15-      PyThreadState          base_frame
tstate_status              3.12-      PyThreadState          _status
tstate_holds_gil           3.14-      PyThreadState          holds_gil
tstate_state               3.13t-     PyThreadState          state
tstate_whence              3.13-      PyThreadState          _whence
tstate_calls_left          3.12-      PyThreadState          py_recursion_remaining
tstate_calls_limit         3.12-      PyThreadState          py_recursion_limit
tstate_current_executor    3.14-      PyThreadState          current_executor
cframe_current_frame       3.11-3.12  _PyCFrame              current_frame
cframe_previous            3.10-3.10  CFrame                 previous
cframe_previous            3.11-3.12  _PyCFrame              previous
frame_previous             2.7-3.10   PyFrameObject          f_back
frame_previous             3.11-      _PyInterpreterFrame    previous
frame_code                 2.7-3.10   PyFrameObject          f_code
frame_code                 3.11-3.12  _PyInterpreterFrame    f_code
frame_code                 3.13-      _PyInterpreterFrame    f_executable
frame_lasti                2.7-3.10   PyFrameObject          f_lasti
frame_lasti                3.11-3.12  _PyInterpreterFrame    prev_instr
frame_lasti                3.13-      _PyInterpreterFrame    instr_ptr
frame_owner                3.11-      _PyInterpreterFrame    owner
frame_is_entry             3.11-3.11  _PyInterpreterFrame    is_entry
frame_tlbc_index           3.14t-     _PyInterpreterFrame    tlbc_index
frame_stacktop             3.12-3.12  _PyInterpreterFrame    stacktop
frame_localsplus           3.12-3.12  _PyInterpreterFrame    localsplus
generator_state            3.12-3.12  PyGenObject            gi_frame_state
generator_frame            3.12-3.12  PyGenObject            gi_iframe
code_filename              2.7-       PyCodeObject           co_filename
code_name                  2.7-       PyCodeObject           co_name
code_qualname              3.11-      PyCodeObject           co_qualname
code_firstlineno           2.7-       PyCodeObject           co_firstlineno
code_flags                 2.7-3.10   PyCodeObject           co_flags
code_linetable             2.7-3.9    PyCodeObject           co_lnotab
code_linetable             3.10-      PyCodeObject           co_linetable
code_code_adaptive         3.11-      PyCodeObject           co_code_adaptive
code_firsttraceable        3.11-      PyCodeObject           _co_firsttraceable
code_version               3.12-      PyCodeObject           co_version
code_tlbc                  3.14t-     PyCodeObject           co_tlbc
tlbc_size                  3.14t-     _PyCodeArray           size
tlbc_entries               3.14t-     _PyCodeArray           entries
object_type                2.7-       PyObject               ob_type
object_dict_before         3.11-3.11  _PyObject_ManagedDictPointer   before
object_dict_before         3.12-3.12  _PyObject_DictOrValuesPointer  before
object_dict_before         3.13-      _PyObject_ManagedDictPointer   before
object_values_before       3.11-3.11  _PyObject_ValuesPointer        before
object_values_before       3.12-3.12  _PyObject_DictOrValuesPointer  before
type_flags                 2.7-       PyTypeObject           tp_flags
type_basicsize             3.13-      PyTypeObject           tp_basicsize
type_dictoffset            2.7-       PyTypeObject           tp_dictoffset
type_cached_keys           3.11-      PyHeapTypeObject       ht_cached_keys
type_dict                  2.7-       PyTypeObject           tp_dict
type_qualname              3.6-       PyHeapTypeObject       ht_qualname
function_code              2.7-       PyFunctionObject       func_code
function_name              2.7-       PyFunctionObject       func_name
function_qualname          3.6-       PyFunctionObject       func_qualname
function_dict              2.7-       PyFunctionObject       func_dict
function_closure           2.7-       PyFunctionObject       func_closure
function_globals           2.7-2.7    PyFunctionObject       func_globals
class_name                 2.7-2.7    PyClassObject          cl_name
class_dict                 2.7-2.7    PyClassObject          cl_dict
dict_mask                  2.7-2.7    PyDictObject           ma_mask
dict_table                 2.7-2.7    PyDictObject           ma_table
dict_keys                  3.6-       PyDictObject           ma_keys
dict_values                3.6-       PyDictObject           ma_values
keys_size                  3.6-3.10   PyDictKeysObject       dk_size
keys_log2_index_bytes      3.11-      PyDictKeysObject       dk_log2_index_bytes
keys_kind                  3.11-      PyDictKeysObject       dk_kind
keys_nentries              3.6-       PyDictKeysObject       dk_nentries
keys_indices               3.6-       PyDictKeysObject       dk_indices
values_valid               3.13-      PyDictValues           valid
values_first               3.11-      PyDictValues           values
int_value                  2.7-2.7    PyIntObject            ob_ival
long_tag                   3.12-      PyLongObject           long_value.lv_tag
long_digits                2.7-3.11   PyLongObject           ob_digit
long_digits                3.12-      PyLongObject           long_value.ob_digit
varobject_size             2.7-       PyVarObject            ob_size
tuple_items                2.7-       PyTupleObject          ob_item
bytes_data                 2.7-2.7    PyStringObject         ob_sval
bytes_data                 3.6-       PyBytesObject          ob_sval
unicode_length             3.6-       PyASCIIObject          length
unicode_state              3.6-       PyASCIIObject          state
unicode_kind_bit           3.6-       PyASCIIObject          bit-field:state.kind
unicode_ascii_size         3.6-       PyASCIIObject          sizeof
unicode_compact_size       3.6-       PyCompactUnicodeObject sizeof
unicode_data_any           3.6-       PyUnicodeObject        data
"""

# A field, the versions whose _Py_DebugOffsets publish it, and under which name.
PUBLISHED = """
runtime_interpreters_head  3.13-  runtime_state      interpreters_head
interp_next                3.13-  interpreter_state  next
interp_tstate_head         3.13-  interpreter_state  threads_head
interp_modules             3.13-  interpreter_state  imports_modules
interp_gil                 3.13-  interpreter_state  ceval_gil
interp_code_generation     3.14-  interpreter_state  code_object_generation
interp_tlbc_generation     3.14t- interpreter_state  tlbc_generation
tstate_next                3.13-  thread_state       next
tstate_thread_id           3.13-  thread_state       thread_id
tstate_datastack_chunk     3.13-  thread_state       datastack_chunk
tstate_current_frame       3.13-  thread_state       current_frame
tstate_base_frame          3.15-  thread_state       base_frame
tstate_status              3.13-  thread_state       status
tstate_holds_gil           3.15-  thread_state       holds_gil
frame_previous             3.13-  interpreter_frame  previous
frame_code                 3.13-  interpreter_frame  executable
frame_lasti                3.13-  interpreter_frame  instr_ptr
frame_owner                3.13-  interpreter_frame  owner
frame_tlbc_index           3.14t- interpreter_frame  tlbc_index
code_filename              3.13-  code_object        filename
code_name                  3.13-  code_object        name
code_qualname              3.13-  code_object        qualname
code_firstlineno           3.13-  code_object        firstlineno
code_linetable             3.13-  code_object        linetable
code_code_adaptive         3.13-  code_object        co_code_adaptive
code_tlbc                  3.14t- code_object        co_tlbc
object_type                3.13-  pyobject           ob_type
type_flags                 3.13-  type_object        tp_flags
type_basicsize             3.15-  type_object        tp_basicsize
type_dictoffset            3.15-  type_object        tp_dictoffset
type_cached_keys           3.15-  heap_type_object   ht_cached_keys
dict_keys                  3.13-  dict_object        ma_keys
dict_values                3.13-  dict_object        ma_values
long_tag                   3.13-  long_object        lv_tag
long_digits                3.13-  long_object        ob_digit
varobject_size             3.13-  bytes_object       ob_size
tuple_items                3.13-  tuple_object       ob_item
bytes_data                 3.13-  bytes_object       ob_sval
unicode_length             3.13-  unicode_object     length
unicode_state              3.13-  unicode_object     state
unicode_ascii_size         3.13-  unicode_object     asciiobject_size
unicode_compact_size       3.15-  unicode_object     compactunicodeobject_size
"""

HEAD = """\
# SPDX-License-Identifier: BSD-2-Clause
# Where each version of CPython keeps what.  generate.py writes this from the headers, and says what
# the rows are; never edit it.  3.7.3 stands for 3.7.0 to 3.7.3, "t" for a free-threaded build, "d"
# for a debug build, "-" for what a version does not have, "?" for a field newer than the column.
#
# A new version, or one whose fields moved; docs/building.md has an example:
#     offsets/generate.py --compiler gcc --compiler "clang --target=aarch64-linux-gnu ..." INCLUDE
"""
ABSENT, UNKNOWN = "-", "?"


class Failure(Exception):
    """What to tell the user, in one line."""


def patchlevel(include):
    """The text of a folder's patchlevel.h."""
    try:
        with open(os.path.join(include, "patchlevel.h")) as file:
            return file.read()
    except OSError as error:
        raise Failure("%s: no CPython headers: %s" % (include, error.strerror))


def full_version_of(include):
    """"3.11.7", of a folder whose patchlevel.h says so; "3.15.0a1+", too."""
    return re.search(r'#define\s+PY_VERSION\s+"(.*)"', patchlevel(include)).group(1)


def version_of(include):
    """(3, 11, 7), of a folder whose patchlevel.h is that of 3.11.7."""
    text = patchlevel(include)
    return tuple(int(re.search(r"#define\s+PY_%s_VERSION\s+(\d+)" % part, text).group(1))
                 for part in ("MAJOR", "MINOR", "MICRO"))


def numbers(text):
    """(3, 11), of "3.11"."""
    return tuple(int(number) for number in text.split("."))


def is_in_range(version, text):
    """Whether a range, "3.7-3.10" or "3.11-", has VERSION."""
    first, last = text.split("-")
    return numbers(first) <= version[:2] and (not last or version[:2] <= numbers(last))


def builds_of(include, version):
    """The builds that these headers may be compiled for; a folder of one build alone, "python2.7_d",
    has its letter at its end."""
    named = re.search(r"python[\d.]+_?([td]*)m?$", include)
    builds = [build for build in BUILDS if is_in_range(version, build.versions)]
    alone = [build for build in builds if named and build.letter and build.letter in named.group(1)]
    return alone or builds


def rows_for(table, version, build, range_column):
    """The rows of TABLE whose range, "3.7-3.10", "3.11-" or "3.14t-", has VERSION; without it."""
    for line in table.strip().splitlines():
        row = line.split()
        versions = row.pop(range_column)
        if "t" in versions and build.letter != "t":
            continue
        if is_in_range(version, versions.replace("t", "")):
            yield row


def rows_of(version, build):
    """The table's rows that have an offset, or what is published, of VERSION."""
    return ([name for name, *_ in rows_for(FIELDS, version, build, 1)] +
            ["published:" + name for name, *_ in rows_for(PUBLISHED, version, build, 1)])


def name_of(version, build):
    """What the column of VERSION's BUILD is called."""
    earlier = (name for name in EARLIER
               if numbers(name)[:2] == version[:2] and numbers(name) >= version)
    return next(earlier, "%d.%d" % version[:2]) + build.letter


def named(column):
    """The last version that a column stands for, and its build."""
    version = column.rstrip("td")
    build, = (build for build in BUILDS if build.letter == column[len(version):])
    return (numbers(version) + (MICROS_ALL,))[:3], build


def read_table():
    """The table's columns, by name: their cells, by row."""
    with open(TABLE) as file:
        lines = [line.split() for line in file if not line.startswith("#")]
    (_, *names), *rows = lines
    return {name: {label: cells[i] for label, *cells in rows} for i, name in enumerate(names)}


def write_table(columns):
    """The table with COLUMNS."""
    def place_of(name):
        version, build = named(name)
        return version[:2], BUILDS.index(build), version

    names = sorted(columns, key=place_of)
    for name in names:
        for row in rows_of(*named(name)):
            columns[name].setdefault(row, UNKNOWN)
    fields = [line.split()[0] for line in FIELDS.strip().splitlines()]
    published = ["published:" + line.split()[0] for line in PUBLISHED.strip().splitlines()]
    rows = [["version"] + names]
    rows += [[row] + [columns[name].get(row, ABSENT) for name in names]
             for row in dict.fromkeys(HEAD_ROWS + fields + published)]
    # So wide that the name of another micro version moves no column.
    widths = [max(len("3.10.10"), *map(len, cells)) for cells in zip(*rows)]
    with open(TABLE, "w") as file:
        file.write(HEAD)
        file.writelines("  ".join(map(str.ljust, row, widths)).rstrip() + "\n" for row in rows)


def place(struct, member):
    """The C expressions of a field's offset and width."""
    if member == "sizeof":
        return "sizeof(%s)" % struct, "8"
    if member == "before":
        return "(OBJECT - (char *)%s((PyObject *)OBJECT))" % struct, "8"
    if member.startswith("bit-field:"):
        whole, part = member[len("bit-field:"):].split(".")
        return ("({ %s object; memset(&object, 0, sizeof(object)); object.%s.%s = 1; "
                "first_bit(&object.%s); })" % (struct, whole, part, whole)), "1"
    if member.startswith("published:"):
        member = member[len("published:"):]
    return "offsetof(%s, %s)" % (struct, member), "sizeof(((%s *)0)->%s)" % (struct, member)


def note(row, *values):
    """C that leaves a line in the assembly: a row, and constants, separated by slashes."""
    places = "/".join("%%c%d" % i for i in range(len(values)))
    return '\t__asm__ volatile(".ascii \\"->%s %s\\"" : : %s);' % (
        row, places, ", ".join('"i"(%s)' % value for value in values))


def program(version, build):
    """C whose assembly has a line for the architecture, and one for each value."""
    lines = ["#define Py_BUILD_CORE 1", "#include <stddef.h>", "#include <string.h>",
             "#define OBJECT ((char *)4096)"]
    lines += ['#include "%s"' % header for header, in rows_for(HEADERS, version, build, 0)]
    lines += [" ".join(words) for words in rows_for(PRIVATE, version, build, 0)]
    lines += ["#if defined(Py_GIL_DISABLED) != %d || defined(Py_TRACE_REFS) != %d"
              % (build.letter == "t", build.letter == "d"),
              "#error another build", "#endif",
              "static inline int first_bit(const void *state)", "{",
              "\treturn __builtin_ctz(*(const unsigned int *)state);", "}",
              "void offsets(void);", "void offsets(void)", "{"]
    for number, (macro, _) in enumerate(ARCHITECTURES):
        lines += ["#ifdef " + macro, note("architecture", number), "#endif"]
    places = {name: (member, place(struct, member))
              for name, struct, member in rows_for(FIELDS, version, build, 1)}
    lines += [note(name, offset) for name, (member, (offset, _)) in places.items()
              if not member.startswith("published:")]
    for name, struct, member in rows_for(PUBLISHED, version, build, 1):
        lines.append(note("published:" + name,
                          "offsetof(_Py_DebugOffsets, %s.%s)" % (struct, member),
                          "offsetof(_Py_DebugOffsets, %s.size)" % struct, places[name][1][1]))
    return "\n".join(lines + ["}", ""])


def measure(compiler, include, version, build, macros):
    """The compiler's architecture, and what the interpreter has in each row."""
    with tempfile.TemporaryDirectory() as folder:
        source, assembly = os.path.join(folder, "offsets.c"), os.path.join(folder, "offsets.s")
        with open(source, "w") as file:
            file.write(program(version, build))
        # Debian's pyconfig.h refers to one in a folder beside this one.
        command = shlex.split(compiler) + ["-w", "-O2", "-DNDEBUG", "-I", include, "-I",
                                           os.path.dirname(include), "-S", source, "-o", assembly]
        command += ["-D%s=1" % macro for macro in macros]
        compiled = subprocess.run(command, stderr=subprocess.PIPE, universal_newlines=True)
        if compiled.returncode != 0:
            raise Failure("%s: the headers do not compile:\n%s" % (include, compiled.stderr))
        with open(assembly) as file:
            found = dict(re.findall(r'"->(\S+) ([\d/]+)', file.read()))
    if "architecture" not in found:
        raise Failure("%s compiles for an architecture that is not known" % compiler)
    architecture = ARCHITECTURES[int(found.pop("architecture"))][1]
    return architecture, {row: found.get(row, ABSENT) for row in rows_of(version, build)}


def measure_all(compilers, include, version, build):
    """The same with every compiler, with and without Py_DEBUG where both have to agree: the
    architectures, and what all of them say."""
    macros = [build.macro] if build.macro else []
    variants = [macros]
    if version >= DEBUG_MOVES_NOTHING_SINCE:
        variants.append(macros + ["Py_DEBUG"])
    measured = [measure(compiler, include, version, build, variant)
                for compiler in compilers for variant in variants]
    agreed = measured[0][1]
    for architecture, cells in measured:
        differing = [row for row in cells if cells[row] != agreed[row]]
        if differing:
            raise Failure("%s: %s and %s do not agree: %s" % (
                include, measured[0][0],
                architecture if architecture != measured[0][0] else "a debug build",
                ", ".join("%s is %s or %s" % (row, agreed[row], cells[row]) for row in differing)))
    return [architecture for architecture, _ in measured], agreed


def columns_of(compilers, include):
    """The cells of each column that INCLUDE gives, by name."""
    include = os.path.abspath(include)
    version = version_of(include)
    for build in builds_of(include, version):
        architectures, cells = measure_all(compilers, include, version, build)
        cells["headers"] = full_version_of(include)
        cells.update((name, "yes" if name in architectures else ABSENT)
                     for _, name in ARCHITECTURES)
        yield name_of(version, build), cells


def differences(present, wanted):
    """Where a column's cells, or None, are not those of the headers."""
    if present is None:
        return ["missing"]
    rows = [row for row in {**present, **wanted} if row not in HEAD_ROWS]
    return ["%s is %s, not %s" % (row, wanted.get(row, ABSENT), present.get(row, UNKNOWN))
            for row in rows if wanted.get(row, ABSENT) != present.get(row, UNKNOWN)]


def struct_of(name, cells):
    """The initializer of a column's struct table, line by line."""
    version, build = named(name)
    rows = [(row, cell) for row, cell in cells.items() if row not in HEAD_ROWS]
    offsets = [".%s = %s," % (row, "OFFSET_ABSENT" if cell == ABSENT else cell)
               for row, cell in rows if ":" not in row]
    published = ["{ offsetof(struct offsets, %s), %s }," % (row.split(":")[1],
                                                            cell.replace("/", ", "))
                 for row, cell in rows if ":" in row and cell != ABSENT]
    return ["{ .major = %d, .minor = %d, .last_micro = %d, .build = %s," % (*version, build.kind),
            ".offsets = {", *offsets, "}, .published = {", *published, "} },"]


def header(columns):
    """C: the fields of struct offsets, the versions that have a column, and the struct tables."""
    names = [name for name in columns if name.rstrip("td") not in EARLIER]
    fields = [row for row in columns[names[0]] if row not in HEAD_ROWS and ":" not in row]
    tables = [line for name, cells in columns.items() for line in struct_of(name, cells)]
    return "\n".join(["/* From offsets/table.txt. */",
                      "#define OFFSET_FIELDS(X) " + " ".join("X(%s)" % field for field in fields),
                      '#define OFFSET_VERSIONS "%s"' % ", ".join(names),
                      " \\\n".join(["#define OFFSET_TABLES"] + tables)])


def find_includes():
    """The folders of headers on this machine whose version has a table."""
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = (glob.glob(os.path.join(pyenv, "versions", "*", "include", "python*")) +
             glob.glob("/usr/include/python*"))
    columns = read_table()
    return sorted(folder for folder in found
                  if re.search(r"/python(2\.7|3\.\d+[mt]?)$", folder) and
                  name_of(version_of(folder), BUILDS[0]) in columns)


def main():
    parser = argparse.ArgumentParser(description="The table of offsets from the headers of CPython.")
    parser.add_argument("--check", action="store_true",
                        help="write nothing; fail where a column differs")
    parser.add_argument("--header", action="store_true", help="print the C of the table")
    parser.add_argument("--compiler", action="append", metavar="COMMAND",
                        help="for the architecture that is wanted; several have to agree")
    parser.add_argument("include", nargs="*", help="folder of an interpreter's Python.h")
    arguments = parser.parse_args()
    compilers = arguments.compiler or [os.environ.get("CC", "cc")]
    columns = read_table()
    if arguments.header:
        print(header(columns))
        return 0
    failed = False
    for include in arguments.include or find_includes():
        for name, cells in columns_of(compilers, include):
            if not arguments.check:
                columns[name] = cells
            found = differences(columns.get(name), cells)
            failed = failed or bool(found)
            print("%s: %s: %s" % (include, name, "; ".join(found) or "agrees"))
    if not arguments.check:
        write_table(columns)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("generate.py: %s" % failure)
