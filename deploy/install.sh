#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# deploy/install.sh {install BINARY|uninstall} PREFIX ROOT: installs the binary, its manual page and the agent's
# service below ROOT, or removes them.  ROOT is "" for this machine.  An existing configuration is kept, and
# removed only if it was not changed.
set -eu

usage() {
	echo "usage: deploy/install.sh {install BINARY|uninstall} PREFIX ROOT" >&2
	exit 2
}

case ${1-} in
install)
	[ $# -eq 4 ] || usage
	binary=$(realpath "$2")
	shift
	;;
uninstall)
	[ $# -eq 3 ] || usage
	binary=""
	;;
*) usage ;;
esac
prefix=$2 place=$3$2 config=$3/etc/pybpfprof/agent.yaml
service=$place/lib/systemd/system/pybpfprof-agent.service
cd "$(dirname "$0")/.."

if [ -n "$binary" ]; then
	install -v -D -m 755 "$binary" "$place/bin/pybpfprof"
	install -v -D -m 644 deploy/pybpfprof.1 "$place/share/man/man1/pybpfprof.1"
	install -v -D -m 644 deploy/systemd/pybpfprof-agent.service "$service"
	sed -i "s|/usr/bin/pybpfprof|$prefix/bin/pybpfprof|" "$service"
	[ -e "$config" ] || install -v -D -m 644 deploy/agent.yaml "$config"
else
	rm -fv "$place/bin/pybpfprof" "$place/share/man/man1/pybpfprof.1" "$service"
	if cmp -s deploy/agent.yaml "$config"; then
		rm -v "$config"
		rmdir --ignore-fail-on-non-empty "$(dirname "$config")"
	fi
fi
