# SPDX-License-Identifier: BSD-2-Clause
"""qualified_large.py CLASSES SECONDS: has CLASSES classes, and is busy for SECONDS. With 0 it is busy until
its parent ends."""

import os
import sys
import time


class Part:
    def method(self):
        return sum(range(2000))


def filler(self):
    return self


def main():
    classes, seconds = int(sys.argv[1]), float(sys.argv[2])
    for number in range(classes):
        name = "Class%d" % number
        globals()[name] = type(name, (), {"filler%d" % index: filler for index in range(50)})
    print("ready")
    sys.stdout.flush()
    end, parent, part = time.time() + seconds, os.getppid(), Part()
    while os.getppid() == parent and (not seconds or time.time() < end):
        part.method()


main()
