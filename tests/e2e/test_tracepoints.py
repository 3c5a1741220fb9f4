# SPDX-License-Identifier: BSD-2-Clause
"""Kernel tracepoints as events: each call is attributed to its line, with its count or field."""

import json
import os
import subprocess

import pytest

from answering import answering, ask, record_while_asked
from folded import stacks

WRITES, DATAGRAMS = 100, 50
BYTES, PAYLOAD = 7, 13
HEADERS = 14 + 20 + 8  # Ethernet (also on the loopback device), IP, UDP
WRITE_LINE, FAIL_LINE, SEND_LINE, RECEIVE_LINE = 10, 13, 18, 19
SCRIPT = """import os, socket, sys
null = os.open(os.devnull, os.O_WRONLY)
full = os.open('/dev/full', os.O_WRONLY)
inbox = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
inbox.bind(('127.0.0.1', 0))
outbox = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
outbox.connect(inbox.getsockname())
def write():
    for _ in range(%d):
        os.write(null, b'x' * %d)
    for _ in range(%d):
        try:
            os.write(full, b'x')
        except OSError:
            pass
def send():
    for _ in range(%d):
        outbox.send(b'x' * %d)
        inbox.recv(100)
for line in sys.stdin:
    write()
    send()
    sum(range(200000))
    print('done')
    sys.stdout.flush()
""" % (WRITES, BYTES, WRITES, DATAGRAMS, PAYLOAD)


@pytest.fixture
def caller(any_python, tmp_path):
    """A program that writes and sends on each request."""
    with answering(any_python, tmp_path / "caller.py", SCRIPT) as process:
        ask(process, 1)
        yield process


@pytest.fixture
def record(profile, caller, tmp_path):
    """record(ARGUMENT...): (path of the profile, ledger, run) of one request, or of TIMES requests."""
    def run(*arguments, format_name="folded", times=1):
        return record_while_asked(profile, tmp_path, caller, times, format_name, *arguments)
    return run


def on_line(path, line):
    return sum(count for frames, count in stacks(path) if frames[-1].line == line)


@pytest.mark.parametrize("event, line, value", [
    ("syscalls:sys_enter_write", WRITE_LINE, WRITES),
    ("syscalls:sys_enter_write", FAIL_LINE, WRITES),
    ("syscalls:sys_enter_write:count", WRITE_LINE, WRITES * BYTES),
    ("syscalls:sys_enter_write:arg2", FAIL_LINE, WRITES),
    ("syscalls:sys_exit_write", FAIL_LINE, WRITES),
    ("syscalls:sys_exit_write:ret", WRITE_LINE, WRITES * BYTES),
    ("syscalls:sys_exit_write:ret", FAIL_LINE, 0),  # a call that failed has written nothing
    ("syscalls:sys_exit_recvfrom:ret", RECEIVE_LINE, DATAGRAMS * PAYLOAD),
    ("net:net_dev_queue", SEND_LINE, DATAGRAMS),
    ("net:net_dev_queue:len", SEND_LINE, DATAGRAMS * (HEADERS + PAYLOAD)),
    ("net:net_dev_queue:skb.len", SEND_LINE, DATAGRAMS * (HEADERS + PAYLOAD)),
])
def test_each_call_is_on_its_line(record, event, line, value):
    path, ledger, run = record("-e", event)
    assert on_line(path, line) == value
    counted = ledger["per_event"][event]
    assert counted["unit"] == "count" and counted["period"] == 1
    assert counted["events"] == counted["samples"] + counted["lost"]
    assert counted["value"] == sum(count for _, count in stacks(path))
    assert counted["busy"] == 0
    said = "while system calls are sampled, those of all processes take a little longer"
    assert (said in run.stderr) == event.startswith("syscalls:")


def test_a_tracepoint_is_sampled_beside_the_clock(record):
    path, ledger, _ = record("-e", "cpu-clock", "-e", "net:net_dev_queue", "-r", "999", times=30,
                             format_name="speedscope")
    with open(path, encoding="utf-8") as file:
        profiles = json.load(file)["profiles"]
    assert {each["name"].split(":")[0] for each in profiles} == {"cpu-clock", "net"}
    clock, sent = (ledger["per_event"][name] for name in ("cpu-clock", "net:net_dev_queue"))
    assert sent["events"] == sent["value"] + sent["lost"] == 30 * DATAGRAMS
    for event in clock, sent:
        assert event["events"] == event["samples"] + event["lost"]
        assert event["samples"] == event["python"] + event["no_python"] + sum(event["errors"].values())


def test_four_events_at_once(record):
    names = ["syscalls:sys_enter_write:count", "syscalls:sys_exit_write:ret", "net:net_dev_queue", "cpu-clock"]
    _, ledger, _ = record(*(word for name in names for word in ("-e", name)), "--show", names[0])
    values = [ledger["per_event"][name]["value"] for name in names]
    assert values[0] - values[1] >= WRITES and values[2] >= DATAGRAMS


def test_pprof_has_its_type(record, require, tmp_path):
    path, ledger, _ = record("-e", "net:net_dev_queue:len", format_name="pprof")
    tool = [require("go"), "tool", "pprof", "-raw", path]
    text = subprocess.run(tool, env=dict(os.environ, PPROF_TMPDIR=str(tmp_path)), check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode("utf-8")
    assert "net_net_dev_queue_len/count" in text


def test_kernel_frames_begin_at_the_tracepoint(record):
    path, _, _ = record("-k", "-e", "net:net_dev_queue")
    sent = [[frame.name for frame in frames] for frames, _ in stacks(path)
            if any(frame.line == SEND_LINE for frame in frames)]
    assert sent and not any("bpf_" in name for names in sent for name in names)
    assert all(any("udp_sendmsg" in name for name in names) for names in sent), sent


def test_samples_in_an_interrupt_have_that_reason(record):
    """The kernel delivers loopback datagrams in a softirq, and BPF does not know which thread they belong to."""
    event = "net:netif_receive_skb"
    path, ledger, _ = record("-n", "-e", event, "--any-context", times=20)
    assert {tuple(frame.name for frame in frames) for frames, _ in stacks(path)} == {("[in an interrupt]",)}
    counted = ledger["per_event"][event]
    assert counted["errors"]["in_interrupt"] == counted["samples"] > 0


@pytest.mark.parametrize("arguments, said", [
    (("net:netif_receive_skb",), "net:netif_receive_skb may be called for another thread than the one that is running: "
                                 "--any-context samples it nevertheless"),
    (("net:net_dev_queu",), "this kernel has no tracepoint 'net_dev_queu': did you mean net_dev_queue?"),
    (("net:sched_switch",), "sched_switch is a tracepoint of sched: use sched:sched_switch"),
    (("net:net_dev_queue:lne",), "net_dev_queue has no field 'lne': did you mean skb.len?"),
    (("net:net_dev_queue:elephants",), "net_dev_queue has no field 'elephants'; it has skb."),
    (("net:net_dev_queue:dev",), "net_dev_queue has no field 'dev'"),  # a pointer
    (("net:net_dev_queue:5",), "net:net_dev_queue has no count: each call is a sample"),
    (("net:net_dev_queue@5",), "net:net_dev_queue cannot be sampled at a rate: use net:net_dev_queue"),
    (("lock:contention_end", "--any-context"), "lock:contention_end cannot be sampled: sampling takes locks itself"),
    (("syscalls:sys_enter_wrte",), "there is no system call 'wrte': did you mean write?"),
    (("syscalls:write",), "use sys_enter_CALL or sys_exit_CALL, such as sys_enter_write"),
    (("syscalls:sys_enter_write:ret",), "the system call write has no argument 'ret': use fd, buf, count, or arg0 to arg5"),
    (("syscalls:sys_enter_getpid:pid",), "the system call getpid has no argument 'pid': use arg0 to arg5"),
    (("syscalls:sys_exit_write:count",), "the end of the system call write has no field 'count': use ret"),
    (("syscalls:sys_exit_write", "-e", "syscalls:sys_exit_write"), "-e names syscalls:sys_exit_write twice"),
])
def test_invalid_events_are_refused(profile, arguments, said):
    run = profile.attempt("-p", os.getpid(), "-e", *arguments)
    assert run.status == 2 and said in run.stderr


def test_without_symbols_only_system_calls_are_sampled(profile, caller, hiding_symbols):
    def attempt(event):
        return profile.start("-p", caller.pid, "-e", event, "-f", "folded", "-o", os.devnull,
                             prefix=hiding_symbols, files=False)
    run = attempt("net:net_dev_queue").finish()
    assert run.status == 4
    assert "calls of this tracepoint in interrupts cannot be told apart: the kernel hides its symbols" in run.stderr
    run = attempt("syscalls:sys_enter_write")
    run.wait_sampling()
    ask(caller, 1)
    assert run.interrupt().finish().status == 0, run.stderr


def test_without_btf_tracepoints_are_refused(profile, caller):
    hidden = ["unshare", "--mount", "sh", "-e", "-c", 'mount -t tmpfs none /sys/kernel/btf; exec "$@"', "sh"]
    for words in ("-p", caller.pid, "-e", "net:net_dev_queue"), ("events", "net:net_dev_queue"):
        run = profile.start(*words, prefix=hidden, files=False).finish()
        assert run.status == 4 and "this kernel has no BTF" in run.stderr


def fields(profile, event):
    run = profile.attempt("events", event)
    assert run.status == 0, run.stderr
    lines = run.stdout.decode("utf-8").splitlines()
    assert lines[0].split() == ["FIELD", "TYPE"]
    return dict(line.rsplit("  ", 1) for line in lines[1:])


def test_fields_are_listed(profile):
    sent = {name.strip(): kind.strip() for name, kind in fields(profile, "net:net_dev_queue").items()}
    assert sent["skb.len"] == "unsigned int" and "skb.dev" not in sent
    assert "arg2, count" in {name.strip() for name in fields(profile, "syscalls:sys_enter_write")}
    assert [name.strip() for name in fields(profile, "syscalls:sys_exit_write")] == ["ret"]
    # Fields are listed even for a tracepoint that is not sampled by default.
    assert fields(profile, "net:netif_receive_skb")


def test_events_without_fields_are_reported(profile):
    for name, said in (("page-faults", "page-faults is no tracepoint"), ("net:nothing", "this kernel has no tracepoint"),
                       ("elephants", "'elephants' is no known event")):
        run = profile.attempt("events", name)
        assert run.status == 2 and said in run.stderr
