# SPDX-License-Identifier: Apache-2.0
"""How tests wait: for a condition, with a deadline. A missed deadline is a failure, never a pass."""
import os
import time

PATIENCE = 120  # seconds until a wait fails; no test asserts that something was fast


def rounds(few, all_of_them):
    """How many rounds of what is random or large: `make test THOROUGH=1` runs all."""
    return all_of_them if os.environ.get("THOROUGH", "0") not in ("", "0") else few


def until(condition, what):
    """Polls until the condition holds and returns its value. It sleeps for some times as long as the
    check took, so expensive checks are rare. A condition that reads a field which is not written yet does not
    hold; the error is raised at the deadline."""
    deadline = time.monotonic() + PATIENCE
    while True:
        begun = time.monotonic()
        try:
            result = condition()
        except (KeyError, IndexError, TypeError):
            if begun > deadline:
                raise
            result = None
        if result:
            return result
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"not within {PATIENCE} s: {what}")
        time.sleep(min(max(4 * (now - begun), 0.003), 0.1))
