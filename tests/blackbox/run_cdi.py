#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The CDI specification that `aliquot run --cdi` writes, without a container runtime: run_cdi.py ALIQUOT SIM SHOW_CDI"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from patience import PATIENCE, until
from sim_lab import Machine, enter_namespace

V100 = "Tesla-V100-SXM2-16GB:16160MiB"


class Lab(unittest.TestCase):
    """Simulated cards, slices and specifications in folders of the test."""

    cdi_dir = None  # in the test's folder

    def setUp(self):
        self.machine = Machine(self, self.sim, "2x" + V100)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.slicedir = os.path.join(folder.name, "slices")
        self.cdi = self.cdi_dir or os.path.join(folder.name, "cdi")
        self.env = dict(os.environ, ALIQUOT_SIM_DIR=self.machine.dir)

    def command(self, *words, name="train", mem="2"):
        return [self.aliquot, "run", "--slices", self.slicedir, "--cdi-dir", self.cdi, "--cdi", name, "--gpu-mem", mem, *words]

    def run_to_end(self, *words, **more):
        return subprocess.run(self.command(*words, **more), env=self.env, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def start(self, *words, **more):
        """A run whose command lives until it is told to end."""
        p = subprocess.Popen(self.command(*words, "--", "sh", "-c", "echo started; read line", **more), env=self.env, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)

        def end():
            if not p.stdin.closed:
                p.stdin.close()
            p.wait()
            p.stdout.close()
        self.addCleanup(end)
        self.assertEqual(p.stdout.readline(), "started\n")
        return p

    def end(self, p):
        p.stdin.close()
        self.assertEqual(p.wait(PATIENCE), 1)  # of `read` at the end of its input

    def path(self, name="train"):
        return os.path.join(self.cdi, f"aliquot.dev-slice-{name}.json")

    def files(self):
        names = os.listdir(self.cdi) if os.path.exists(self.cdi) else []
        return [name for name in names if name != ".aliquot.lock"]

    def slices(self):
        if not os.path.exists(self.slicedir):
            return []  # the first run makes it
        p = subprocess.run([self.aliquot, "smi", "--slices", self.slicedir, "-o", "json"], env=self.env, stdout=subprocess.PIPE, text=True, check=True,
                           timeout=PATIENCE)
        return json.loads(p.stdout)["slices"]


class Specification(Lab):
    def spec(self, name="train"):
        with open(self.path(name), encoding="utf-8") as f:
            found = json.load(f)
        check_cdi(found)
        self.assertEqual(found["kind"], "aliquot.dev/slice")
        (device,) = found["devices"]
        self.assertEqual(device["name"], name)
        return device["containerEdits"]

    def test_it_is_there_while_the_command_runs(self):
        p = self.start("--gpu-core", "30")
        self.assertEqual(self.files(), ["aliquot.dev-slice-train.json"])
        self.assertEqual([(s["container"], s["memory"]["limit"] >> 20, s["compute"]["limit"]) for s in self.slices()], [("train", 2154, 30)])
        edits = self.spec()
        env = dict(text.split("=", 1) for text in edits["env"])
        self.assertEqual([env["ALIYUN_COM_GPU_MEM_" + n] for n in ("CONTAINER", "DEV", "POD", "UNIT", "IDX")], ["2", "15", "2", "GiB", "0"])
        self.assertEqual(env["NVIDIA_VISIBLE_DEVICES"].count("GPU-"), 1)
        self.end(p)
        self.assertEqual((self.files(), self.slices()), ([], []))

    def test_mounts(self):
        self.start("--gpu-count", "2")
        mounts = {m["containerPath"]: m for m in self.spec()["mounts"]}
        for path, mount in mounts.items():
            self.assertTrue(os.path.exists(mount["hostPath"]), mount)
            writable = path.startswith("/dev/") or path.endswith(("/counters", "/doorbell"))
            self.assertEqual(mount["options"][0], "rw" if writable else "ro", mount)
        pages = [f"/.aliquot/slice/{i}/{name}" for i in range(2) for name in ("counters", "doorbell")]
        self.assertEqual([p for p in mounts if "aliquot" in p], ["/.aliquot", "/.aliquot/libaliquot.so", "/.aliquot/slice", *pages])
        self.assertEqual(sorted(p for p in mounts if p.startswith("/dev/")),
                         ["/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"])
        with open(mounts["/etc/ld.so.preload"]["hostPath"], encoding="ascii") as f:
            self.assertEqual(f.read(), "/.aliquot/libaliquot.so\n")
        # what the paths in a read-only mount are mounted on
        self.assertEqual(sorted(os.listdir(mounts["/.aliquot"]["hostPath"])), ["libaliquot.so", "slice"])

    def test_the_command_is_not_in_the_slice(self):
        p = self.run_to_end("--", "env")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        for name in "LD_PRELOAD", "ALIQUOT_SLICES", "ALIYUN_COM_GPU_MEM_CONTAINER":
            self.assertNotIn(name + "=", p.stdout)
        self.assertEqual(self.run_to_end("--", "sh", "-c", "exit 7").returncode, 7)

    def test_one_slice_of_a_name(self):
        self.start()
        p = self.run_to_end("--", "true")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (
            125, "", f"aliquot run: there is a slice with the name train in {self.slicedir} already; `aliquot smi` lists it\n"))
        self.assertEqual(self.run_to_end("--", "true", name="other").returncode, 0)
        self.spec()

    def test_one_slice_of_a_name_in_all_directories(self):
        first = self.slicedir
        self.start()
        uuid = next(text.split("=")[1] for text in self.spec()["env"] if text.startswith("NVIDIA_VISIBLE_DEVICES="))
        before = self.spec()
        self.slicedir = os.path.join(self.folder, "second")
        p = self.run_to_end("--gpu", "1", "--", "echo", "not run")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (
            125, "", f"aliquot run: {self.path()} describes a living slice of the card {uuid}, counted in {first}: choose another name\n"))
        self.assertEqual((self.spec(), self.slices()), (before, []))
        self.assertEqual(self.run_to_end("--", "true", name="other").returncode, 0)

    def test_the_name_of_a_dead_slice_in_another_directory_is_free(self):
        first, p = self.slicedir, self.start()
        p.send_signal(signal.SIGKILL)
        p.wait()
        p.stdin.close()
        until(lambda: not self.slices(), "the end of its command")
        self.assertEqual(len(self.files()), 1)
        self.slicedir = os.path.join(self.folder, "second")
        self.start()
        (pages,) = [m["hostPath"] for m in self.spec()["mounts"] if m["containerPath"] == "/.aliquot/slice"]
        self.assertEqual((pages, first != self.slicedir), (self.slicedir + "/train", True))

    def test_a_reader_of_the_folder_cannot_stop_a_run(self):
        os.mkdir(self.cdi)
        folder = os.open(self.cdi, os.O_RDONLY)
        self.addCleanup(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX)
        self.assertEqual(self.run_to_end("--", "true").returncode, 0)

    def test_a_file_that_is_no_specification_is_replaced(self):
        os.mkdir(self.cdi)
        for text in "", "{", "[]", '{"devices":[{"containerEdits":{"mounts":[{"containerPath":"/.aliquot/slice"}]}}]}':
            with open(self.path(), "w", encoding="ascii") as f:
                f.write(text)
            self.assertEqual(self.run_to_end("--", "true").returncode, 0, text)
            self.assertEqual(self.files(), [])

    def test_no_room(self):
        self.start(mem="15")
        self.start(mem="15", name="second")
        p = self.run_to_end("--", "true", name="third")
        self.assertEqual(p.returncode, 125)
        self.assertIn("no room for 2 GiB", p.stderr)
        self.assertEqual(len(self.files()), 2)

    def test_a_killed_run_leaves_a_file_that_the_next_one_replaces(self):
        p = self.start()
        p.send_signal(signal.SIGKILL)
        p.wait()
        p.stdin.close()
        until(lambda: not self.slices(), "the end of its command")
        self.assertEqual(len(self.files()), 1)
        p = self.start("--gpu", "1")
        self.assertIn("/dev/nvidia1", [m["containerPath"] for m in self.spec()["mounts"]])
        self.end(p)
        self.assertEqual(self.files(), [])

    def test_a_folder_that_cannot_be_written(self):
        with open(self.cdi, "w", encoding="ascii"):
            pass
        p = self.run_to_end("--", "echo", "not run")
        self.assertEqual((p.returncode, p.stdout), (125, ""))
        self.assertIn(f"cannot write {self.path()}: Not a directory", p.stderr)
        self.assertEqual(self.slices(), [])

    def test_mount_points_of_another_user(self):
        os.mkdir(self.slicedir + ".inside")
        try:
            os.chown(self.slicedir + ".inside", 1000, 1000)
        except OSError as error:
            self.skipTest(f"files of another user cannot be made here: {error.strerror}")
        p = self.run_to_end("--", "true")
        self.assertEqual((p.returncode, p.stderr), (
            125, f"aliquot run: {self.slicedir}.inside belongs to somebody else, or others may write to it\n"))
        self.assertEqual((self.files(), self.slices()), ([], []))

    def test_no_mode_is_changed_through_a_link(self):
        other = os.path.join(self.folder, "other")
        os.mkdir(other, 0o700)
        os.mkdir(self.slicedir + ".inside")
        os.symlink(other, os.path.join(self.slicedir + ".inside", "slice"))
        p = self.run_to_end("--", "true")
        self.assertEqual((p.returncode, os.stat(other).st_mode & 0o777), (125, 0o700))
        self.assertIn("cannot make the mount points in", p.stderr)

    def test_other_users_read_the_slice_whatever_the_umask_is(self):
        before = os.umask(0o077)
        self.addCleanup(os.umask, before)
        self.start()
        for path in self.slicedir + "/train", self.slicedir + "/train/0", self.slicedir + ".inside/slice":
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o755, path)

    def test_wrong_words(self):
        for name in "1a", "a.", "", "-x", "a b", "aa-", "a" * 64, "a/b":
            p = self.run_to_end("--", "true", name=name)
            self.assertEqual((p.returncode, p.stdout), (2, ""), name)
            self.assertIn(f'--cdi is "{name}", must be letters, digits, _ and -', p.stderr)
        p = self.run_to_end("--simulate", "1x" + V100, "--", "true")
        self.assertEqual((p.returncode, p.stdout), (2, ""))
        self.assertIn("--cdi goes with cards that others see, too", p.stderr)
        self.assertEqual(self.run_to_end("--", "true", name="a" * 63).returncode, 0)


if __name__ == "__main__":
    Lab.aliquot, Lab.sim, show = (os.path.abspath(p) for p in sys.argv[1:4])
    if os.environ.get("ASAN_OPTIONS"):
        print("skipped: the simulated libraries are sanitized here, and the programs that load them are not")
        sys.exit(77)
    enter_namespace(Lab.sim)
    sys.argv[1:] = [show]  # as cdi.py takes it
    from cdi import check_cdi
    unittest.main(argv=sys.argv[:1])
