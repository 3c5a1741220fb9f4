# SPDX-License-Identifier: BSD-2-Clause
"""extensions.py JOB: extensions and libraries in C, C++, Fortran, Cython and assembly use the CPU until the
program is killed."""

import functools
import hashlib
import io
import json
import sys


def blas():
    import numpy
    numbers = numpy.random.default_rng(1).random((400, 400))
    return lambda: numpy.linalg.svd(numbers @ numbers)


def numpy_calls_back():
    import numpy
    numbers = numpy.arange(2000)
    return lambda: numpy.vectorize(lambda number: number + 1)(numbers)


def pybind11():
    import numpy
    from scipy import fft
    numbers = numpy.random.default_rng(1).random(100003)
    return lambda: fft.rfft(numbers)


def learn():
    import numpy
    from sklearn.ensemble import RandomForestClassifier
    numbers = numpy.random.default_rng(1)
    rows, kinds = numbers.random((500, 10)), numbers.integers(0, 2, 500)
    return lambda: RandomForestClassifier(n_estimators=5).fit(rows, kinds)


def frames():
    import pandas
    table = pandas.DataFrame({"key": [i % 50 for i in range(5000)], "value": range(5000)})
    return lambda: table.groupby("key")["value"].apply(lambda values: values.sum())


def pictures():
    from PIL import Image, ImageFilter
    picture = Image.effect_noise((400, 400), 50).convert("RGB")
    return lambda: picture.filter(ImageFilter.GaussianBlur(3)).save(io.BytesIO(), "PNG")


def xml():
    from lxml import etree
    text = b"<a>" + b"<b c='1'>text</b>" * 5000 + b"</a>"
    return lambda: etree.fromstring(text).xpath("count(//b[@c='1'])")


def compiled():
    import numba

    @numba.njit
    def add(count):
        total = 0.0
        for i in range(count):
            total += (i % 7) ** 0.5
        return total
    return functools.partial(add, 1000000)


def openssl():
    text = b"q" * 1000000
    return lambda: (hashlib.sha256(text), hashlib.sha512(text), hashlib.md5(text))


def standard():
    def key(number):
        return -number
    return lambda: json.dumps(sorted(range(2000), key=key))


def main():
    job = globals()[sys.argv[1]]()
    job()
    print("ready")
    sys.stdout.flush()
    while True:
        job()


main()
