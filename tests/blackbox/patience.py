# SPDX-License-Identifier: Apache-2.0
"""How tests wait: for a condition, with a deadline. A missed deadline is a failure, never a pass."""
import time

PATIENCE = 120  # seconds until a wait fails; no test asserts that something was fast


def until(condition, what):
    """Polls until the condition holds and returns its value. It sleeps as long as the check took,
    so expensive checks are rare."""
    deadline = time.monotonic() + PATIENCE
    while True:
        begun = time.monotonic()
        result = condition()
        if result:
            return result
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"not within {PATIENCE} s: {what}")
        time.sleep(min(max(now - begun, 0.002), 0.05))
