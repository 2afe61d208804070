# SPDX-License-Identifier: Apache-2.0
"""The C compiler of tests that build a program."""
import os
import shlex
import shutil


def compiler():
    """The words of its command: CC may have several, as for make. Empty if there is none."""
    words = shlex.split(os.environ.get("CC", "cc"))
    return words if shutil.which(words[0]) else []
