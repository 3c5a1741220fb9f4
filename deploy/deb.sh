#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# deploy/deb.sh BINARY VERSION FOLDER: makes a Debian package in FOLDER, of the binary and the files of deploy/.
set -eu

[ $# -eq 3 ] || {
	echo "usage: deploy/deb.sh BINARY VERSION FOLDER" >&2
	exit 2
}
binary=$(realpath "$1") version=$2 folder=$(realpath "$3")
cd "$(dirname "$0")/.."

command -v dpkg-shlibdeps >/dev/null || {
	echo "deploy/deb.sh: no dpkg-shlibdeps here: sudo apt-get install dpkg-dev" >&2
	exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
umask 022

deploy/install.sh install "$binary" /usr "$root" >/dev/null
strip --remove-section=.comment --remove-section=.note "$root/usr/bin/pybpfprof"
install -D -m 644 LICENSE "$root/usr/share/doc/pybpfprof/copyright"
install -D -m 644 README.md "$root/usr/share/doc/pybpfprof/README.md"
install -D -m 644 -t "$root/usr/share/doc/pybpfprof/docs" docs/*.md
install -D -m 644 deploy/debian/changelog "$root/usr/share/doc/pybpfprof/changelog"
# -n: no name and no time, so that the package is reproducible.
gzip -9n "$root/usr/share/doc/pybpfprof/changelog" "$root/usr/share/man/man1/pybpfprof.1"

# The packages with the libraries.
mkdir "$work/debian"
printf 'Source: pybpfprof\n\nPackage: pybpfprof\nArchitecture: any\n' >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O -e"$root/usr/bin/pybpfprof")

architecture=$(dpkg --print-architecture)
size=$(du -sk "$root" | cut -f1)
mkdir "$root/DEBIAN"
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@SIZE@/$size/" \
	-e "s/@DEPENDS@/${depends#shlibs:Depends=}/" deploy/debian/control >"$root/DEBIAN/control"
install -m 644 deploy/debian/conffiles "$root/DEBIAN/"
install -m 755 deploy/debian/postinst deploy/debian/prerm deploy/debian/postrm "$root/DEBIAN/"
(cd "$root" && find etc usr -type f -exec md5sum {} + | LC_ALL=C sort -k 2) >"$root/DEBIAN/md5sums"

dpkg-deb --root-owner-group --build "$root" "$folder/pybpfprof_${version}_$architecture.deb"
