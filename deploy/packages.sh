#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# deploy/packages.sh {build|image|check|test|bench|prove}: installs the Debian packages that are missing for that,
# and lists them.  If none is missing, it changes nothing.
# deploy/packages.sh --missing ...: only lists them, and says how to install them; needs no root.
set -eu

# Neither the PATH of sudo nor that of a user has all of these.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/go/bin

only_say=""
if [ "${1-}" = --missing ]; then
	only_say=yes
	shift
fi
case ${1-} in
build) sets="build" ;;
image) sets="build image" ;;
check) sets="build check" ;;
test) sets="build check test" ;;
bench) sets="build bench" ;;
prove) sets="build image check test bench prove" ;;
*)
	echo "usage: deploy/packages.sh [--missing] {build|image|check|test|bench|prove}" >&2
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
build    libiberty-dev          -                  reads the names of C++ and Rust
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
build    libelf-dev             -                  finds functions and USDT probes in ELF files
build    uthash-dev             -                  hash tables
build    python3                -                  writes the offset tables as C; runs the sample program of the demo
image    ca-certificates        -                  whom the image trusts
bench    python3-venv           -                  has pip, which fetches other profilers
bench    linux-perf             perf               one of them
check    git                    git                lists the files at the root
check    libclang-rt-dev        -                  libFuzzer, and its sanitizers
check    libcmocka-dev          -                  unit tests
check    cppcheck               cppcheck           looks for faults in the C code
check    shellcheck             shellcheck         looks for faults in the scripts
check    codespell              codespell          looks for misspelt words
check    clang-format           clang-format       shows where the C code is laid out otherwise
check    python3-pytest         -                  end-to-end tests
check    python3-pytest-timeout -                  ends a test that hangs
check    python3-pytest-xdist   -                  runs tests side by side
check    chromium               chromium           renders the flame graph page and runs speedscope
check    chromium-driver        chromedriver       drives Chromium
test     qemu-system-x86        qemu-system-x86_64 boots other kernels
test     busybox-static         busybox            is these machines' shell
test     cpio                   cpio               makes their file system
test     runc                   runc               runs containers, in these machines too
test     bubblewrap             bwrap              runs sandboxes
test     systemd                systemd-analyze    scores the agent's service
test     python3-yaml           -                  reads the Kubernetes manifests
test     iproute2               ip                 gives a container an address
test     dpkg-dev               dpkg-shlibdeps     tells what the Debian package depends on
test     man-db                 man                shows the manual page
test     libpython3-dev         -                  its headers are what the offset tables must match
test     openssl                openssl            makes certificates
test     python3-gevent         -                  switches stacks of Python calls
test     golang-go              go                 go tool pprof reads the pprof files; a Go program with a Python in it
test     default-jdk-headless   java               a Java program with a Python in it
test     npm                    npm                fetches speedscope, which reads what was written
prove    qemu-system-arm        qemu-system-aarch64    boots a kernel for aarch64
prove    gcc-aarch64-linux-gnu  aarch64-linux-gnu-gcc  compiles user space for it
prove    clang-19               clang-19           compiles the BPF program as Debian 13 does, and the JIT of 3.13
prove    llvm-19                llvm-readobj-19    reads what that has compiled
prove    libdw-dev              -                  finds native stacks, which ours are compared with
prove    debootstrap            debootstrap        makes the root that the image and the package are tried in
prove    lintian                lintian            looks for faults of the Debian package
prove    libffi-dev             -                  CPython's ctypes
prove    libssl-dev             -                  CPython's hashlib and ssl
prove    musl-tools             musl-gcc           a CPython with another C library
END

[ -n "$missing" ] || exit 0
if [ "$only_say" ]; then
	echo "Missing from Debian's packages:"
	printf '%s' "$reasons"
	echo "Run as root: apt-get update && apt-get install --no-install-recommends$missing"
	exit 1
fi
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
