# SPDX-License-Identifier: BSD-2-Clause
"""An agent that runs as a container's first process, as in a deployment."""

import os
import signal
import subprocess

from conftest import PATIENCE
from containers import Container, wait_for


def samples(pid):
    """Whether a process has perf events open."""
    folder = "/proc/%d/fd" % pid
    try:
        return any("perf_event" in os.readlink(os.path.join(folder, name))
                   for name in os.listdir(folder))
    except FileNotFoundError:
        return False


class ContainedAgent(Container):
    def begin(self):
        """Starts it and waits until it samples."""
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        universal_newlines=True)
        wait_for(lambda: self.has_ended() or os.path.exists(os.path.join(self.folder, "pid")))
        wait_for(lambda: self.has_ended() or samples(self.pid))
        assert not self.has_ended(), self.process.communicate()[1]

    def has_ended(self):
        return self.process.poll() is not None

    def stop(self):
        """Ends it as a service manager does.  Returns its exit status and its messages."""
        os.kill(self.pid, signal.SIGTERM)
        said = self.process.communicate(timeout=PATIENCE)[1]
        return self.process.returncode, said

    def end(self):
        super().end()
        self.process.wait(PATIENCE)
        self.process.stderr.close()
