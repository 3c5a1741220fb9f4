# SPDX-License-Identifier: BSD-2-Clause
"""wsgi.py: an application that uses the CPU for each request, and answers with its PID."""

import os
import time

import uwsgi


def burn():
    until = time.thread_time() + 0.02
    while time.thread_time() < until:
        pass


def application(_environ, start_response):
    burn()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode("ascii")]


def say_ready():
    """The last worker prints it with os.write: print() goes to uWSGI's log."""
    if uwsgi.worker_id() == uwsgi.numproc:
        os.write(1, b"ready\n")


uwsgi.post_fork_hook = say_ready
