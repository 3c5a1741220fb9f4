#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# enter.sh ROOT COMMAND [ARG...]: executes COMMAND with ROOT's /usr and /etc in
# place of this machine's, as in a container.  The mounts belong to the process
# and end with it.  The rest, such as /tmp and /proc, is this machine's.
set -eu

root=$1
shift
checkout=$(cd "$(dirname "$0")/../.." && pwd)

# The last mount hides the mount command itself.
# shellcheck disable=SC2016 # expanded by the inner shell
exec unshare --mount sh -euc '
	root=$1 checkout=$2
	shift 2
	case $checkout in
	/usr/*)
		mkdir -p "$root$checkout"
		mount --bind "$checkout" "$root$checkout"
		;;
	esac
	mount --bind "$root/etc" /etc
	mount --rbind "$root/usr" /usr
	exec "$@"' sh "$root" "$checkout" "$@"
