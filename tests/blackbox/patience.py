# SPDX-License-Identifier: Apache-2.0
"""How the tests wait: for a condition, with a deadline that is a failure and never a pass."""
import time

PATIENCE = 120  # seconds until a wait counts as failed; no test asserts that something was fast


def until(condition, what):
    """Polls until the condition holds, and returns what it gave. Rests as long as it looked: a look that costs much is rare."""
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
