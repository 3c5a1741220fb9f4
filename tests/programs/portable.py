# SPDX-License-Identifier: BSD-2-Clause
"""Replacements, for programs on versions from 2.7 on, of what old standard libraries lack."""

import ctypes
import sys
import sysconfig
import threading
import time

THREAD_CPU_TIME = 3  # Linux's CLOCK_THREAD_CPUTIME_ID


class Moment(ctypes.Structure):
    """A struct timespec."""
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


clock_gettime = ctypes.PyDLL(None).clock_gettime  # PyDLL keeps the GIL
now = Moment()


def measured_thread_time():
    """time.thread_time() before 3.7. All threads share `now`, under the GIL."""
    clock_gettime(THREAD_CPU_TIME, ctypes.byref(now))
    return now.seconds + now.nanoseconds * 1e-9


thread_time = getattr(time, "thread_time", measured_thread_time)
monotonic = getattr(time, "monotonic", time.time)


def version_and_build():
    """The version as the tests' C tools take it: its number, followed by "t" in a free-threaded build, and
    by "d" in a debug build with a different object layout."""
    tracing = sys.version_info < (3, 8) and hasattr(sys, "getobjects")
    return (str(sys.hexversion) + "t" * bool(sysconfig.get_config_var("Py_GIL_DISABLED")) +
            "d" * tracing)


def start_thread(function, *arguments, **options):
    """Starts a daemon thread. OPTIONS are Thread's."""
    thread = threading.Thread(target=function, args=arguments, **options)
    thread.daemon = True
    thread.start()
    return thread


def nested(depth, function, *arguments):
    """The result of FUNCTION, called below DEPTH calls of nested()."""
    return nested(depth - 1, function, *arguments) if depth else function(*arguments)


def renamed(code, name, filename=None, first_line=None):
    """CODE with another name, file name and first line. Up to 3.7 code objects have no replace()."""
    filename = code.co_filename if filename is None else filename
    first_line = code.co_firstlineno if first_line is None else first_line
    if hasattr(code, "co_qualname"):
        return code.replace(co_name=name, co_qualname=name, co_filename=filename,
                            co_firstlineno=first_line)
    if hasattr(code, "replace"):
        return code.replace(co_name=name, co_filename=filename, co_firstlineno=first_line)
    counts = [code.co_argcount]
    if sys.version_info >= (3,):
        counts.append(code.co_kwonlyargcount)
    return type(code)(*(counts + [
        code.co_nlocals, code.co_stacksize, code.co_flags, code.co_code, code.co_consts,
        code.co_names, code.co_varnames, filename, name, first_line, code.co_lnotab,
        code.co_freevars, code.co_cellvars]))
