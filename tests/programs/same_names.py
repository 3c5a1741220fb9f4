# SPDX-License-Identifier: BSD-2-Clause
"""same_names.py FOLDER: runs six functions of one name. Each is from a file that shares its name with another.

  archive.zip/etl/daily/run.py, etl/hourly/run.py   packages in an archive
  orders/utils.py, billing/utils.py                 folders that are not packages
  shop/v1/views.py, shop/v2/views.py                packages, but without their sources
"""

import compileall
import importlib
import os
import sys
import zipfile
from time import process_time

SOURCE = "def spin(until, now):\n    while now() < until:\n        pass\n"
FOLDER = sys.argv[1]


def write(name, text):
    path = os.path.join(FOLDER, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


with zipfile.ZipFile(os.path.join(FOLDER, "archive.zip"), "w") as archive:
    for package in ("etl", "etl/daily", "etl/hourly"):
        archive.writestr(package + "/__init__.py", "")
        archive.writestr(package + "/run.py", SOURCE)
for path in ("orders/utils.py", "billing/utils.py"):
    write(path, SOURCE)
sources = [write("shop/" + name, "") for name in ("__init__.py", "v1/__init__.py", "v2/__init__.py")]
sources += [write("shop/%s/views.py" % version, SOURCE) for version in ("v1", "v2")]
assert compileall.compile_dir(os.path.join(FOLDER, "shop"), quiet=1, legacy=True)
for path in sources:
    os.remove(path)

sys.path[:0] = [FOLDER, os.path.join(FOLDER, "archive.zip")]
modules = [importlib.import_module(name) for name in (
    "etl.daily.run", "etl.hourly.run", "orders.utils", "billing.utils", "shop.v1.views", "shop.v2.views")]

print("ready")
sys.stdout.flush()
while True:
    for module in modules:
        module.spin(process_time() + 0.002, process_time)
