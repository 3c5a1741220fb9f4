#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# deploy/image-root.sh BINARY FOLDER: makes FOLDER a root directory with the binary, as /usr/bin/pybpfprof, the
# libraries that it is linked to, the CA certificates for backends on the internet, and nothing else.
set -eu

[ $# -eq 2 ] || {
	echo "usage: deploy/image-root.sh BINARY FOLDER" >&2
	exit 2
}
binary=$1 root=$2
# Where Debian's libcurl looks for them.
authorities=/etc/ssl/certs/ca-certificates.crt

[ -s "$authorities" ] || {
	echo "deploy/image-root.sh: no $authorities here: sudo apt-get install ca-certificates" >&2
	exit 1
}

install -D -m 755 -s "$binary" "$root/usr/bin/pybpfprof"
libraries=$(ldd "$binary")
case $libraries in *"not found"*)
	echo "deploy/image-root.sh: $binary: $libraries" >&2
	exit 1
	;;
esac
# Lines like "libz.so.1 => /lib/libz.so.1 (0x...)"; the loader has no arrow.
echo "$libraries" | sed -n 's/^.*[[:space:]]\(\/[^ ]*\) (0x[0-9a-f]*)$/\1/p' | while read -r library; do
	install -D -m 755 "$library" "$root$library"
done
install -D -m 644 "$authorities" "$root$authorities"
