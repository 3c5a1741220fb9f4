# SPDX-License-Identifier: BSD-2-Clause
"""Interpreters that run one after the other, each with the functions of one number only.

Each interpreter's code objects get the addresses and the versions of the last one's.
"""

from concurrent import interpreters

SOURCE = """
import time

def leaf_{0}(count):
    for number in range(count):
        pass

def run_{0}(end):
    while time.thread_time() < end:
        leaf_{0}(200)

run_{0}(time.thread_time() + 0.05)
"""


def use(number):
    interpreter = interpreters.create()
    interpreter.exec(SOURCE.format(number))
    interpreter.close()


def call_0():
    use(0)


def call_1():
    use(1)


def call_2():
    use(2)


print("ready", flush=True)
while True:
    call_0()
    call_1()
    call_2()
