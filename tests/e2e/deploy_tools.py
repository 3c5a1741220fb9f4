# SPDX-License-Identifier: BSD-2-Clause
"""Tools that the tests of deploy/ need and Debian lacks.  Go builds them once from its module registry
into the tests' cache."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from conftest import missing

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interpreters"))
from debian import CACHE  # noqa: E402

FOLDER = os.path.join(CACHE, "deploy")
BUILD_TIMEOUT_S = 1200
PACKAGES = {
    "helm": "helm.sh/helm/v3/cmd/helm@v3.22.0",
    "kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0",
    "kustomize": "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1",
}
KUBERNETES = "k8s.io/kubernetes@v1.36.3"
# The operator defines the kind PodMonitor.
OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
POD_MONITORS = "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml"
CONTAINERD = "github.com/containerd/containerd/v2@v2.1.4"
# The go.mod files of these modules require it.
GO_MINOR_MIN = 26

# Prints containerd's seccomp profile RuntimeDefault for the capabilities in its arguments.
RUNTIME_DEFAULT = """
package main

import (
	"encoding/json"
	"os"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

func main() {
	spec := &specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{
		Bounding: os.Args[1:],
	}}}
	if err := json.NewEncoder(os.Stdout).Encode(seccomp.DefaultProfile(spec)); err != nil {
		panic(err)
	}
}
"""


def find_go():
    go = shutil.which("go", path=os.environ["PATH"] + ":/usr/local/go/bin") or missing("go")
    version = subprocess.check_output([go, "env", "GOVERSION"], cwd="/", universal_newlines=True)
    minor = version.strip().split(".")[1]
    if not minor.isdigit() or int(minor) < GO_MINOR_MIN:
        pytest.skip("Go 1.%d or newer builds what this needs; here is %s" %
                    (GO_MINOR_MIN, version.strip()))
    return go


def run_go(*words, folder="/", **variables):
    """Runs Go at the lowest priority.  Returns its output."""
    variables = dict(os.environ, CGO_ENABLED="0", GOFLAGS="-mod=mod -buildvcs=false", **variables)
    done = subprocess.run(["nice", "-n", "19", find_go(), *words], cwd=folder, env=variables,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=BUILD_TIMEOUT_S)
    if done.returncode:
        missing("%s, which Go cannot get: %s" % (words[-1], done.stderr.strip()[-300:]))
    return done.stdout


def find_tool(name):
    """The path of the tool NAME, a key of PACKAGES."""
    path = shutil.which(name, path=os.environ["PATH"] + os.pathsep + FOLDER)
    if not path:
        os.makedirs(FOLDER, exist_ok=True)
        run_go("install", "-trimpath", PACKAGES[name], GOBIN=FOLDER)
        path = os.path.join(FOLDER, name)
    return path


def runtime_default(capabilities):
    """The RuntimeDefault seccomp profile of a container with these capabilities."""
    folder = os.path.join(FOLDER, "runtime_default")
    path = os.path.join(folder, "runtime_default")
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "main.go"), "w", encoding="utf-8") as file:
            file.write(RUNTIME_DEFAULT)
        with open(os.path.join(folder, "go.mod"), "w", encoding="utf-8") as file:
            file.write("module runtime_default\n")
        run_go("get", CONTAINERD, folder=folder)
        run_go("build", "-o", path, ".", folder=folder)
    return json.loads(subprocess.check_output([path, *capabilities]))


def find_file(module, path):
    """The path of a file of a Go module, kept in the cache."""
    kept = os.path.join(FOLDER, "files", module, path)
    if not os.path.exists(kept):
        folder = json.loads(run_go("mod", "download", "-json", module))["Dir"]
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        shutil.copy(os.path.join(folder, path), kept + ".new")
        os.rename(kept + ".new", kept)
    return kept


def close(schema):
    """Makes the schema reject properties that it does not describe."""
    if "properties" in schema:
        schema["additionalProperties"] = False
        for each in schema["properties"].values():
            close(each)
    if "items" in schema:
        close(schema["items"])


def write_schemas(folder, *customs):
    """Writes the schemas of Kubernetes' objects and of CUSTOMS, CustomResourceDefinitions, in kubeconform's
    format.  Returns its --schema-location."""
    with open(find_file(KUBERNETES, "api/openapi-spec/swagger.json"), encoding="utf-8") as file:
        found = json.load(file)["definitions"]
    metadata = {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    for custom in customs:
        names, group = custom["spec"]["names"], custom["spec"]["group"]
        for version in custom["spec"]["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            schema["properties"]["metadata"] = metadata
            schema["x-kubernetes-group-version-kind"] = [
                {"group": group, "kind": names["kind"], "version": version["name"]}]
            found["%s.%s.%s" % (group, version["name"], names["kind"])] = schema
    # The description declares only strings, but numbers are valid, too.
    found["io.k8s.apimachinery.pkg.api.resource.Quantity"] = {"type": ["string", "number"]}
    found["io.k8s.apimachinery.pkg.util.intstr.IntOrString"] = {"type": ["string", "integer"]}
    for schema in found.values():
        close(schema)
    text = json.dumps({"definitions": found}).replace("#/definitions/",
                                                      "definitions.json#/definitions/")
    (folder / "definitions.json").write_text(text)
    for name, schema in found.items():
        for kind in schema.get("x-kubernetes-group-version-kind", []):
            group = kind["group"].split(".")[0]
            words = [kind["kind"].lower(), *([group] if group else []), kind["version"]]
            (folder / ("-".join(words) + ".json")).write_text(
                json.dumps({"$ref": "definitions.json#/definitions/" + name}))
    return str(folder / "{{.ResourceKind}}{{.KindSuffix}}.json")
