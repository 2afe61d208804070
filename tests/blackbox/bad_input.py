#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls that no library makes, with each release of the driver: libaliquot.so answers as the driver does alone.

    bad_input.py LIBRARY SIMULATOR [TEST...]

For each release the same program runs twice: with the library in a slice of the whole card, and without it. Statuses are
the same, but for the classes that the library refuses. What the driver gave is counted, and no answer shows more than
the slice.
"""
import ctypes
import os
import random
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake"))

from driver_release import RELEASES, TABLE, Release  # noqa: E402
from gate_lab import GateBase, alone, mounted, used  # noqa: E402
from rm_client import (  # noqa: E402
    ALLOC, CONTROL, FB_INFO, FB_INFO_V2, FB_REGIONS, GID, HEAP, LOCAL, L_ALLOC, L_CONTROL, MIB, NO_PERMISSION, OK, Client,
    address_of, call, inside, memory_params, packed, raw_ioctl, say, wait_for_word)

SLICE = 16000  # MiB
GROUP_MIB = 16  # of the simulator
INVALID_CLASS = 0x22
REFUSED = {0xE0: NO_PERMISSION, 0xF3: INVALID_CLASS, 0xF9: NO_PERMISSION}  # docs/internals/memory-doors.md
SIZES = {  # of the parameters of controls: our names in layouts.txt, or bytes
    (0, 0x201): "RmAttachedIds", (0, 0x202): "RmIdInfo", (0, 0x205): "RmIdInfoV2", (0, 0x214): "RmProbedIds", (1, 0x800293): "RmFindSubdevice",
    (2, 0x20800110): "RmNameString", (2, GID): "RmGidInfo", (2, 0x2080018D): "RmPids", (2, 0x2080018E): "RmPidInfos",
    (2, 0x20801218): "RmCtxBufferSize", (2, FB_INFO): "RmFbInfo", (2, FB_INFO_V2): "RmFbInfoV2", (2, FB_REGIONS): "RmFbRegions",
    (3, 0xA06C0103): "RmTimeslice", (3, 0xA06C0104): "RmTimeslice", (3, 0xA06C0105): "RmPreempt", (2, 0x20801210): "RmPreemptionMode",
    (2, 0x2080110B): "RmDisableChannels", (4, 0x410110): "RmSurfaceInfo", (0, 0x3D05): "RmExport", (0, 0x3D06): "RmImport",
    (0, 0x3D08): "RmExportInfo", (0, 0x3D0A): "RmExportEmpty", (0, 0x3D0B): "RmExportMany", (0, 0x3D0C): "RmImportMany"}
OFF = (-4, -1, 1, 4)


def known_classes():
    """By number: the name, and the runs of branches that have it."""
    with open(os.path.join(os.path.dirname(TABLE), "classes.txt"), encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip() and line[0] != "#"]
    return {int(row[1], 16): (row[0], [run.partition("-")[::2] for run in row[2:]]) for row in rows}


KNOWN = known_classes()


def has_class(release, class_):
    runs = KNOWN.get(class_, ("", []))[1]
    return any(int(first) <= release.branch <= int(last or 0xFFFF) for first, last in runs)


def unknown_classes():
    wild = random.Random(11)
    found = [c for c in range(0x6F, 0x10000, 0x100) if c not in KNOWN]  # as channels end
    while len(found) < 1000:
        class_ = wild.getrandbits(wild.choice((8, 16, 24, 32)))
        if class_ not in KNOWN and class_ not in found:
            found.append(class_)
    return found


# ---- the program ----

def heap_functions(c):
    """The status of each function code; whatever gives memory keeps it."""
    statuses = []
    for function in [*range(256), 1 << 16, 0x80000002, 0xFFFFFFFF]:
        b = bytearray(184)
        struct.pack_into("<III", b, 0, c.root, c.device, function)
        struct.pack_into("<I", b, 40, 1)
        if function == 6:
            struct.pack_into("<Ii", b, 56, 1024, 4096)
        elif function != 3:
            struct.pack_into("<Q", b, 80 if function == 14 else 88, 4 * MIB)
        buffer = ctypes.create_string_buffer(bytes(b), 184)
        r = raw_ioctl(c.fd, HEAP, 184, address_of(buffer))
        statuses.append(r if r < 0 else struct.unpack_from("<I", buffer.raw, 20)[0])
    return statuses


def allocate(c, class_, size=128):
    params = ctypes.create_string_buffer(memory_params(4 * MIB).raw if class_ == LOCAL else b"", 512)
    return call(c.fd, ALLOC, L_ALLOC, c.root, c.device, 0, class_, address_of(params), size, 0)[6]


def ask(c, object_, command, params, size):
    """The status, with that paramsSize and the parameters in a larger buffer."""
    buffer = ctypes.create_string_buffer(params, 16384)
    return call(c.fd, CONTROL, L_CONTROL, c.root, object_, command, 0, address_of(buffer), size, 0)[6], buffer.raw


def sizes_off(c, release):
    """The statuses of each control with parameters of another size."""
    group = c.allocate(c.root, c.device, 0xA06C)
    objects = (c.root, c.device, c.subdevice, group, c.memory(2 * MIB))
    return [[ask(c, objects[which], command, bytes(8), release.size(name) + off)[0] for off in OFF] + [ask(c, objects[which], command, b"", 0)[0]]
            for (which, command), name in SIZES.items()]


def totals_shown(c, release):
    """The largest total in MiB that an answer shows: for each paramsSize, in a long list, and by a list that ends early."""
    entries = packed("<8I", *[x for index in (8, 9, 0x20, 7) for x in (index, 0)])
    shown = []
    for size in (0, 8, 15, 16, 17, 24):
        ask(c, c.subdevice, FB_INFO, struct.pack("<IIQ", 4, 0, address_of(entries)), size)
        shown += struct.unpack("<8I", entries.raw)[1::2]
    room = 1 << 17 if release.branch < 550 else release.value("RM_FB_LIST_MAX")
    long = ctypes.create_string_buffer(struct.pack("<II", 8, 0) * room)
    ask(c, c.subdevice, FB_INFO, struct.pack("<IIQ", room, 0, address_of(long)), 16)
    shown += struct.unpack("<%dI" % (2 * room), long.raw[:8 * room])[1::2]
    inline = struct.pack("<IIIIIII", 3, 8, 0, 0x7F, 0, 9, 0)
    for size in (release.size("RmFbInfoV2") + off for off in (*OFF, 0)):
        shown += struct.unpack_from("<6I", ask(c, c.subdevice, FB_INFO_V2, inline, size)[1], 4)[1::2]
    return max(shown) // 1024


@inside
def calls():
    release = Release(os.environ["RELEASE"])
    c = Client()
    say(heap=heap_functions(c))
    say(known=[allocate(c, class_) for class_ in KNOWN], unknown=[allocate(c, class_) for class_ in unknown_classes()],
        sizes=[allocate(c, LOCAL, size) for size in (0, 1, 119, 120, 121, 127, 129, 0xFFFFFFFF)])
    say(controls=sizes_off(c, release))
    say(shown=totals_shown(c, release))
    wait_for_word()


# ---- the test ----

class BadInput(GateBase):
    @classmethod
    def setUpClass(cls):
        """Each release has a simulator of its own."""

    def answers(self, release, slices, **environment):
        program = self.run_program("calls", slices, RELEASE=release.version, **environment)
        answers = {}
        for _ in range(4):
            answers.update(program.hear())
        counted, held = used(slices), self.sim.status()["cards"][0]["used"]
        program.end()
        return answers, counted, held

    def check(self, release):
        slices = self.sim.slices(SLICE, group=GROUP_MIB * MIB)
        alone_, _, given = self.answers(release, slices, LD_PRELOAD="")
        gated, counted, held = self.answers(release, slices)
        self.assertGreater(given, 0)
        self.assertEqual((counted, held), (given, given))
        self.assertEqual(gated["heap"], alone_["heap"])
        expected = [REFUSED.get(class_, status) for class_, status in zip(KNOWN, alone_["known"])]
        self.assertEqual(gated["known"], expected)
        self.assertEqual([status == INVALID_CLASS for status in alone_["known"]], [not has_class(release, class_) for class_ in KNOWN])
        self.assertEqual((gated["unknown"], alone_["unknown"]), ([INVALID_CLASS] * 1000,) * 2)
        self.assertEqual((gated["sizes"], alone_["sizes"]), ([OK] * 8,) * 2)
        self.check_controls(release, gated["controls"], alone_["controls"])
        self.assertEqual(gated["shown"], SLICE)

    def check_controls(self, release, gated, alone_):
        """The library knows one status for parameters that it must understand: that of most releases."""
        for ((_, command), _), with_, without in zip(SIZES.items(), gated, alone_):
            with self.subTest(command="%#x" % command):
                wrong = OK if command == FB_INFO and release.branch >= 550 else release.bad_size()
                if command in (FB_INFO, 0x410110):
                    wrong = min(wrong, 0x1F)
                self.assertEqual([s if wrong else OK for s in without[:4]], [wrong] * 4)
                self.assertIn(with_[:4], (without[:4], [0x1F] * 4))

    def test_all_releases(self):
        for release in map(Release, RELEASES):
            with self.subTest(release=release.version):
                type(self).sim = mounted("1xTesla-V100-SXM2-16GB:16160MiB", release.version)
                try:
                    self.check(release)
                finally:
                    self.sim.close()


if __name__ == "__main__":
    alone()
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
