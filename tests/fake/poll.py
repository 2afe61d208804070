# SPDX-License-Identifier: Apache-2.0
"""The loop in which tests and stand-ins wait for a condition."""

import time


def poll(condition, timeout):
    """Polls until condition() holds, and returns its last value. It pauses for some times as long as the check took, so that
    expensive checks leave the processor to what they wait for. A condition that reads a field which is not written yet does
    not hold; the error is raised at the deadline."""
    deadline = time.monotonic() + timeout
    while True:
        begun = time.monotonic()
        try:
            value = condition()
        except (KeyError, IndexError, TypeError):
            if begun > deadline:
                raise
            value = None
        now = time.monotonic()
        if value or begun > deadline:
            return value
        time.sleep(min(max(4 * (now - begun), 0.003), 0.1))
