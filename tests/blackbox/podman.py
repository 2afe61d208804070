#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`aliquot run --cdi` and podman: containers in a slice of a simulated card: podman.py ALIQUOT SIM SAMPLE

A tmpfs in this test's mount namespace covers /run, because podman 4.3 reads specifications there and in /etc/cdi only."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from patience import PATIENCE, until
from run_cdi import Lab
from sim_lab import enter_namespace, skip

# podman's own defaults are higher, and root may not raise limits everywhere.
LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"]
RUNTIMES = "crun", "runc"
RUNTIME = RUNTIMES[0]  # set by find_runtime()


def copy(root, path):
    os.makedirs(os.path.dirname(root + path), exist_ok=True)
    shutil.copy(path, root + path)


def make_root(root, sample):
    """What a container of Debian has: a shell and the C library. The sample is the CUDA program."""
    for folder in "bin", "dev", "etc", "proc", "run", "sys", "tmp", "usr/bin", "usr/lib64":
        os.makedirs(os.path.join(root, folder))
    for program, target in ("/bin/sh", "/bin/sh"), (sample, "/bin/aliquot-sample"):
        shutil.copy(program, root + target)
        for path in re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout):
            copy(root, path)


def podman(*words):
    return ["podman", "--root", STORE + "/root", "--runroot", STORE + "/run", "--tmpdir", STORE + "/tmp", "--storage-driver", "vfs",
            "--cgroup-manager", "cgroupfs", "--events-backend", "none", "--runtime", RUNTIME, *words]


def container(*words, options=()):
    return podman("run", "--rm", "--network", "none", *LIMITS, *options, "--rootfs", ROOT, *words)


def find_runtime():
    """The first one that runs a container here; or why none does."""
    why = ""
    for name in RUNTIMES:
        globals()["RUNTIME"] = name
        p = subprocess.run(container("sh", "-c", "echo runs"), capture_output=True, text=True, timeout=PATIENCE, check=False)
        if p.stdout == "runs\n":
            return None
        why += f" {name}: {p.stderr.strip()}"
    return why


class Podman(Lab):
    cdi_dir = "/run/cdi"

    def inside(self, *words, device="train", options=()):
        return container(*words, options=["--device", "aliquot.dev/slice=" + device, *options])

    def run_inside(self, *words, before=(), **more):
        p = self.run_to_end(*before, "--", *self.inside(*words, **more))
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual((self.files(), self.slices()), ([], []))
        return p.stdout

    def test_it_sees_its_slice(self):
        self.assertRegex(self.run_inside("nvidia-smi"), r" 0MiB / +2154MiB ")
        text = self.run_inside("sh", "-c", "echo $ALIYUN_COM_GPU_MEM_CONTAINER $ALIYUN_COM_GPU_MEM_UNIT; echo /dev/nvidia[0-9]", before=["--gpu", "1"])
        self.assertEqual(text, "2 GiB\n/dev/nvidia1\n")

    def test_no_more_than_that(self):
        """Root of the container, and another user."""
        for user in "0:0", "1000:1000":
            options = ["--user", user]
            self.assertIn("2154 MiB in all", self.run_inside("aliquot-sample", "--gpu-mem-mib", "1800", options=options))
            self.run_inside("aliquot-sample", "--refused", "--gpu-mem-mib", "2100", options=options)

    def test_two_containers_of_a_slice_share_it(self):
        self.start()
        p = subprocess.Popen(self.inside("aliquot-sample", "--gpu-mem-mib", "1200", "--", "sh", "-c", "echo holds; read line", options=["-i"]),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.env)
        self.addCleanup(lambda: (p.stdin.close(), p.wait(PATIENCE), p.stdout.close()))
        until(lambda: p.stdout.readline() == "holds\n", "it holds memory")
        for refused, mib in ("--refused", "800"), (None, "300"):
            words = [word for word in ("aliquot-sample", refused, "--gpu-mem-mib", mib) if word]
            q = subprocess.run(self.inside(*words), capture_output=True, text=True, timeout=PATIENCE, check=False, env=self.env)
            self.assertEqual(q.returncode, 0, q.stderr)

    def test_its_pages_cannot_be_written(self):
        text = self.run_inside("sh", "-c", "for f in /.aliquot/slice/0/limits /.aliquot/x /etc/ld.so.preload /.aliquot/slice/x; do "
                                           "(echo x >> $f) 2>/dev/null && echo wrote $f; done; echo tried")
        self.assertEqual(text, "tried\n")

    def test_it_fills_only_the_file_system_of_its_slice(self):
        """In a pid namespace of its own: its first process sees what the command mounts, as that of a host does.
        It ends last, because all others are killed then: podman removes the container after the command."""
        alone = ["unshare", "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no pid namespace with a /proc of its own")
        last = '"$@"; status=$?; set -- /proc/[0-9]*; while [ $# -gt 1 ]; do sleep 0.1; set -- /proc/[0-9]*; done; exit $status'
        fill = ("x=12345678; while [ ${#x} -lt 4096 ]; do x=$x$x; done; n=0; "
                "while [ $n -lt 4096 ] && echo $x >> /.aliquot/slice/0/counters; do n=$((n + 1)); done 2>/dev/null; echo $n")
        p = subprocess.run([*alone, "sh", "-c", last, "sh", *self.command("--", *self.inside("sh", "-c", fill))],
                           env=self.env, capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertLess(int(p.stdout), 256)  # of 4 KiB each
        self.assertEqual((self.files(), os.listdir(self.slicedir)), ([], ["lock"]))

    def test_compute_is_limited(self):
        """The program ends with the container's input, because `podman kill` may come too early for the container."""
        work = self.inside("sh", "-c", "aliquot-sample --seconds 600 & read line; kill $!", options=["-i"])
        p = subprocess.Popen(self.command("--gpu-core", "30", "--", *work), env=self.env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.addCleanup(p.wait, PATIENCE)
        self.addCleanup(p.stdin.close)
        until(lambda: [5 < s["compute"].get("used", 0) < 60 for s in self.slices()] == [True], "about 30 percent of the card's time")

    def test_a_container_that_outlives_its_slice_gets_nothing(self):
        """As one of docker's, which no process of the command has started."""
        holder = self.start()
        p = subprocess.Popen(self.inside("sh", "-c", "echo started; read line; exec aliquot-sample --gpu-mem-mib 100", options=["-i"]), text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env)
        self.addCleanup(lambda: (p.kill(), p.wait(PATIENCE), p.stdout.close(), p.stderr.close()))
        self.assertEqual(p.stdout.readline(), "started\n")
        self.end(holder)
        self.assertEqual(self.slices(), [])
        text = p.communicate("\n", timeout=PATIENCE)
        self.assertEqual((p.returncode, text[0]), (1, ""), text)
        self.assertEqual(self.machine.used(), [0, 0])

    def test_a_container_of_the_command_keeps_the_slice(self):
        """podman's monitor inherits the slice's descriptor: also when the container is detached, and asks later."""
        fifo = self.folder + "/fifo"
        os.mkfifo(fifo)
        p = self.run_to_end("--", *self.inside("sh", "-c", "read line < /here/fifo; aliquot-sample --gpu-mem-mib 1000 > /here/out",
                                               options=["-d", "-v", self.folder + ":/here"]))
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(([s["container"] for s in self.slices()], self.files()), (["train"], []))
        with open(fifo, "w", encoding="ascii") as f:
            f.write("\n")
        until(lambda: not self.slices(), "the end of the container and its slice")
        with open(self.folder + "/out", encoding="ascii") as f:
            self.assertIn("2154 MiB in all", f.read())

    def test_no_slice_within_a_slice(self):
        build = os.path.dirname(self.aliquot)
        p = self.run_to_end("--", *self.inside(os.path.join(build, "aliquot-run"), "--gpu-mem", "1", "--", "true", options=["-v", f"{build}:{build}:ro"]))
        self.assertEqual((p.returncode, p.stderr), (125, "aliquot run: this is in a slice already (/.aliquot/slice), and there are none within one\n"))

    def test_a_device_that_is_not_there(self):
        p = subprocess.run(self.inside("sh", device="gone"), capture_output=True, text=True, timeout=PATIENCE, check=False, env=self.env)
        self.assertNotEqual(p.returncode, 0)
        self.assertIn("aliquot.dev/slice=gone", p.stderr)


if __name__ == "__main__":
    Lab.aliquot, Lab.sim, SAMPLE = (os.path.abspath(p) for p in sys.argv[1:4])
    if not shutil.which("podman"):
        skip("podman is not there (Debian: podman)")
    if os.geteuid() != 0:
        skip("podman needs root here: it reads specifications in /run/cdi and /etc/cdi only")
    if os.environ.get("ASAN_OPTIONS"):
        skip("the simulated libraries are sanitized here, and the programs that load them are not")
    enter_namespace(Lab.sim)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    os.mkdir("/run/cdi")
    with tempfile.TemporaryDirectory() as STORE:
        ROOT = STORE + "/image"
        make_root(ROOT, SAMPLE)
        reason = find_runtime()
        if reason:
            skip("podman runs no container here:" + reason)
        unittest.main(argv=sys.argv[:1])
