#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tests/programs/demo.sh PYBPFPROF: profiles a small sample program for three seconds.  The page goes to
# the folder that PYBPFPROF is in.
set -eu

pybpfprof=$1
page=$(dirname "$pybpfprof")/pybpfprof-demo.html

/usr/bin/python3 "$(dirname "$0")/demo.py" &
sample=$!
trap 'kill "$sample" 2>/dev/null || :' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
sleep 0.5 # until it serves its first requests

echo "A small web shop runs as process $sample, under $(/usr/bin/python3 --version)."
echo "\$ $pybpfprof record -p $sample -d 3 -o $page"
"$pybpfprof" record -p "$sample" -d 3 -o "$page"

cat <<END

The flame graph is $(realpath "$page")
It is one file that needs no network: open it in any browser, here with

    xdg-open $page
END
