# SPDX-License-Identifier: BSD-2-Clause
"""Debian's Prometheus and promtool, fetched once into the tests' cache.  They are not installed,
because that would start a service."""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interpreters"))
import debian  # noqa: E402

SUITE = "bookworm"
PROGRAMS = "prometheus", "promtool"
FOLDER = os.path.join(debian.CACHE, "prometheus", SUITE)
RECIPE = " ".join(PROGRAMS)


def program_of(name):
    return os.path.join(FOLDER, "usr", "bin", name)


def is_there(_name=None):
    return debian.has_recipe(FOLDER, RECIPE)


def fetch(_name):
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=debian.CACHE) as folder:
        apt = debian.Apt(SUITE, tempfile.mkdtemp(dir=folder), debian.native_architecture())
        archive, root = os.path.join(folder, "archive"), os.path.join(folder, "root")
        os.makedirs(archive)
        os.makedirs(os.path.join(root, "usr", "bin"))
        debian.unpack(apt.alone(["prometheus"]), archive)
        for name in PROGRAMS:
            shutil.copy(os.path.join(archive, "usr", "bin", name),
                        os.path.join(root, "usr", "bin"))
        debian.write_recipe(root, RECIPE)
        debian.move_into_place(root, FOLDER, folder)


def provide():
    """Fetches it if it is missing.  Returns a debian.Outcome."""
    return debian.provide("prometheus", is_there, fetch)


class Prometheus:
    """A Prometheus that scrapes ADDRESS each second, with its data in FOLDER."""

    def __init__(self, folder, address, own_address):
        self.folder, self.address = str(folder), own_address
        with open(os.path.join(self.folder, "prometheus.yml"), "w", encoding="ascii") as config:
            config.write("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n"
                         "- {job_name: agent, static_configs: [{targets: ['%s']}]}\n" % address)
        self.process = subprocess.Popen(
            [program_of("prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=data",
             "--web.listen-address=" + own_address, "--log.level=warn"], cwd=self.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self):
        self.process.kill()
        self.process.wait()
