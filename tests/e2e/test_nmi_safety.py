# SPDX-License-Identifier: BSD-2-Clause
"""A hardware event may interrupt anything, even the kernel with its locks held: BPF programs on perf
events may only call helpers that are safe in an NMI.

SAFE lists them with the reason.  A new helper has to be added to it before it is used.
"""

import collections
import json
import os
import re
import subprocess

from conftest import descriptors

SAFE = {
    "bpf_map_lookup_elem": "goes through lists that are protected by RCU; takes no lock",
    "bpf_get_smp_processor_id": "reads a variable of this CPU",
    "bpf_get_prandom_u32": "works on numbers of this CPU alone, without a lock; where an NMI comes "
                           "between, what it leaves is as random",
    "bpf_get_current_pid_tgid": "reads two fields of the current task",
    "bpf_get_current_comm": "copies a field of the current task",
    "bpf_get_current_task": "returns a pointer",
    "bpf_get_current_task_btf": "returns a pointer",
    "bpf_get_stack": "walks the kernel's stack as perf does for its own samples, NMIs included",
    "bpf_task_pt_regs": "computes where the task's registers are",
    "bpf_probe_read_kernel": "copies with page faults disabled; where it would fault, it fails",
    "bpf_probe_read_user": "likewise, and fails where the interrupted code is switching memory",
    "bpf_ringbuf_output": "in an NMI only tries for the lock, fails without it, and defers the wake-up",
    "bpf_ktime_get_ns": "reads the clock that the kernel has for NMIs, without a lock",
    "bpf_ringbuf_query": "reads two counters of the ring buffer",
}

# The functions that the kernel calls for a look-up, by the type of the map, where it does not inline
# the look-up.
LOOKUPS = {"__htab_map_lookup_elem": "as bpf_map_lookup_elem",
           "htab_map_lookup_elem": "as bpf_map_lookup_elem",
           "array_map_lookup_elem": "computes an address",
           "array_of_map_lookup_elem": "likewise, and reads a pointer"}

# Helpers that have another name in the kernel.
OWN_NAMES = {"bpf_user_rnd_u32": "as bpf_get_prandom_u32", "bpf_get_stack_pe": "as bpf_get_stack"}

# The types of maps that the programs use.  They call a helper to write only for the ring buffer.  Hash
# tables that allocate or evict upon a write are not allowed.
MAP_TYPES = {"array", "array_of_maps", "hash", "ringbuf"}

HELPERS = "/usr/include/bpf/bpf_helper_defs.h"
CALL = re.compile(r"\(85\) call ([^#\s]+)(?:#(\S+))?")
# A function's address and name, the name that a call refers to, or a call: its opcode; its kind: 0 a helper,
# 1 another function of the program, 2 a kernel function; and its number.  A call of a static function has the
# number of the instruction before that function in .text.
RAW = re.compile(r"^([0-9a-f]+) <(?!LBB)(\w+)>:$|R_BPF_64_32\s+(\S+)$|\t85 ([0-9a-f])0 00 00 ((?:[0-9a-f]{2}\s){4})",
                 re.MULTILINE)
# The programs that run on perf events.
SAMPLES = ("sample", "sample_1", "sample_2", "sample_3")


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, universal_newlines=True, check=True,
                          timeout=120).stdout


def test_loaded_programs(any_python, target, profile, require):
    """The programs as the kernel has rewritten them."""
    bpftool = require("bpftool")
    run_ = profile.start("-n", "-k", "-p", target(any_python, "busy.py").pid)
    run_.wait_sampling()
    found = list(descriptors(run_.pid))
    programs = {part["prog_id"] for part in found if part.get("link_type") == "perf"}
    # Programs that follow processes run in process context, where they may call more helpers.
    following = {part["prog_id"] for part in found if part.get("link_type") in ("tracing", "raw_tracepoint")}
    assert programs and following and not programs & following
    assert programs | following == {part["prog_id"] for part in found if "prog_id" in part}
    called, used = collections.Counter(), set()
    for program in programs:
        used.update(json.loads(run(bpftool, "-j", "prog", "show", "id", program))["map_ids"])
        for name, function in CALL.findall(run(bpftool, "prog", "dump", "xlated", "id", program)):
            if not function.startswith("bpf_prog_"):
                called[name] += 1
    maps = {json.loads(run(bpftool, "-j", "map", "show", "id", str(number)))["type"] for number in used}
    run_.process.kill()
    assert called.keys() <= SAFE.keys() | LOOKUPS.keys() | OWN_NAMES.keys()
    assert called["bpf_probe_read_user"] and called["bpf_ringbuf_output"]
    assert maps == MAP_TYPES


def test_programs_for_any_kernel(binary, require):
    """Includes code that this kernel does not use."""
    with open(HELPERS, encoding="utf-8") as file:
        names = {int(number): name for name, number in
                 re.findall(r"\(\*(?:const )?(bpf_\w+)\)\(.*?\) = \(void \*\) ?(\d+);",
                            file.read(), re.DOTALL)}
    code = run(require("llvm-objdump"), "-d", "-r", "--section=?perf_event", "--section=.text",
               os.path.join(os.path.dirname(binary), "pybpfprof.bpf.o"))
    parts = RAW.findall(code)
    places = {int(address, 16) // 8: name for address, name, *_ in parts if name and name not in SAMPLES}
    helpers, callees = collections.defaultdict(set), collections.defaultdict(set)
    function = called = None
    for _, begun, callee, kind, number in parts:
        assert kind in ("", "0", "1"), "a kernel function is called"
        function = begun or function
        if kind:
            called = int.from_bytes(bytes.fromhex(number), "little")
        if callee:
            callees[function].add(places[called + 1] if callee == ".text" else callee)
        elif kind == "0":
            helpers[function].add(names[called])
    reached, left = set(), set(SAMPLES)
    while left:
        one = left.pop()
        assert one in helpers or one in callees, one
        reached.add(one)
        left |= callees[one] - reached
    assert len(reached) > 10 and "sample_thread" in reached
    assert {name for one in reached for name in helpers[one]} == SAFE.keys()
