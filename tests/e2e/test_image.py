# SPDX-License-Identifier: BSD-2-Clause
"""The image: the tests execute the Dockerfile stage by stage, and run the result as the DaemonSet
does."""

import os
import stat
import subprocess

import pytest

from conftest import ROOT
from debian_root import copy
from deploy_tools import BUILD_TIMEOUT_S
from dockerfile import Image
from pods import Pod, build, objects, own_service, run_beside, samples_in_leaf, start_busy
from push_servers import authority, backend  # noqa: F401 (fixtures)

AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
DOCKERFILE = os.path.join(ROOT, "deploy", "Dockerfile")

pytestmark = [pytest.mark.timeout(BUILD_TIMEOUT_S), pytest.mark.alone, pytest.mark.prove("deploy")]


@pytest.fixture(scope="module")
def image(require, tmp_path_factory):
    return Image(DOCKERFILE, ROOT, tmp_path_factory.mktemp("image"), require)


def files(root):
    """{path: status} of everything but folders."""
    return {os.path.join(folder, name)[len(root):]: os.lstat(os.path.join(folder, name))
            for folder, _, names in os.walk(root) for name in names}


def test_contents(image):
    """The binary, libraries and certificate authorities: no other executable, and all owned by root.  Most of the
    size comes from libcurl, which Debian builds with all protocols: two TLS libraries (OpenSSL for https,
    GnuTLS for LDAP and RTMP), Kerberos, SSH.  The total is 23 MiB."""
    found = files(image.last.root)
    others = set(found) - {"/usr/bin/pybpfprof", AUTHORITIES}
    assert all(os.path.basename(path).split(".so")[0].startswith(("lib", "ld-linux"))
               and ".so" in path for path in others)
    assert "/usr/bin/pybpfprof" in found
    for status in found.values():
        assert stat.S_ISREG(status.st_mode) and status.st_uid == status.st_gid == 0
        assert not status.st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IWGRP | stat.S_IWOTH)
    assert sum(status.st_size for status in found.values()) < 28 << 20


def test_it_was_not_built_by_root(image):
    assert image.users[0] == "build"


def test_it_runs(image, binary):
    entry = image.settings["ENTRYPOINT"]
    run = [subprocess.check_output(["chroot", image.last.root, *entry, *words]).decode()
           for words in (["--version"], ["agent", "--help"])]
    assert run[0] == subprocess.check_output([binary, "--version"]).decode()
    for word in image.settings["CMD"][1:]:
        assert not word.startswith("--") or word in run[1]


def test_the_agent_works_in_its_pod(image, require, tmp_path, any_python, target, profile):
    pod = Pod(objects(build()), tmp_path)
    busy = start_busy(any_python, target)
    said = run_beside(pod, require, image.last.root, busy)
    assert "cannot" not in said, said
    assert samples_in_leaf(profile, pod) > 10


def test_it_pushes_to_a_server_with_a_public_certificate(image, require, tmp_path, any_python, target,
                                                 backend, authority):  # noqa: F811
    """By https, with the authorities of the image and no other."""
    root = str(tmp_path / "root")
    copy(image.last.root, root)
    ours = authority("ours")
    with open(root + AUTHORITIES, encoding="ascii") as file:
        assert file.read().count("BEGIN CERTIFICATE") > 50
    with open(root + AUTHORITIES, "a", encoding="ascii") as known, \
            open(ours.certificate, encoding="ascii") as file:
        known.write(file.read())
    server = backend("pyroscope", ours.sign("IP:127.0.0.1"))
    pod = Pod(objects(build()), tmp_path)
    pod.push(server.url())
    said = run_beside(pod, require, root, start_busy(any_python, target))
    assert own_service() in {row[0] for row in server.rows()}, said
