# SPDX-License-Identifier: Apache-2.0
"""The clocks of one program of a test, set through clock-shim.c."""

import os
import threading


class Clock:
    """Sets the wall clock of a program, and makes its steady clocks leap over intervals that a test would otherwise wait
    for. Where the shim is not to be had, or a sanitizer has to be the first library, `shim` is None: nothing leaps."""

    def __init__(self, shim, path):
        sanitized = os.environ.get("ASAN_OPTIONS") or os.environ.get("TSAN_OPTIONS")
        self.shim = shim if shim and os.path.exists(shim) and not sanitized else None
        self.path, self.wall, self.steady = path, 0, 0
        self.lock = threading.Lock()

    def environment(self):
        return {"LD_PRELOAD": self.shim, "CLOCK_SHIM_FILE": self.path} if self.shim else {}

    def set_wall(self, seconds):
        """From now on the wall clock is off by so much."""
        with self.lock:
            self.wall = seconds
            self._write()

    def leap(self, seconds):
        """The program sees it when it wakes the next time."""
        with self.lock:
            self.steady += seconds
            self._write()

    def _write(self):
        if not self.shim:
            return
        with open(self.path + ".new", "w") as f:
            f.write(f"{self.wall} {self.steady}\n")
        os.rename(self.path + ".new", self.path)
