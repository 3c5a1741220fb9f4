# SPDX-License-Identifier: BSD-2-Clause
"""Kubernetes' API server and its etcd, on the loopback interface, without kubelets and
controllers."""

import json
import os
import ssl
import subprocess
import time
import urllib.error
import urllib.request

import build_backends
from servers import free_port

PATIENCE_S = 120
NEEDED = "etcd", "kube-apiserver"
ADMINISTRATOR = "administrators-token"
NAMESPACED = {"ServiceAccount", "ConfigMap", "DaemonSet", "Pod", "PodMonitor"}


def is_there():
    return all(map(build_backends.is_there, NEEDED))


def path_of(one):
    """The API's path of the object."""
    version, name = one["apiVersion"], one["metadata"]["name"]
    kind = one["kind"].lower()
    plural = kind + ("es" if kind.endswith("s") else "s")
    space = "namespaces/%s/" % one["metadata"]["namespace"] if one["kind"] in NAMESPACED else ""
    return "/%s/%s%s/%s" % ("apis/" + version if "/" in version else "api/" + version, space, plural,
                            name)


class Kubernetes:
    """Both servers, ready, with their data in FOLDER."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.certificates = os.path.join(self.folder, "certificates")
        self.processes = []
        self.port = free_port()
        self.url = "https://127.0.0.1:%d" % self.port
        self.log = open(os.path.join(self.folder, "log"), "wb")
        try:
            self.start_servers()
            self.wait()
        except BaseException:
            self.end()
            raise

    def start(self, name, *options):
        self.processes.append(subprocess.Popen(
            [build_backends.program_of(name), *options], cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=subprocess.STDOUT))

    def start_servers(self):
        etcd, peer = ("http://127.0.0.1:%d" % free_port() for _ in range(2))
        self.start("etcd", "--name=t", "--data-dir=./data", "--unsafe-no-fsync",
                   "--initial-cluster=t=" + peer, "--listen-client-urls=" + etcd,
                   "--advertise-client-urls=" + etcd, "--listen-peer-urls=" + peer,
                   "--initial-advertise-peer-urls=" + peer)
        key = os.path.join(self.folder, "accounts.key")
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True,
                       stderr=subprocess.DEVNULL)
        subprocess.run(["openssl", "rsa", "-in", key, "-pubout", "-out", key + ".pub"], check=True,
                       stderr=subprocess.DEVNULL)
        with open(os.path.join(self.folder, "tokens.csv"), "w", encoding="ascii") as file:
            file.write("%s,administrator,administrator,system:masters\n" % ADMINISTRATOR)
        self.start("kube-apiserver", "--etcd-servers=" + etcd, "--bind-address=127.0.0.1",
                   "--advertise-address=127.0.0.1", "--secure-port=%d" % self.port,
                   "--cert-dir=" + self.certificates, "--token-auth-file=tokens.csv",
                   "--service-account-issuer=https://kubernetes.default.svc",
                   "--service-account-key-file=%s.pub" % key,
                   "--service-account-signing-key-file=" + key, "--authorization-mode=Node,RBAC",
                   "--allow-privileged=true", "--service-cluster-ip-range=10.0.0.0/24",
                   "--endpoint-reconciler-type=none")

    def wait(self):
        deadline = time.monotonic() + PATIENCE_S
        while not self.is_ready():
            assert time.monotonic() < deadline and not any(
                process.poll() for process in self.processes), self.said()
            time.sleep(0.2)

    def is_ready(self):
        try:
            return self.ask("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def said(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()[-3000:]

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.log.close()

    def ask(self, method, path, body=None, kind="application/json", token=ADMINISTRATOR):
        """(status, answer)"""
        context = ssl.create_default_context(
            cafile=os.path.join(self.certificates, "apiserver.crt"))
        request = urllib.request.Request(
            self.url + path, None if body is None else json.dumps(body).encode(),
            {"Authorization": "Bearer " + token, "Content-Type": kind}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        return status, json.loads(text) if text.startswith(b"{") else text.decode()

    def apply(self, one, dry_run=False):
        """Does the same as `kubectl apply --server-side`.  Returns (status, answer)."""
        query = "?fieldManager=tests&fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        return self.ask("PATCH", path_of(one) + query, one, "application/apply-patch+yaml")

    def make(self, one):
        status, answer = self.apply(one)
        assert status in (200, 201), answer
        return answer

    def make_namespace(self, name):
        """Makes a namespace and its service account, because there is no controller."""
        self.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.make({"apiVersion": "v1", "kind": "ServiceAccount",
                   "metadata": {"name": "default", "namespace": name}})

    def make_pod(self, name, namespace, node, container, **metadata):
        """Makes a pod that runs the container with that ID, as a kubelet would report."""
        pod = self.make({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": dict(metadata, name=name, namespace=namespace),
            "spec": {"nodeName": node, "automountServiceAccountToken": False,
                     "containers": [{"name": "main", "image": "python:3"}]}})
        status, answer = self.ask(
            "PATCH", path_of(pod) + "/status",
            {"status": {"phase": "Running", "containerStatuses": [
                {"name": "main", "image": "python:3", "imageID": "x", "ready": True,
                 "restartCount": 0, "containerID": "containerd://" + container}]}},
            "application/merge-patch+json")
        assert status == 200, answer

    def token_of(self, account, namespace):
        status, answer = self.ask(
            "POST", "/api/v1/namespaces/%s/serviceaccounts/%s/token" % (namespace, account),
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
             "spec": {"expirationSeconds": 3600}})
        assert status == 201, answer
        return answer["status"]["token"]

    def rules_of(self, token):
        """{(group, resource, verb)} that the token's owner may use in any namespace."""
        status, answer = self.ask(
            "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
            {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
             "spec": {"namespace": "kube-system"}}, token=token)
        assert status == 201 and not answer["status"]["incomplete"], answer
        return {(group, resource, verb) for rule in answer["status"]["resourceRules"]
                for group in rule["apiGroups"] for resource in rule["resources"]
                for verb in rule["verbs"]}
