# SPDX-License-Identifier: BSD-2-Clause
"""idle.py [SECONDS]: sleeps, using no CPU."""

import sys
import time

print("ready")
time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 3600)
