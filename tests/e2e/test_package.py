# SPDX-License-Identifier: BSD-2-Clause
"""Builds the package with `make deb` and installs it with apt in a minimal Debian."""

import glob
import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT
from debian_root import copy, provide, run_in
from deploy_tools import BUILD_TIMEOUT_S

DEB = os.path.join(ROOT, "deploy", "deb.sh")
MANUAL = os.path.join(ROOT, "deploy", "pybpfprof.1")
CHANGELOG = os.path.join(ROOT, "deploy", "debian", "changelog")
CONFIG, UNIT = "/etc/pybpfprof/agent.yaml", "/usr/lib/systemd/system/pybpfprof-agent.service"
SERVICE = os.path.basename(UNIT)
ENABLED = "/etc/systemd/system/multi-user.target.wants/" + SERVICE
KNOWN_ENABLED = "/var/lib/systemd/deb-systemd-helper-enabled/%s.dsh-also" % SERVICE
# A stub that logs its arguments, one call per line.
SYSTEMCTL, TOLD = "#!/bin/sh\necho \"$@\" >>/tmp/told\n", "/tmp/told"

pytestmark = [pytest.mark.timeout(BUILD_TIMEOUT_S), pytest.mark.prove("deploy")]


def suite():
    """This machine's Debian release. The package is built against its libraries."""
    with open("/etc/os-release", encoding="utf-8") as release:
        found = re.search(r"^VERSION_CODENAME=(\w+)$", release.read(), re.MULTILINE)
    return found[1] if found else pytest.skip("no Debian here")


def make(binary, version, folder, **variables):
    folder.mkdir(exist_ok=True)
    subprocess.run([DEB, binary, version, str(folder)], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env=dict(os.environ, **variables))
    path, = glob.glob("%s/pybpfprof_%s_*.deb" % (folder, version))
    return path


def version_of(binary):
    return subprocess.check_output([binary, "--version"]).decode().split()[1]


@pytest.fixture(scope="module")
def root(require, tmp_path_factory):
    """A Debian root with current package lists."""
    require("dpkg-shlibdeps")
    path = str(tmp_path_factory.mktemp("package") / "root")
    copy(provide(suite(), require), path)
    run_in(path, "apt-get -qq update")
    return path


@pytest.fixture
def apt(root, binary, tmp_path):
    """apt(ARGUMENT...) runs apt-get non-interactively in the root, where /tmp has versions 1 and 2 of the package."""
    for version in "1", "2":
        shutil.copy(make(binary, version, tmp_path / version), root + "/tmp/%s.deb" % version)

    def run(*words):
        return run_in(root, "DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends "
                            "-o Dpkg::Options::=--force-confold " + " ".join(words))
    yield run
    run_in(root, "dpkg --purge pybpfprof")


def owned(root):
    """The package's paths that still exist."""
    return [path for path in (CONFIG, UNIT, "/usr/bin/pybpfprof", "/usr/share/doc/pybpfprof",
                              "/usr/share/man/man1/pybpfprof.1.gz", ENABLED, KNOWN_ENABLED,
                              "/var/lib/pybpfprof") if os.path.lexists(root + path)]


def test_make_deb(require, binary):
    require("dpkg-shlibdeps")
    subprocess.run(["make", "-s", "deb"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    version = version_of(binary)
    made = glob.glob(os.path.join(ROOT, ".output", "pybpfprof_%s_*.deb" % version))
    assert len(made) == 1
    assert subprocess.check_output(["dpkg-deb", "-f", made[0], "Version"]).decode().strip() == version
    assert subprocess.check_output(["dpkg-parsechangelog", "-l", CHANGELOG, "-S", "Version"]
                                   ).decode().strip() == version


def files_below(folder):
    return sorted(os.path.relpath(os.path.join(path, name), folder)
                  for path, _, names in os.walk(folder) for name in names)


def paths_in(unit):
    """The unit's command, and the absolute paths in it."""
    with open(unit, encoding="utf-8") as file:
        command = re.search("^ExecStart=(.*)$", file.read(), re.MULTILINE)[1].split()
    return command, [word for word in command if word.startswith("/")]


@pytest.mark.parametrize("is_changed", [False, True])
def test_make_install(tmp_path, is_changed):
    """The unit starts the installed binary. A changed configuration survives reinstall and uninstall."""
    def run_make(what):
        subprocess.run(["make", "-s", what, "PREFIX=/opt/tools", "DESTDIR=%s" % tmp_path], cwd=ROOT, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    run_make("install")
    assert files_below(tmp_path) == [
        CONFIG[1:], "opt/tools/bin/pybpfprof", "opt/tools/lib/systemd/system/" + SERVICE,
        "opt/tools/share/man/man1/pybpfprof.1"]
    _, paths = paths_in("%s/opt/tools/lib/systemd/system/%s" % (tmp_path, SERVICE))
    assert paths == ["/opt/tools/bin/pybpfprof", CONFIG]
    if is_changed:
        with open(str(tmp_path) + CONFIG, "a", encoding="utf-8") as file:
            file.write("with-pid: true\n")
        run_make("install")
        with open(str(tmp_path) + CONFIG, encoding="utf-8") as file:
            assert "with-pid: true" in file.read()
    run_make("uninstall")
    assert files_below(tmp_path) == [CONFIG[1:]] * is_changed


def test_manual_page(require, binary):
    """The manual lists the commands and the exit statuses that --help lists."""
    shown = subprocess.run([require("man"), "--warnings", "-l", MANUAL], check=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, universal_newlines=True,
                           env=dict(os.environ, LC_ALL="C", MANWIDTH="120")).stdout
    assert "warning" not in shown, shown
    helps = [subprocess.check_output([binary, *command, "--help"], universal_newlines=True)
             for command in ([], ["check"], ["agent"], ["report"])]
    usage = re.search("^Usage: (.*?)\n\n", helps[0], re.MULTILINE | re.DOTALL)[1]
    synopsis = re.search("\nSYNOPSIS\n(.*?)\n\n", shown, re.DOTALL)[1]
    assert [line.strip() for line in synopsis.splitlines()] == \
        [re.split("  +", line.strip())[0] for line in usage.splitlines() if "pybpfprof " in line]
    told = {status for text in helps
            for status in re.findall(r"\b\d\b", text.partition("Exit status:")[2])}
    assert told == set(re.findall(r"^ +(\d) ", shown.partition("EXIT STATUS")[2], re.MULTILINE))


def test_lintian(require, binary, tmp_path):
    """Lintian finds no error, no warning and no missing hardening."""
    said = subprocess.run([require("lintian"), "--allow-root", "--display-info", "--fail-on", "none",
                           make(binary, version_of(binary), tmp_path)], check=True,
                          stdout=subprocess.PIPE, universal_newlines=True).stdout
    assert not re.findall("^(?:[EW]:|I: .*hardening).*", said, re.MULTILINE), said


def test_same_input_same_package(require, binary, tmp_path):
    require("dpkg-shlibdeps")
    made = []
    for name in "first", "second":
        with open(make(binary, "1", tmp_path / name, SOURCE_DATE_EPOCH="1"), "rb") as file:
            made.append(file.read())
    assert made[0] == made[1]


def test_life(root, apt, binary):
    """Installing pulls in dependencies, an upgrade keeps changed configuration, and a purge leaves nothing."""
    apt("install", "/tmp/1.deb")
    assert run_in(root, "pybpfprof --version") == subprocess.check_output(
        [binary, "--version"]).decode()
    assert run_in(root, "dpkg -V pybpfprof") == ""
    assert "rate: 19" in run_in(root, "pybpfprof agent --config %s --print-config" % CONFIG)
    with open(root + CONFIG, "a", encoding="utf-8") as file:
        file.write("with-pid: true\n")
    os.makedirs(root + "/var/lib/pybpfprof")
    apt("install", "/tmp/2.deb")
    assert "2" in run_in(root, "dpkg-query -W -f '${Version}' pybpfprof")
    with open(root + CONFIG, encoding="utf-8") as file:
        assert "with-pid: true" in file.read()
    apt("remove", "pybpfprof")
    assert owned(root) == [CONFIG, KNOWN_ENABLED, "/var/lib/pybpfprof"]
    apt("purge", "pybpfprof")
    assert not owned(root)


def test_enabled_until_purged(require, root, apt):
    """Also where systemd does not run, as in an image build."""
    apt("install", "/tmp/1.deb")
    assert not os.path.lexists(root + ENABLED)
    subprocess.run([require("systemctl"), "--root=" + root, "enable", SERVICE], check=True,
                   stderr=subprocess.DEVNULL)
    for step in ("install", "/tmp/2.deb"), ("remove", "pybpfprof"), ("install", "/tmp/2.deb"):
        assert os.path.lexists(root + ENABLED)
        apt(*step)
    assert os.path.lexists(root + ENABLED)
    apt("purge", "pybpfprof")
    assert not owned(root)


@pytest.fixture
def told(root):
    """told(): the systemctl calls since the last told(). The root looks as if systemd were running."""
    stub = root + "/usr/bin/systemctl"
    assert not os.path.exists(stub)
    with open(stub, "w", encoding="ascii") as file:
        file.write(SYSTEMCTL)
    os.chmod(stub, 0o755)
    os.makedirs(root + "/run/systemd/system")

    def read():
        with open(root + TOLD, encoding="ascii") as file:
            lines = file.read().splitlines()
        os.unlink(root + TOLD)
        return lines
    yield read
    os.unlink(stub)
    os.rmdir(root + "/run/systemd/system")


def test_systemctl_calls_of_install_and_remove(told, apt):
    """An install reloads systemd and restarts the service only if it runs. A removal stops it."""
    installed = ["--system daemon-reload", "try-restart " + SERVICE]
    for version in "1", "2":
        apt("install", "/tmp/%s.deb" % version)
        assert told() == installed
    apt("remove", "pybpfprof")
    assert told() == ["stop " + SERVICE, "--system daemon-reload"]


def test_the_service_starts_the_installed_binary(root, apt):
    apt("install", "/tmp/1.deb")
    command, paths = paths_in(root + UNIT)
    assert len(paths) == 2 and all(os.path.isfile(root + path) for path in paths)
    run_in(root, " ".join([*command, "--print-config"]))
