# SPDX-License-Identifier: Apache-2.0
"""The release of the driver that the simulator answers as: $SIM_DRIVER, a branch such as 535, or 595.

Sizes and offsets are those of src/gpu/rm/layouts.txt."""
import os

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/gpu/rm/layouts.txt")


def read_table():
    """The releases, and by each of our names (with its kind) its number and the branch from which on it holds."""
    releases, rows = [], {}
    with open(TABLE, encoding="utf-8") as file:
        for words in map(str.split, file):
            if words[:1] == ["releases"]:
                releases = words[1:]
            elif words and words[0] in ("size", "field", "value"):
                numbers = words[3:-2] if words[-2] == "as" else words[3:]
                rows[tuple(words[:2])] = [number.partition("@")[::2] for number in numbers]
    return releases, rows


RELEASES, ROWS = read_table()


class Release:
    def __init__(self, version):
        self.version, self.branch = version, int(version.partition(".")[0])

    def number(self, kind, name):
        """None: the release does not have it."""
        found = [number for number, first in ROWS[kind, name] if int(first or 0) <= self.branch][-1]
        return None if found == "-" else found

    def size(self, name):
        return int(self.number("size", name))

    def value(self, name):
        number = self.number("value", name)
        return None if number is None else int(number, 16)

    def bad_size(self):
        """The status of a control with parameters of another size: control.c and rs_resource.c of the driver."""
        return 0x3A if self.branch == 545 else 0x1F


def by_branch(branch):
    return Release(next(r for r in RELEASES if r.startswith(branch + ".")))


DRIVER = by_branch(os.environ.get("SIM_DRIVER", "595"))  # as SIM_VERSION of sim/release.h
