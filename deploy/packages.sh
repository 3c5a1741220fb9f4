#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# deploy/packages.sh {build|image|demo|bench|fuzz|vmtest|test|test-all}: installs what is missing for that from
# Debian's packages, and says what.  Nothing is touched when all is there.
set -eu

# Neither sudo's PATH nor a user's has all of these.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/go/bin

case ${1-} in
build) sets="build" ;;
image) sets="build image" ;;
demo) sets="build demo" ;;
bench) sets="build demo bench" ;;
fuzz) sets="build fuzz" ;;
vmtest) sets="build vmtest" ;;
test) sets="build image demo fuzz vmtest test" ;;
test-all) sets="build image demo fuzz vmtest test test-all" ;;
*)
	echo "usage: deploy/packages.sh {build|image|demo|bench|fuzz|vmtest|test|test-all}" >&2
	exit 2
	;;
esac

die() {
	echo "deploy/packages.sh: $*" >&2
	exit 1
}

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null) ||
	die "no Debian packages here; install by hand what docs/building.md lists, then run make"

# Appends to $missing and $reasons unless the package, or a program of that name, is there.
missing=""
reasons=""
want() { # PACKAGE PROGRAM WHY
	case "
$installed
" in *"
installed $1
"*) return ;; esac
	[ "$2" = - ] || ! command -v "$2" >/dev/null || return 0
	missing="$missing $1"
	reasons="$reasons  $1: $3
"
}

while read -r set package program why; do
	case " $sets " in *" $set "*) want "$package" "$program" "$why" ;; esac
done <<'END'
build    gcc                    gcc                compiles user space
build    libc6-dev              -                  the C library's headers
build    make                   make               runs the build
build    clang                  clang              compiles the BPF program
build    llvm                   llvm-strip         strips the BPF program
build    bpftool                bpftool            makes the BPF program's skeleton
build    pkgconf                pkg-config         finds the libraries
build    libbpf-dev             -                  loads the BPF program
build    zlib1g-dev             -                  compresses pprof files
build    libprotobuf-c-dev      -                  encodes pprof files, and what is pushed
build    protobuf-compiler      protoc             reads the messages' definitions
build    protobuf-c-compiler    protoc-gen-c       makes the encoders from them
build    libmicrohttpd-dev      -                  the agent's HTTP server
build    libjansson-dev         -                  writes JSON, and reads it
build    libsqlite3-dev         -                  the agent's store
build    libyaml-dev            -                  reads the agent's configuration
build    libpcre2-dev           -                  compares labels with rules
build    libcurl4-openssl-dev   -                  pushes profiles
build    uthash-dev             -                  hash tables
image    ca-certificates        -                  whom the image trusts
demo     python3                -                  runs the sample program
bench    python3-venv           -                  has pip, which fetches other profilers
bench    linux-perf             perf               one of them
fuzz     libclang-rt-dev        -                  libFuzzer, and its sanitizers
vmtest   python3-pytest         -                  end-to-end tests
vmtest   python3-pytest-rerunfailures -            runs once more what a busy machine fails
vmtest   python3-pytest-timeout -                  ends a test that hangs
vmtest   python3-pytest-xdist   -                  runs tests side by side
vmtest   qemu-system-x86        qemu-system-x86_64 boots other kernels
vmtest   qemu-system-arm        qemu-system-aarch64    boots one for aarch64
vmtest   gcc-aarch64-linux-gnu  aarch64-linux-gnu-gcc  compiles user space for it
vmtest   busybox-static         busybox            is these machines' shell
vmtest   runc                   runc               runs containers, in these machines too
vmtest   cpio                   cpio               makes their file system
vmtest   clang-19               clang-19           compiles the BPF program as Debian 13 does, and the JIT of 3.13
test     bubblewrap             bwrap              runs sandboxes
test     systemd                systemd-analyze    scores the agent's service
test     python3-yaml           -                  reads the Kubernetes manifests
test     iproute2               ip                 gives a container an address
test     debootstrap            debootstrap        makes the root that the image and the package are tried in
test     dpkg-dev               dpkg-shlibdeps     tells what the Debian package depends on
test     lintian                lintian            looks for faults of the Debian package
test     man-db                 man                shows the manual page
test     libcmocka-dev          -                  unit tests
test     libpython3-dev         -                  its headers are what the offset tables must match
test     openssl                openssl            makes certificates
test     libelf-dev             -                  reads the interpreters' ELF files in a unit test
test     python3-gevent         -                  switches stacks of Python calls
test     golang-go              go                 go tool pprof reads the pprof files; a Go program with a Python in it
test     default-jdk-headless   java               a Java program with a Python in it
test     npm                    npm                fetches speedscope, which reads what was written
test     chromium               chromium           renders the flame graph page and runs speedscope
test     chromium-driver        chromedriver       drives Chromium
test-all libffi-dev             -                  CPython's ctypes
test-all libssl-dev             -                  CPython's hashlib and ssl
test-all musl-tools             musl-gcc           a CPython with another C library
test-all llvm-19                llvm-readobj-19    reads what that has compiled
END

[ -n "$missing" ] || exit 0
command -v apt-get >/dev/null || die "no apt-get here; install by hand:$missing"

as_root=""
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null ||
		die "not root; run as root: apt-get install --no-install-recommends$missing"
	as_root=sudo
fi

apt() {
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Acquire::Retries=3 \
		-o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" >/dev/null </dev/null
}

echo "Missing from Debian's packages, installing with all that they depend on:"
printf '%s' "$reasons"
apt update || die "apt-get update failed; is the network up?"
# shellcheck disable=SC2086 # a list of words
apt install --no-install-recommends $missing ||
	die "apt-get failed; try: $as_root apt-get install --no-install-recommends$missing"
