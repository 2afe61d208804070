# SPDX-License-Identifier: Apache-2.0
"""A mounted aliquot-sim for a test, in a mount namespace of its own."""
import json
import os
import subprocess
import sys
import tempfile

from driver_release import DRIVER
from patience import until

INSIDE = "ALIQUOT_SIM_TEST_INSIDE"


def skip(text):
    print("skipped: " + text)
    sys.exit(77)


PROBE = """
import subprocess, sys, tempfile
with tempfile.TemporaryDirectory() as d:
    p = subprocess.run([sys.argv[1], "--cards", "T:1GiB", "--dir", d], stdout=subprocess.PIPE, text=True)
    if p.returncode == 0:
        subprocess.run(["umount", d], check=True)
    sys.exit(p.returncode)
"""


def enter_namespace(sim):
    """Starts this test again in a mount namespace of its own, by root or in a user namespace. Exits
    with 77 when that or FUSE is not allowed."""
    if os.environ.get(INSIDE):
        return
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as e:
        skip("/dev/fuse: %s" % e.strerror)
    ways = [["unshare", "-m", "--propagation", "private"], ["unshare", "-Urm"]]
    probe = None
    for way in ways if os.geteuid() == 0 else ways[1:]:
        probe = subprocess.run(way + [sys.executable, "-c", PROBE, sim], stdin=subprocess.DEVNULL, capture_output=True,
                               text=True)
        if probe.returncode == 0:
            os.environ[INSIDE] = "1"
            os.execvp(way[0], way + [sys.executable] + sys.argv)
    skip("no mount namespace with FUSE: " + probe.stderr.strip())


class Machine:
    """Cards that exist as long as the test runs."""

    def __init__(self, test, sim, cards="2xTesla-V100-SXM2-16GB:16160MiB", *options):
        self.sim = sim
        self.folder = tempfile.TemporaryDirectory()
        test.addCleanup(self.folder.cleanup)
        self.dir = self.folder.name
        subprocess.run([sim, "--cards", cards, "--dir", self.dir, "--driver", DRIVER.version, *options], check=True, stdout=subprocess.DEVNULL)
        test.addCleanup(until, self.unmount, "whoever had its files open has ended")

    def unmount(self):
        """A killed process may take a moment to end, and its children another."""
        return subprocess.run(["umount", self.dir], stderr=subprocess.DEVNULL).returncode == 0

    def status(self):
        text = subprocess.run([self.sim, "--status", self.dir], check=True, capture_output=True, text=True).stdout
        return json.loads(text)

    def used(self):
        """Bytes of each card."""
        return [c["used"] for c in self.status()["cards"]]

    def wait_used(self, *want):
        until(lambda: self.used() == list(want), "%s used of the cards" % (want,))
