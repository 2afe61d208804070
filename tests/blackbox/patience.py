# SPDX-License-Identifier: Apache-2.0
"""How tests wait: for a condition, with a deadline. A missed deadline is a failure, never a pass."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake"))

from poll import poll  # noqa: E402

PATIENCE = 120  # seconds until a wait fails; no test asserts that something was fast


def rounds(few, all_of_them):
    """How many rounds of what is random or large: `make test THOROUGH=1` runs all."""
    return all_of_them if os.environ.get("THOROUGH", "0") not in ("", "0") else few


def until(condition, what):
    """Polls until the condition holds and returns its value: poll.py."""
    result = poll(condition, PATIENCE)
    if not result:
        raise AssertionError(f"not within {PATIENCE} s: {what}")
    return result
