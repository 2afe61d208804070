# SPDX-License-Identifier: Apache-2.0
"""The program that runs each test: own_place.py OWN_PLACE. What a test leaves is named and removed, also when processes
around it are killed."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from patience import PATIENCE, until

OWN_PLACE = os.path.abspath(sys.argv.pop(1))
# A test that says its folder and its processes, and waits. One process has left the session.
WAITS = "trap '' HUP; setsid sleep 100000 & echo $TMPDIR $PPID $$ $!; wait"


def there(pid):
    """Not a zombie that its parent has not read yet."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class OwnPlace(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_test(self, script, before=(), **environment):
        return subprocess.run([*before, OWN_PLACE, "sh", "-c", script], env=os.environ | {"TMPDIR": self.folder} | environment,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def start(self, before=()):
        """The outer process, the keeper, the test, and its descendant."""
        p = subprocess.Popen([*before, OWN_PLACE, "sh", "-c", WAITS], env=os.environ | {"TMPDIR": self.folder}, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        place, *pids = p.stdout.readline().split()
        self.assertTrue(place.startswith(self.folder + "/"))
        self.assertTrue(os.path.isdir(place))
        return p, [int(pid) for pid in pids]

    def nothing_left(self, pids):
        until(lambda: not any(map(there, pids)), "the processes end")
        until(lambda: os.listdir(self.folder) == [], "the folder is removed")

    def tearDown(self):
        self.assertEqual(os.listdir(self.folder), [])

    def test_status(self):
        for script, status in ("true", 0), ("exit 7", 7), ("exit 77", 77), ("kill -SEGV $$", -signal.SIGSEGV), ("kill -KILL $$", -signal.SIGKILL):
            self.assertEqual(self.run_test(script).returncode, status, script)
        p = subprocess.run([OWN_PLACE, self.folder + "/absent"], capture_output=True, text=True, check=False)
        self.assertEqual((p.returncode, p.stderr), (127, f"own-place: {self.folder}/absent: No such file or directory\n"))
        self.assertEqual(subprocess.run([OWN_PLACE], capture_output=True, check=False).returncode, 2)

    def test_environment(self):
        p = self.run_test('[ -w $HOME ] && [ $HOME = $TMPDIR ] && echo "$HOME" && env', KUBECONFIG="/k", ALIQUOT_SLICES="/s", LD_PRELOAD="",
                          XDG_CONFIG_HOME="/x", KEPT="kept")
        place, *variables = p.stdout.splitlines()
        self.assertEqual(os.path.dirname(place), self.folder)
        self.assertIn("KEPT=kept", variables)
        self.assertEqual([v for v in variables if v.startswith(("KUBECONFIG", "ALIQUOT", "LD_", "XDG_"))], [])

    def test_signals_that_are_ignored(self):
        """By nohup and by a shell for its background. The test itself may wait for a program that they end."""
        for ignored in "HUP", "INT", "QUIT":
            p = subprocess.run(["sh", "-c", f"trap '' {ignored}; exec \"$@\"", "sh", OWN_PLACE, "sh", "-c", f"kill -{ignored} $$"],
                               env=os.environ | {"TMPDIR": self.folder}, check=False)
            self.assertEqual(p.returncode, -getattr(signal, "SIG" + ignored))

    def test_files(self):
        """What no rights of others forbid to remove."""
        p = self.run_test("mkdir -p $HOME/a/b $TMPDIR/c && touch $HOME/a/b/f && ln -s / $HOME/a/root && chmod 0 $HOME/a/b && chmod 0 $HOME/a")
        self.assertEqual((p.returncode, p.stderr), (0, ""))

    def test_a_process_that_is_left(self):
        with concurrent.futures.ThreadPoolExecutor() as threads:
            for p, status in zip(threads.map(lambda status: self.run_test(f"setsid sleep 100001 >/dev/null 2>&1 & exit {status}"), (0, 77, 3)), (1, 1, 3)):
                self.assertEqual(p.returncode, status)
                self.assertRegex(p.stderr, r"\Aown-place: the test left process \d+: (setsid )?sleep 100001\n\Z")

    def test_a_process_that_ends(self):
        """It has a few seconds for it."""
        p = self.run_test("sleep 0.2 >/dev/null 2>&1 & exit 0")
        self.assertEqual((p.returncode, p.stderr), (0, ""))

    def apart(self):
        apart = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
        if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no mount namespaces here")
        return apart

    def test_a_full_disk(self):
        p = self.run_test("echo ran", before=[*self.apart(), "sh", "-c", 'mount -t tmpfs -o size=1m none "$TMPDIR" && "$@"', "sh"])
        self.assertEqual((p.returncode, p.stdout, p.stderr), (1, "", f"own-place: {self.folder} has no room for 64 MiB\n"))

    def test_a_mount_that_is_left(self):
        apart = self.apart()
        p = self.run_test('mkdir "$TMPDIR/a b" && mount -t tmpfs none "$TMPDIR/a b" && mkdir "$TMPDIR/a b/c" && mount -t tmpfs none "$TMPDIR/a b/c"',
                          before=apart)
        self.assertEqual(p.returncode, 1)
        self.assertRegex(p.stderr, r"\Aown-place: the test left a mount: .*/a b/c\nown-place: the test left a mount: .*/a b\n\Z")

    def test_killed(self):
        for which in range(3):
            p, pids = self.start()
            os.kill([p.pid, *pids][which], signal.SIGKILL)
            self.assertEqual(p.wait(PATIENCE), -signal.SIGKILL)
            self.nothing_left(pids)

    def test_ended_by_its_process_group(self):
        """As meson does at the end of a test's time, and when it is interrupted."""
        for sent in signal.SIGTERM, signal.SIGINT, signal.SIGKILL:
            p, pids = self.start()
            os.killpg(p.pid, sent)
            p.wait(PATIENCE)
            self.nothing_left(pids)

    def test_ended(self):
        p, pids = self.start()
        p.terminate()
        self.assertEqual(p.wait(PATIENCE), -signal.SIGTERM)
        self.nothing_left(pids)

    def test_the_caller_is_killed(self):
        p, pids = self.start(before=["sh", "-c", '"$@"; exit', "sh"])
        p.kill()
        p.wait()
        self.nothing_left(pids)

    def test_no_folder(self):
        p = subprocess.run([OWN_PLACE, "true"], env=os.environ | {"TMPDIR": self.folder + "/absent"}, capture_output=True, text=True, check=False)
        self.assertEqual((p.returncode, p.stderr), (1, f"own-place: a new folder in {self.folder}/absent: No such file or directory\n"))


if __name__ == "__main__":
    unittest.main()
